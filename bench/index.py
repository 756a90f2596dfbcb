"""Look-ups in the index, against plain Python's way to do the same.

A graph is made with words in Zipf's proportions and degrees as skewed, exported and indexed. Then, in a process of its
own that opens the index: one hop with a relation filter, against a dict of lists; BM25 over names and texts, against
a scan of all documents' word counts, term by term, as the package rank_bm25 does it (over fewer documents, since it
takes that long). Queries are words drawn from texts: five keywords, without the frequent words that are in more than
one text of 50; five words as they stand; and as many as STaRK's questions have.

    python -m bench.index [--nodes 1000000] [--edges 39800000] [--scan 129000]
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter import Export
from exporter.index import Adjacency, Index
from exporter.questions import mapped_questions
from exporter.rows import bad_questions
from exporter.source import EdgeBlock, Node
from exporter.write import write_export

RELATIONS = 4
BLOCK = 1_000_000
WORDS = 60  # of a text
VOCABULARY = 300_000
HOPS = 20_000
DICT_EDGES = 4_000_000
QUERIES = 200
RESULTS = 30
QUESTION_WORDS = 22  # the median of STaRK's questions


class Made:
    """A graph of `nodes` nodes and about `edges` edges, four relations."""

    node_types: Sequence[str] = ("paper",)
    left_out = 0
    relations: Sequence[str] = tuple(f"relation {number}" for number in range(RELATIONS))

    def __init__(self, nodes: int, edges: int) -> None:
        self._nodes, self._edges = nodes, edges

    def nodes(self) -> Iterator[Node]:
        for number, words in enumerate(texts(self._nodes)):
            yield Node("paper", " ".join(words[:5]), {"text": " ".join(words)}, number)

    def edges(self) -> Iterator[EdgeBlock]:
        chance = np.random.default_rng(2)
        for start in range(0, self._edges, BLOCK):
            count = min(BLOCK, self._edges - start)
            sources = chance.integers(0, self._nodes, count)
            targets = (chance.zipf(1.5, count) * 97) % self._nodes
            yield EdgeBlock(self.relations[start // BLOCK % RELATIONS], sources, targets)

    def questions(self) -> Iterator[dict[str, Any]]:
        return iter(())

    def questions_of(self, path: Path) -> Iterator[dict[str, Any]]:
        return mapped_questions(path, int, bad_questions(), "node ids")

    def describe(self) -> dict[str, Any]:
        return {"kind": "made for a benchmark"}


def texts(count: int, seed: int = 1) -> Iterator[list[str]]:
    """Texts as lists of words in the proportions of Zipf and Mandelbrot."""
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7) ** 1.07)
    vocabulary = [f"w{number:x}" for number in range(VOCABULARY)]
    chance = np.random.default_rng(seed)
    for start in range(0, count, 10_000):
        drawn = np.searchsorted(shares, chance.random((min(10_000, count - start), WORDS)) * shares[-1])
        for row in drawn.tolist():
            yield [vocabulary[number] for number in row]


def queries(documents: list[list[str]]) -> list[list[str]]:
    """Five words each, frequent ones left out."""
    found = Counter(word for words in documents for word in set(words))
    rare = [[word for word in words if found[word] * 50 < len(documents)] for words in documents]
    return [words[:5] for words in rare if len(words) >= 5][:QUERIES]


def timed(work: Callable[[Any], object], arguments: Sequence[Any]) -> tuple[float, float]:
    """Median and 95th percentile of the calls' wall times, in microseconds."""
    times = []
    for argument in arguments:
        start = time.perf_counter()
        work(argument)
        times.append((time.perf_counter() - start) * 1e6)
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))


