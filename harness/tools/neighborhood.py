"""Which neighbours of a node a question is about, and in which order.

`substring` filters by keyword: first the neighbours whose name holds the whole query, then those whose text holds
any of its words, those with most words first. `bm25` ranks those that share a word with the query by BM25. Both put
equal ones in the order of their ids, as they stand where there is no query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.modes import Ranking
from harness.tools.graph import Graph

_PUNCTUATION = ".,;:!?\"'()[]{}*"
_LEAST_LETTERS = 2
_FREQUENT = """
a about all also an and any are as at be been between by can could did do does for from had has have how in into is it
its of on or that the their them these they this those to was were what when where which who whom whose why will with
"""
FREQUENT_WORDS = frozenset(_FREQUENT.split())  # say nothing of what is sought


@dataclass(frozen=True)
class Found:
    """The best nodes, best first, and how many there are in all."""

    total: int
    nodes: list[int]


def look_around(
    graph: Graph, node: int, *, relation: int | None, node_type: int | None, query: str, k: int, ranking: Ranking
) -> Found:
    """The neighbours of `node`, in either direction, that pass the filters."""
    neighbors = graph.neighbors(node, relation, node_type)
    if not query.strip() or not len(neighbors):
        return Found(len(neighbors), neighbors[:k].tolist())
    return _RANKINGS[ranking](graph, neighbors, query, k)


def keywords(query: str) -> list[str]:
    """The words of a query that are looked for in texts, lower-cased, each once."""
    words = (word.strip(_PUNCTUATION) for word in query.replace("-", " ").lower().split())
    return list(dict.fromkeys(word for word in words if len(word) >= _LEAST_LETTERS and word not in FREQUENT_WORDS))


def _by_substring(graph: Graph, neighbors: NDArray[np.int32], query: str, k: int) -> Found:
    whole, words = query.strip().lower(), keywords(query)
    named: list[int] = []
    others: list[int] = []
    for node in neighbors.tolist():
        (named if whole in graph.index.labels.name(node).lower() else others).append(node)
    counted = []
    for node, document in zip(others, graph.index.documents(others if words else []), strict=False):
        text = document.lower()
        found = sum(word in text for word in words)
        if found:
            counted.append((-found, node))
    nodes = [*named, *(node for _, node in sorted(counted))]
    return Found(len(nodes), nodes[:k])


def _by_bm25(graph: Graph, neighbors: NDArray[np.int32], query: str, k: int) -> Found:
    hits = graph.index.text.search(query, k, neighbors)
    return Found(hits.total, [hit.node for hit in hits.best])


_RANKINGS: dict[Ranking, Callable[[Graph, NDArray[np.int32], str, int], Found]] = {
    "substring": _by_substring,
    "bm25": _by_bm25,
}
