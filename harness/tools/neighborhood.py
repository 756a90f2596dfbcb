"""Which neighbours of a node a question is about, and in which order.

`substring` filters by keyword: first the neighbours whose name holds the whole query, then those whose text holds
any of its words, those with most words first. `bm25` ranks those that share a word with the query by BM25. Both put
equal ones in the order of their ids, as they stand where there is no query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.modes import Ranking
from harness.tools.graph import Graph

_PUNCTUATION = ".,;:!?\"'()[]{}*"
_LEAST_LETTERS = 2
_MOST_WORDS = 100  # different words of a query that count
_ASCII = re.compile("[0-9a-z]+")
# Reading a text takes about 10 microseconds, and going through two million words of an index 0.3 seconds.
_MANY_NEIGHBORS = 5_000
_FEW_WORDS = 4
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
    kept = dict.fromkeys(word for word in words if len(word) >= _LEAST_LETTERS and word not in FREQUENT_WORDS)
    return list(kept)[:_MOST_WORDS]


def _by_substring(graph: Graph, neighbors: NDArray[np.int32], query: str, k: int) -> Found:
    whole, words = query.strip().lower(), keywords(query)
    in_name = np.fromiter((whole in graph.index.labels.name(node).lower() for node in neighbors.tolist()), np.bool_)
    named, others = neighbors[in_name], neighbors[~in_name]
    look = _in_index if len(others) > _MANY_NEIGHBORS and len(words) <= _FEW_WORDS else _in_documents
    found = look(graph, others, words, max(1, k - len(named))) if words else Found(0, [])
    return Found(len(named) + found.total, [*named[:k].tolist(), *found.nodes][:k])


def _in_documents(graph: Graph, nodes: NDArray[np.int32], words: list[str], k: int) -> Found:
    """Those whose texts hold most of the words, word by word: the time goes with the number and length of texts."""
    counted = []
    for node, document in zip(nodes.tolist(), graph.index.documents(nodes.tolist()), strict=True):
        text = document.lower()
        found = sum(word in text for word in words)
        if found:
            counted.append((-found, node))
    return Found(len(counted), [node for _, node in sorted(counted)[:k]])


def _in_index(graph: Graph, nodes: NDArray[np.int32], words: list[str], k: int) -> Found:
    """The same from the index: the time goes with the number of different words in the graph, whatever a hub's size.

    A word that is not all ASCII letters and digits is looked for in the texts that have those of its parts that are.
    """
    wanted: list[list[str] | NDArray[np.int32]] = []
    for word in words:
        parts = _ASCII.findall(word)
        wanted.append([word] if parts == [word] else _holders(graph, nodes, word, parts))
    hits = graph.index.text.holding(wanted, k, nodes)
    return Found(hits.total, [hit.node for hit in hits.best])


def _holders(graph: Graph, nodes: NDArray[np.int32], word: str, parts: list[str]) -> NDArray[np.int32]:
    """The nodes whose texts hold a word, of which `parts` are inside words of the index."""
    if parts:
        hits = graph.index.text.holding([parts], len(nodes), nodes)
        nodes = np.array([hit.node for hit in hits.best], np.int32)
    return np.array(_in_documents(graph, nodes, [word], len(nodes)).nodes, np.int32)


def _by_bm25(graph: Graph, neighbors: NDArray[np.int32], query: str, k: int) -> Found:
    hits = graph.index.text.search_among(query, k, neighbors)
    return Found(hits.total, [hit.node for hit in hits.best])


_RANKINGS: dict[Ranking, Callable[[Graph, NDArray[np.int32], str, int], Found]] = {
    "substring": _by_substring,
    "bm25": _by_bm25,
}
