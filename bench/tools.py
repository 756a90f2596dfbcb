"""The graph tools: calls from a sandbox's programs, and the keyword filter around a hub.

`client`: calls of `kbtools.Client` in a sandbox (`get_node`, `search`, `neighbors`, each on its own), against the least
that such a call can be: the same client, served by a function that returns a fixed text, no events written. The
target is 2,000 `get_node` calls a second.

`hub`: `neighbors` with a query at a node with 100,000 neighbours, texts of 150 words, against reading these texts and
looking into them one by one; beside it the same call without a query, and the floor: reading the node files' bytes.

    python -m bench.tools client [--calls 5000] [--sandbox bwrap]
    python -m bench.tools hub [--neighbors 100000]
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sandbox
from bench.index import texts
from exporter.index import Index
from exporter.source import EdgeBlock, Node
from exporter.write import write_export
from harness.accounting import Account
from harness.graphs import open_graph
from harness.kb import TOOLS
from harness.kb.attempt import serve_graph
from harness.kb.server import FOLDER, KbServer
from harness.modes import Neighbors, Output
from harness.tools.graph import Graph
from harness.tools.kit import Toolkit
from harness.tools.neighborhood import keywords, look_around
from harness.trajectory import TrajectoryWriter
from sandbox import Spec

PROGRAM = """
import sys, time; sys.path.insert(0, {folder!r})
import kbtools
kb = kbtools.Client({folder!r} + "/kb.sock")
kb.get_schema()
start = time.perf_counter()
for n in range({calls}):
    {call}
print({calls} / (time.perf_counter() - start))
"""
CALLS = {
    "get_node": "kb.get_node(n % 2522)",
    "search": "kb.search('mismatch repair')",
    "neighbors": "kb.neighbors(n % 2522, query='repair')",
}
REPEATS = 3


class Hub:
    """A graph whose node 0 is joined with all others."""

    node_types: Sequence[str] = ("paper",)
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

    def node_id(self, source_id: str) -> int | None:
        """The sources' ids are ours."""
        return int(source_id)

    def questions(self) -> Iterator[dict[str, Any]]:
        """None."""
        return iter(())

    def describe(self) -> dict[str, Any]:
        """For the manifest."""
        return {"kind": "made for a benchmark"}


def client(calls: int, kind: str) -> None:
    """Calls a second from a sandbox, for each tool and for a server that does nothing."""
    backend = sandbox.choose(kind)
    with tempfile.TemporaryDirectory() as name:
        export = open_graph("biogo", Path(name), print).export
        graph = Graph(export, Index.open(export))
        toolbox = Toolkit(TOOLS, Neighbors(), graph).toolbox()
        account = Account(threading.Event(), lambda _: None)
        log = TrajectoryWriter(Path(name) / "events.jsonl", Path(name) / "blobs")
        with log, serve_graph(toolbox, Output(), log, account) as served:
            rates = {tool: rate(backend, served, calls, call) for tool, call in CALLS.items()}
        with KbServer(lambda *_: "x" * 500) as idle:
            floor = rate(backend, idle, calls, CALLS["get_node"])
    print(f"calls a second from the {kind} sandbox, best of {REPEATS} times {calls:,}; target: 2,000 of get_node")
    print(f"  a server that returns a fixed text {floor:,.0f}")
    for tool, found in rates.items():
        print(f"  {tool:<10} {found:>8,.0f}   {found / floor:.2f} of it")


def rate(backend: sandbox.Backend, served: KbServer, calls: int, call: str) -> float:
    """The best of a few runs of one program."""
    program = PROGRAM.format(folder=FOLDER, calls=calls, call=call)
    with backend.open(Spec(None, mounts={FOLDER: served.folder})) as box:
        box.write("program.py", program.encode())
        found = [float(box.exec("python3 program.py", 300.0, 1_000).head) for _ in range(REPEATS)]
    return max(found)


def hub(neighbors: int) -> None:
    """CPU seconds of the keyword filter around a hub, against looking into every text."""
    with tempfile.TemporaryDirectory() as name:
        export = write_export(Hub(neighbors), Path(name) / "hub")
        graph = Graph(export, Index.open(export))
        records = [export.node(node) for node in range(1, 2_000)]
        often, seldom = (records[place]["name"].split()[place % 5] for place in (1, 1_500))
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
    parser.add_argument("what", choices=["client", "hub"])
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--neighbors", type=int, default=100_000)
    parser.add_argument("--sandbox", default="bwrap")
    options = parser.parse_args()
    if options.what == "client":
        client(options.calls, options.sandbox)
    else:
        hub(options.neighbors)


if __name__ == "__main__":
    main()
