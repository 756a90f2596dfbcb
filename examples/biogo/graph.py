"""A small graph read from an export's files, and the steps that the questions' programs are made of."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Ids = set[int]


class Graph:
    """The nodes and edges that lie in an export's `files` folder; nothing else is read."""

    def __init__(self, files: Path) -> None:
        schema = json.loads((files / "schema.json").read_text("utf-8"))
        self.nodes: dict[int, dict[str, Any]] = {}
        for shard in sorted((files / "nodes").iterdir()):
            with shard.open(encoding="utf-8", newline="\n") as file:
                for line in file:
                    record = json.loads(line)
                    self.nodes[record["node_id"]] = record
        self._forwards: dict[str, dict[int, Ids]] = {}
        self._backwards: dict[str, dict[int, Ids]] = {}
        self._evidence: dict[tuple[str, int, int], set[str]] = {}
        for relation in schema["relations"]:
            self._read_edges(relation["name"], files / relation["file"])

    def _read_edges(self, name: str, path: Path) -> None:
        forwards = self._forwards[name] = defaultdict(set)
        backwards = self._backwards[name] = defaultdict(set)
        with path.open(encoding="utf-8", newline="\n") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                source, target = int(row["source"]), int(row["target"])
                forwards[source].add(target)
                backwards[target].add(source)
                self._evidence[name, source, target] = set(row["evidence"].split(","))

    def named(self, name: str, node_type: str | None = None) -> int:
        """The one node with this name (and type)."""
        (found,) = (
            node_id
            for node_id, record in self.nodes.items()
            if record["name"] == name and node_type in (None, record["node_type"])
        )
        return found

    def of_type(self, node_type: str) -> Ids:
        """All nodes of a type."""
        return {node_id for node_id, record in self.nodes.items() if record["node_type"] == node_type}

    def to(self, relation: str, nodes: int | Iterable[int]) -> Ids:
        """Where `relation` leads from any of `nodes`."""
        return _step(self._forwards[relation], nodes)

    def of(self, relation: str, nodes: int | Iterable[int]) -> Ids:
        """From where `relation` leads to any of `nodes`."""
        return _step(self._backwards[relation], nodes)

    def below(self, node: int) -> Ids:
        """A term and everything below it: all that is, or is part of, a form of it."""
        return self._closure(node, self.of)

    def above(self, node: int) -> Ids:
        """A term and everything above it."""
        return self._closure(node, self.to)

    def _closure(self, node: int, step: Any) -> Ids:
        found: Ids = set()
        new = {node}
        while new:
            found |= new
            new = (step("is_a", new) | step("part_of", new)) - found
        return found

    def evidence(self, relation: str, source: int, target: int) -> set[str]:
        """The evidence codes of an edge."""
        return self._evidence[relation, source, target]

    def text(self, node: int, key: str) -> str:
        """A text attribute of a node; empty where it has none."""
        return str(self.nodes[node]["attributes"].get(key, ""))

    def name(self, node: int) -> str:
        return str(self.nodes[node]["name"])

    def source_id(self, node: int) -> str:
        return str(self.nodes[node]["attributes"]["source_id"])


def _step(edges: dict[int, Ids], nodes: int | Iterable[int]) -> Ids:
    starts = (nodes,) if isinstance(nodes, int) else nodes
    return set().union(*(edges.get(node, ()) for node in starts))


def most(nodes: Iterable[int], score: Any) -> Ids:
    """Those of `nodes` with the highest score, all of them where several share it."""
    scores = {node: score(node) for node in nodes}
    best = max(scores.values())
    return {node for node, value in scores.items() if value == best}
