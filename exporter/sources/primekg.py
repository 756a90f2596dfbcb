"""The `primekg` source: PrimeKG's kg.csv, and tables with further attributes of its nodes.

kg.csv has `relation`, `display_relation`, and `x_index`, `x_id`, `x_type`, `x_name`, `x_source` and the same of `y`.
Tables of attributes have a column `node_index`: drug_features.csv, disease_features.csv, nodes.tsv.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.identified import IdentifiedSource
from exporter.options import Options
from exporter.read import Export
from exporter.rows import BadRows, Batch, kind_of, open_table
from exporter.source import EdgeBlock, Node

_SIDES = ("x", "y")
_FIELDS = ("index", "id", "type", "name", "source")
_KNOWN = {"node_index", "node_id", "node_type", "node_name", "node_source"}
Described = tuple[str, str, str, str]  # id, type, name, source
End = tuple[str, Described]  # index, and what is said of it


class PrimeKGSource(IdentifiedSource):
    """Relations are `display_relation`; `relation` is an attribute of the edges. Nodes are numbered in the order of
    their index. kg.csv is read twice; memory holds the nodes with their attributes."""

    kind = "primekg"
    ids = "indexes of nodes, as in x_index"

    def __init__(self, edges: Path, tables: Sequence[Path], options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._edges, self._kind = edges, kind_of(edges, ("csv", "tsv"))
        self._tables = tables
        self._contradicting: set[int] = set()  # lines of kg.csv

    def nodes(self) -> Iterator[Node]:
        described: dict[str, Described] = {}
        self._describe_nodes(described)
        attributes: dict[str, dict[str, Any]] = {}
        for table in self._tables:
            self._add_attributes(table, described, attributes)
        rows = (
            (0, _node(index, described[index], attributes.get(index, {}))) for index in sorted(described, key=_order)
        )
        yield from self._numbered(self._edges, rows)
        self._some(self._edges)

    def _describe_nodes(self, described: dict[str, Described]) -> None:
        for batch, columns in self._batches(self._bad.silent()):
            sides: list[list[End]] = []
            for side in _SIDES:
                index, *rest = (batch.columns[columns[f"{side}_{name}"]] for name in _FIELDS)
                sides.append(list(zip(index, zip(*rest, strict=True), strict=True)))
            known = len(described)
            if any(described.setdefault(node, new) != new for side in sides for node, new in dict.fromkeys(side)):
                while len(described) > known:  # in the order of the lines, then
                    described.popitem()
                self._contradict(batch.lines, sides, described)

    def _contradict(self, lines: Sequence[int], sides: list[list[End]], described: dict[str, Described]) -> None:
        """Add descriptions in the order of the lines; report rows that say something else, once, and leave them out of
        the edges too."""
        for line, *ends in zip(lines, *sides, strict=True):
            for node, description in ends:
                before = described.setdefault(node, description)
                if before != description and line not in self._contradicting:
                    self._contradicting.add(line)
                    self._bad.report(self._edges, line, _contradiction(node, description, before))

    def _add_attributes(
        self, table: Path, described: dict[str, Described], attributes: dict[str, dict[str, Any]]
    ) -> None:
        with self._table(table, kind_of(table, ("csv", "tsv", "parquet"))) as opened:
            if "node_index" not in opened.names:
                raise ExportError(f"{table}: line 1: no column 'node_index'", f"found: {', '.join(opened.names)}")
            key = opened.names.index("node_index")
            others = [(number, name) for number, name in enumerate(opened.names) if name not in _KNOWN]
            named = {name: opened.names.index(f"node_{name}") for name in _FIELDS if f"node_{name}" in opened.names}
            for batch in opened.batches():
                for line, cells in zip(batch.lines, zip(*batch.columns, strict=True), strict=True):
                    index = str(cells[key])
                    if index not in described and set(named) == set(_FIELDS):  # a node without edges
                        described[index] = tuple(str(cells[named[name]]) for name in _FIELDS[1:])  # type: ignore[assignment]
                    if index not in described:
                        self._bad.report(table, line, f"unknown node '{index}'")
                        continue
                    found = {name: cells[number] for number, name in others if cells[number] not in (None, "")}
                    attributes.setdefault(index, {}).update(found)

    def edges(self) -> Iterator[EdgeBlock]:
        for every, columns in self._batches(self._bad):
            batch = self._without_contradicting(every)
            ends = [columns[name] for name in ("x_index", "display_relation", "y_index")]
            yield from self._blocks(self._edges, batch, ends, {"relation": columns["relation"]})

    def _without_contradicting(self, batch: Batch) -> Batch:
        if self._contradicting.isdisjoint(batch.lines):
            return batch
        good = [row for row, line in enumerate(batch.lines) if line not in self._contradicting]
        return Batch([batch.lines[row] for row in good], [[column[row] for row in good] for column in batch.columns])

    def _batches(self, bad: BadRows) -> Iterator[tuple[Batch, dict[str, int]]]:
        """The rows, and where each column is."""
        needed = ["relation", "display_relation", *(f"{side}_{name}" for side in _SIDES for name in _FIELDS)]
        with self._input(self._edges) as file:
            table = open_table(file, self._kind, bad)
            missing = [name for name in needed if name not in table.names]
            if missing:
                raise ExportError(f"{self._edges}: line 1: no column '{missing[0]}'", f"needed: {', '.join(needed)}")
            columns = {name: table.names.index(name) for name in needed}
            for batch in table.batches():
                yield batch, columns


def _contradiction(node: str, here: Described, before: Described) -> str:
    differing = [
        f"its {field} is '{new}' here and '{old}' before"
        for field, new, old in zip(_FIELDS[1:], here, before, strict=True)
        if new != old
    ]
    return f"node {node} is described in two ways: {', '.join(differing)}"


def _node(index: str, described: Described, attributes: dict[str, Any]) -> Node:
    identity, node_type, name, source = described
    source_id = int(index) if index.isascii() and index.isdecimal() and index == str(int(index)) else index
    return Node(node_type, name, {"id": identity, "source": source, **attributes}, source_id)


def _order(index: str) -> tuple[int, str]:
    return (int(index), "") if index.isascii() and index.isdecimal() else (1 << 62, index)


def export_primekg(edges: Path, tables: Sequence[Path], out: Path, options: Options | None = None) -> Export:
    """Export kg.csv, with the attributes in `tables`, into the new folder `out`. Raises ExportError."""
    options = options or Options()
    return options.write(PrimeKGSource(edges, tables, options), out)
