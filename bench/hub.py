"""The keyword filter of `neighbors` around a hub.

A query at a node with 100,000 neighbours, texts of 150 words, against reading these texts and looking into them one by
one; beside it the same call without a query, and the floor: reading the node files' bytes.

    python -m bench.hub [--neighbors 100000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.index import texts
from exporter.index import Index
from exporter.questions import mapped_questions
from exporter.rows import bad_questions
from exporter.source import EdgeBlock, Node
from exporter.write import write_export
from harness.tools.graph import Graph
from harness.tools.neighborhood import keywords, look_around

REPEATS = 3


class Hub:
    """A graph whose node 0 is joined with all others."""

    node_types: Sequence[str] = ("paper",)
    left_out = 0
    relations: Sequence[str] = ("cites",)

    def __init__(self, neighbors: int) -> None:
        self._neighbors = neighbors

    def nodes(self) -> Iterator[Node]:
        """A hub, and papers whose texts are 150 words in Zipf's proportions."""
        words = texts(3 * (self._neighbors + 1))
        for number in range(self._neighbors + 1):
            text = [word for _, part in zip(range(3), words, strict=False) for word in part]
            yield Node("paper", " ".join(text[:5]), {"text": " ".join(text)}, number)

    def edges(self) -> Iterator[EdgeBlock]:
        """One from the hub to each other node."""
        others = np.arange(1, self._neighbors + 1, dtype=np.int64)
        yield EdgeBlock("cites", np.zeros_like(others), others)

    def questions(self) -> Iterator[dict[str, Any]]:
        """None."""
        return iter(())

    def questions_of(self, path: Path) -> Iterator[dict[str, Any]]:
        """The sources' ids are ours."""
        return mapped_questions(path, int, bad_questions(), "node ids")

    def describe(self) -> dict[str, Any]:
        """For the manifest."""
        return {"kind": "made for a benchmark"}


def hub(neighbors: int) -> None:
    """CPU seconds of the keyword filter around a hub, against looking into every text."""
    with tempfile.TemporaryDirectory() as name:
        export = write_export(Hub(neighbors), Path(name) / "hub")
        graph = Graph(export, Index.open(export))
        names = [str(export.node(node)["name"]).split() for node in (2, neighbors * 3 // 4)]
        often, seldom = (words[place] for words, place in zip(names, (1, 0), strict=True))
        shards = sorted((export.files / "nodes").iterdir())
        print(f"{neighbors:,} neighbours, {sum(path.stat().st_size for path in shards) / 1e6:.0f} MB of records, CPU s")
        print(f"  reading the bytes alone      {spent(lambda: [path.read_bytes() for path in shards]):.3f}")
        print(f"  neighbors without a query    {spent(lambda: found(graph, '')):.3f}")
        for query in (often, f"{seldom} {often}", f"{seldom} {often} {seldom[:3]} nothing"):
            new, old = spent(lambda q=query: found(graph, q)), spent(lambda q=query: scanned(graph, q))  # type: ignore[misc]
            print(f"  {len(keywords(query))} words: filtered {new:.3f}, text by text {old:.3f}, ratio {new / old:.2f}")


def found(graph: Graph, query: str) -> int:
    """What the tool finds."""
    return look_around(graph, 0, relation=None, node_type=None, query=query, k=20, ranking="substring").total


def scanned(graph: Graph, query: str) -> int:
    """The same by reading every text."""
    words = keywords(query)
    documents = graph.index.documents(graph.neighbors(0, None, None).tolist())
    return sum(any(word in text for word in words) for text in map(str.lower, documents))


def spent(work: Callable[[], object]) -> float:
    """The least CPU time of a few runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neighbors", type=int, default=100_000)
    hub(parser.parse_args().neighbors)


if __name__ == "__main__":
    main()
