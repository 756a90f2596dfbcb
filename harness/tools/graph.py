"""The graph as tools see it: what the model names is checked, and long texts come in pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter import Export
from exporter.index import Direction, Index
from harness.observe import Observation
from harness.suggest import did_you_mean
from harness.text import count_of
from harness.tools import excerpt

_NAMES_TOLD = 60  # of types or relations, in an error
_NOTE_ROOM = 160  # characters kept free for the note below a page
_LEAST_PAGE = 200


class GraphMistake(Exception):
    """The model named something that the graph doesn't have; the message says what there is."""


class Graph:
    """One export and its index. Safe to use from several threads."""

    def __init__(self, export: Export, index: Index) -> None:
        self.export = export
        self.index = index
        self.types: list[str] = [item["name"] for item in export.schema["node_types"]]
        self.relations: list[str] = [item["name"] for item in export.schema["relations"]]
        self._type_ids = {name: number for number, name in enumerate(self.types)}
        self._relation_ids = {name: number for number, name in enumerate(self.relations)}

    def has(self, node: Any) -> bool:
        """Whether there is such a node."""
        return bool(0 <= node < self.export.node_count)

    def node(self, node: Any) -> int:
        """A node id as the model gave it (any JSON number). Raises GraphMistake."""
        if not self.has(node):
            last = self.export.node_count - 1
            raise GraphMistake(f"there is no node {node}; node ids are the integers from 0 to {last}")
        return int(node)

    def type_id(self, name: str) -> int:
        """Raises GraphMistake for an unknown node type."""
        return _known(self._type_ids, name, "node type")

    def relation_id(self, name: str, what: str = "relation") -> int:
        """Raises GraphMistake for an unknown relation, which tells of it as `what`."""
        return _known(self._relation_ids, name, what)

    def type_of(self, node: int) -> str:
        """The node's type."""
        return self.types[int(self.index.labels.types[node])]

    def neighbors(self, node: int, relation: int | None, node_type: int | None) -> NDArray[np.int32]:
        """The other nodes that edges join to `node`, each once, ascending."""
        found: NDArray[np.int32] = np.unique(self.index.adjacency.neighbors(node, relation))
        found = found[found != node]
        if node_type is not None:
            found = found[self.index.labels.types[found] == node_type]
        return found

    def relations_between(self, node: int, others: Iterable[int]) -> dict[int, tuple[list[str], list[str]]]:
        """For each other node the relations that lead to it from `node`, and those that lead back."""
        onward, back = self._by_relation(node, "out"), self._by_relation(node, "in")
        return {other: (_holding(onward, other), _holding(back, other)) for other in others}

    def _by_relation(self, node: int, direction: Direction) -> list[tuple[str, NDArray[np.int32]]]:
        found = ((name, self.index.adjacency.neighbors(node, n, direction)) for n, name in enumerate(self.relations))
        return [(name, neighbors) for name, neighbors in found if len(neighbors)]

    def schema_text(self) -> str:
        """Node types with their attributes, and relations with the types at their ends; counts of all."""
        schema = self.export.schema
        lines = [
            f"{count_of(schema['nodes'], 'node')}, {count_of(schema['edges'], 'edge')}",
            "",
            "Node types (each attribute with the share of nodes that have it):",
        ]
        for item in schema["node_types"]:
            told = ", ".join(f"{key} {facts['coverage']:g}" for key, facts in item["attributes"].items())
            lines.append(f"- {item['name']} ({count_of(item['count'], 'node')}): {told}")
        lines += ["", "Relations:"]
        for item in schema["relations"]:
            ends = ", ".join(f"{end['head']} -> {end['tail']} ({end['count']:,})" for end in item["triples"])
            symmetric = ", symmetric" if item["symmetric"] else ""
            lines.append(f"- {item['name']} ({count_of(item['rows'], 'edge')}{symmetric}): {ends}")
        return "\n".join(lines)


def page(text: str, offset: int, cap: int, what: str) -> Observation:
    """The part of `text` from the character `offset` on that fits, with a note on how to go on. Raises GraphMistake."""
    if offset >= len(text) and offset > 0:
        raise GraphMistake(f"the offset is {offset}, but {what} has {count_of(len(text), 'character')}")
    if not offset and len(text) <= cap:
        return Observation(text)
    end = min(len(text), offset + max(cap - _NOTE_ROOM, _LEAST_PAGE))
    note = f"[characters {offset}-{end} of {len(text)}" + (f"; go on with offset {end}]" if end < len(text) else "]")
    left_out = len(text) - (end - offset)
    return Observation(f"{text[offset:end]}\n{note}", cut=cut_record(left_out))


def cut_record(characters: int) -> dict[str, Any]:
    """What a trajectory says of a result that leaves out so many characters, which lie in no file."""
    return {"lines": 0, "characters": characters, "spill": None, "spilled_bytes": 0}


def _known(ids: dict[str, int], name: str, what: str) -> int:
    if name not in ids:
        told = list(ids)[:_NAMES_TOLD]
        more = f" and {len(ids) - len(told)} more (see the schema)" if len(ids) > len(told) else ""
        parts = [f"there is no {what} '{excerpt(name)}';", did_you_mean(name, ids), f"{what}s: {', '.join(told)}{more}"]
        raise GraphMistake(" ".join(part for part in parts if part))
    return ids[name]


def _holding(relations: list[tuple[str, NDArray[np.int32]]], node: int) -> list[str]:
    """The relations whose neighbours, in ascending order, `node` is among."""
    wanted = np.int32(node)
    places = ((name, found, found.searchsorted(wanted)) for name, found in relations)
    return [name for name, found, place in places if place < len(found) and found[place] == wanted]
