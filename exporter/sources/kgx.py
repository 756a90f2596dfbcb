"""The `kgx` source: the Knowledge Graph Exchange format, as TSV or JSON Lines.

Nodes have `id`, `category` and `name`, edges `subject`, `predicate` and `object`, and both any further slots:
https://github.com/biolink/kgx/blob/master/specification/kgx-format.md. In TSV, values of slots that hold several are
separated by `|`, and an empty cell is no slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.identified import EdgeRow, IdentifiedSource, attribute_names
from exporter.options import Options
from exporter.plain import as_cell
from exporter.read import Export
from exporter.rows import json_rows, kind_of
from exporter.source import EdgeBlock, Node

_KINDS = ("tsv", "csv", "jsonl")
_ENDS = ("subject", "predicate", "object")
_NO_CATEGORY = "biolink:NamedThing"  # what the format assumes
_SEVERAL = {
    "category", "xref", "synonym", "same_as", "publications", "provided_by", "in_taxon", "full_name_synonym",
    "related_synonym", "exact_synonym", "broad_synonym", "narrow_synonym", "qualifiers", "has_evidence",
    "aggregator_knowledge_source",
}  # fmt: skip


class KgxSource(IdentifiedSource):
    """A node's type is its first category; all of them are kept as its attribute. An edge's attributes are texts, lists
    and the numbers of JSON Lines as JSON. JSON Lines edges are read twice, since they differ in their slots."""

    kind = "kgx"

    def __init__(self, nodes: Path, edges: Path, options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._nodes, self._node_kind = nodes, kind_of(nodes, _KINDS)
        self._edges, self._edge_kind = edges, kind_of(edges, _KINDS)

    def nodes(self) -> Iterator[Node]:
        rows = self._json_nodes() if self._node_kind == "jsonl" else self._table_nodes()
        yield from self._numbered(self._nodes, rows)
        self._some(self._nodes)

    def _json_nodes(self) -> Iterator[tuple[int, Node]]:
        with self._input(self._nodes) as file:
            for line, row in json_rows(file, self._bad):
                if isinstance(row.get("id"), str):
                    yield line, _node(row)
                else:
                    self._bad.report(self._nodes, line, "'id' is not a text")

    def _table_nodes(self) -> Iterator[tuple[int, Node]]:
        with self._table(self._nodes, self._node_kind) as table:
            if "id" not in table.names:
                raise ExportError(f"{self._nodes}: line 1: no column 'id'", f"found: {', '.join(table.names)}")
            for batch in table.batches():
                for line, cells in zip(batch.lines, zip(*batch.columns, strict=True), strict=True):
                    slots = {name: cell for name, cell in zip(table.names, cells, strict=True) if cell}
                    several = {name: cell.split("|") for name, cell in slots.items() if name in _SEVERAL}
                    yield line, _node({"id": "", **slots, **several})

    def edges(self) -> Iterator[EdgeBlock]:
        if self._edge_kind == "jsonl":
            names = attribute_names(self._json_edges(report=False))
            yield from self._blocks_of_rows(self._edges, self._json_edges(report=True), names)
            return
        with self._table(self._edges, self._edge_kind) as table:
            missing = [name for name in _ENDS if name not in table.names]
            if missing:
                raise ExportError(
                    f"{self._edges}: line 1: no column '{missing[0]}'", f"found: {', '.join(table.names)}"
                )
            attributes = {name: number for number, name in enumerate(table.names) if name not in _ENDS}
            for batch in table.batches():
                for name, number in attributes.items():
                    batch.columns[number] = _slots(name, batch.columns[number])
                yield from self._blocks(self._edges, batch, [table.names.index(name) for name in _ENDS], attributes)

    def _json_edges(self, report: bool) -> Iterator[EdgeRow]:
        bad = self._bad if report else self._bad.silent()
        with self._input(self._edges) as file:
            for line, row in json_rows(file, bad):
                subject, predicate, target = (row.get(name) for name in _ENDS)
                if isinstance(subject, str) and isinstance(predicate, str) and isinstance(target, str):
                    slots = {name: as_cell(value) for name, value in row.items() if name not in _ENDS}
                    yield EdgeRow(line, subject, predicate, target, slots)
                else:
                    bad.report(self._edges, line, "'subject', 'predicate' and 'object' must be texts")


def _slots(name: str, cells: list[str]) -> list[str | None]:
    """An edge's slot in each row: None where the cell is empty, several values as JSON."""
    if name in _SEVERAL:
        return [as_cell(cell.split("|")) if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _node(slots: dict[str, Any]) -> Node:
    """The node that a row describes."""
    categories = slots.get("category")
    first = categories[0] if isinstance(categories, list) and categories else categories
    name = slots.get("name")
    attributes = {slot: value for slot, value in slots.items() if slot not in ("id", "name")}
    return Node(str(first or _NO_CATEGORY), "" if name is None else str(name), attributes, slots["id"])


def export_kgx(nodes: Path, edges: Path, out: Path, options: Options | None = None) -> Export:
    """Export a KGX graph into the new folder `out`. Raises ExportError."""
    options = options or Options()
    return options.write(KgxSource(nodes, edges, options), out)