def anonymous_memory() -> float:
    """MB of this process that no file backs, so that no other process shares it."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1e3
    raise OSError("/proc/self/status has no RssAnon")


def look_up(path: Path, asked: list[list[str]]) -> dict[str, Any]:
    """Figures of one process that opens the index of the export at `path`."""
    export = Export.open(path)
    before = anonymous_memory()
    (folder,) = (path / "index").glob("adjacency-*")
    start = time.perf_counter()
    adjacency = Adjacency(folder)
    opened = time.perf_counter() - start
    nodes = np.random.default_rng(3).integers(0, export.node_count, HOPS).tolist()
    hop = timed(lambda node: adjacency.neighbors(node, 1, "out"), nodes)
    both = timed(lambda node: adjacency.neighbors(node, 1), nodes)
    start = time.perf_counter()
    index = Index.open(export)
    opened_all = time.perf_counter() - start
    search = timed(lambda words: index.text.search(" ".join(words), RESULTS), asked)
    running, questions = (
        timed(lambda words: index.text.search(" ".join(words), RESULTS), [words[:size] for words in texts(QUERIES, 4)])
        for size in (5, QUESTION_WORDS)
    )
    return {
        **{"open": opened, "open all": opened_all, "memory": anonymous_memory() - before},
        **{"hop": hop, "both": both, "search": search, "running": running, "questions": questions},
    }


def dict_hops(export: Export) -> tuple[float, float]:
    """The same look-up in a dict from (node, relation) to a list, of the first edges of a relation."""
    neighbors: dict[tuple[int, int], list[int]] = {}
    for number, (source, target, _) in enumerate(export.edges(1)):
        neighbors.setdefault((source, 1), []).append(target)
        if number == DICT_EDGES:
            break
    nodes = np.random.default_rng(3).integers(0, export.node_count, HOPS).tolist()
    return timed(lambda node: neighbors.get((node, 1), []), nodes)


def scan(documents: list[list[str]], asked: list[list[str]]) -> tuple[float, float]:
    """BM25 by going through all documents' word counts for each word of the query."""
    counts = [Counter(words) for words in documents]
    lengths: NDArray[np.float64] = np.array([len(words) for words in documents])
    found = Counter(word for count in counts for word in count)
    part = 1.5 * (1 - 0.75 + 0.75 * lengths / lengths.mean())

    def best(words: list[str]) -> object:
        scores = np.zeros(len(documents))
        for word in words:
            times = np.array([count.get(word, 0) for count in counts])
            idf = math.log(1 + (len(documents) - found[word] + 0.5) / (found[word] + 0.5))
            scores += idf * times * 2.5 / (times + part)
        return np.argsort(scores)[::-1][:RESULTS]

    return timed(best, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=39_800_000)
    parser.add_argument("--scan", type=int, default=129_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        export = write_export(Made(arguments.nodes, arguments.edges), Path(folder) / "graph")
        start, used = time.perf_counter(), time.process_time()
        Index.open(export)
        print(
            f"built in {time.process_time() - used:.1f} CPU s, {time.perf_counter() - start:.1f} s;"
            f" peak memory with the export {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"
        )
        sample = [words for _, words in zip(range(arguments.scan), texts(arguments.nodes), strict=False)]
        asked = queries(sample)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            ours = pool.apply(look_up, (export.path, asked))
        print(f"opened in {ours['open'] * 1e3:.1f} ms, with texts {ours['open all'] * 1e3:.1f} ms")
        print(f"memory of its own: {ours['memory']:.1f} MB")
        plain = dict_hops(export)
        for name, figures in (("one direction", ours["hop"]), ("both directions", ours["both"]), ("dict", plain)):
            print(f"one hop, {name}: median {figures[0]:.1f} us, 95 % {figures[1]:.1f} us")
        print(f"one hop against the dict: {ours['hop'][0] / plain[0]:.1f} times its median")
        scanned = scan(sample, asked[:5])
        kinds = (("questions", "questions"), ("words as they stand", "running"), ("keywords", "search"))
        for name, key in kinds:
            median, most = (figure / 1e3 for figure in ours[key])
            print(f"BM25, {arguments.nodes} texts, {name}: median {median:.2f} ms, 95 % {most:.2f} ms")
        print(
            f"by scan, {arguments.scan} texts: median {scanned[0] / 1e3:.0f} ms, {scanned[0] / 1e3 / median:.0f} times"
        )


if __name__ == "__main__":
    main()
