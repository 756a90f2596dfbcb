"""The `tables` source: nodes from JSON Lines, CSV or TSV, edges from CSV or TSV.

Nodes have `id`, `type`, `name` and any further columns, which become attributes. Edges have `source`, `relation`,
`target` and any further columns, which become edge attributes. Node types and relations are numbered in the order in
which they first occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter.errors import ExportError
from exporter.inputs import InputFile
from exporter.read import Export
from exporter.rows import BadRows, Batch, OnBadRow, json_rows, kind_of, open_table
from exporter.source import EdgeBlock, Node, Progress

_NODE_COLUMNS = ("id", "type", "name")
_EDGE_COLUMNS = ("source", "relation", "target")
_RESERVED = "source_id"  # where the export keeps the source's own id


class TablesSource:
    """A graph in two files. Raises ExportError that names the file, the line and what is wrong."""

    def __init__(
        self, nodes: Path, edges: Path, on_bad_row: OnBadRow = "stop", progress: Progress | None = None
    ) -> None:
        self._node_path, self._node_kind = nodes, kind_of(nodes, ("jsonl", "csv", "tsv"))
        self._edge_path, self._edge_kind = edges, kind_of(edges, ("csv", "tsv"))
        self._bad = BadRows(on_bad_row)
        self._progress = progress
        self._ids: dict[str, int] = {}
        self._inputs: list[dict[str, Any]] = []

    node_types: Sequence[str] = ()
    relations: Sequence[str] = ()

    def questions(self) -> Iterator[dict[str, Any]]:
        return iter(())

    def node_id(self, source_id: str) -> int | None:
        return self._ids.get(source_id)

    def describe(self) -> dict[str, Any]:
        return {"kind": "tables", "inputs": self._inputs, "skipped": dict(self._bad.skipped)}

    def nodes(self) -> Iterator[Node]:
        with InputFile(self._node_path, self._progress) as file:
            rows = self._json_nodes(file) if self._node_kind == "jsonl" else self._table_nodes(file)
            for line, node in rows:
                problem = self._problem(node)
                if problem:
                    self._bad.report(file.path, line, problem)
                    continue
                self._ids[str(node.source_id)] = len(self._ids)
                yield node
            self._inputs.append(file.describe())
        if not self._ids:
            raise ExportError(f"{self._node_path}: no nodes", "a graph needs at least one node")

    def _problem(self, node: Node) -> str | None:
        if node.source_id == "":
            return "the id is empty"
        if str(node.source_id) in self._ids:
            return f"duplicate id '{node.source_id}'"
        return None if node.type else "the type is empty"

    def _json_nodes(self, file: InputFile) -> Iterator[tuple[int, Node]]:
        for line, row in json_rows(file, self._bad):
            problem = _json_problem(row)
            if problem:
                self._bad.report(file.path, line, problem)
                continue
            attributes = {key: value for key, value in row.items() if key not in _NODE_COLUMNS}
            yield line, Node(row["type"], row["name"] or "", attributes, row["id"])

    def _table_nodes(self, file: InputFile) -> Iterator[tuple[int, Node]]:
        table = open_table(file, self._node_kind, self._bad)
        own, others = _split_columns(file.path, table.names, _NODE_COLUMNS)
        if _RESERVED in table.names:
            raise ExportError(f"{file.path}: line 1: {_reserved_problem('column')}")
        names = [table.names[index] for index in others]
        for batch in table.batches():
            ids, types, labels = (batch.columns[index] for index in own)
            values: Iterator[tuple[str, ...]] = zip(*(batch.columns[index] for index in others), strict=True)
            for row, line in enumerate(batch.lines):
                attributes = dict(zip(names, next(values), strict=True)) if names else {}
                yield line, Node(types[row], labels[row], attributes, ids[row])

    def edges(self) -> Iterator[EdgeBlock]:
        with InputFile(self._edge_path, self._progress) as file:
            table = open_table(file, self._edge_kind, self._bad)
            own, others = _split_columns(file.path, table.names, _EDGE_COLUMNS)
            names = [table.names[index] for index in others]
            for batch in table.batches():
                yield from self._blocks(batch, own, dict(zip(names, others, strict=True)))
            self._inputs.append(file.describe())

    def _blocks(self, batch: Batch, own: Sequence[int], attributes: dict[str, int]) -> Iterator[EdgeBlock]:
        """Map a batch's ids and split it by relation, in the order in which relations occur."""
        source, relation, target = own
        try:
            heads, tails = self._node_ids(batch.columns[source]), self._node_ids(batch.columns[target])
            codes = {name: code for code, name in enumerate(dict.fromkeys(batch.columns[relation]))}
            good = "" not in codes
        except KeyError:
            good = False
        if not good:
            yield from self._blocks(self._good_edges(batch, own), own, attributes)
            return
        coded = np.fromiter(map(codes.__getitem__, batch.columns[relation]), np.int64, len(heads))
        order = np.argsort(coded, kind="stable")
        bounds = np.searchsorted(coded[order], np.arange(len(codes) + 1))
        for name, code in codes.items():
            rows = order[bounds[code] : bounds[code + 1]]
            picked = rows.tolist() if attributes else []
            yield EdgeBlock(
                name,
                heads[rows],
                tails[rows],
                {key: [batch.columns[index][row] for row in picked] for key, index in attributes.items()},
            )

    def _node_ids(self, source_ids: list[str]) -> NDArray[np.int64]:
        """Raises KeyError where the graph doesn't have one of them."""
        return np.fromiter(map(self._ids.__getitem__, source_ids), np.int64, len(source_ids))

    def _good_edges(self, batch: Batch, own: Sequence[int]) -> Batch:
        """The rows whose ends are known and whose relation has a name; the others are reported."""
        sources, relations, targets = (batch.columns[index] for index in own)
        good = []
        for row, line in enumerate(batch.lines):
            if sources[row] not in self._ids:
                self._bad.report(self._edge_path, line, f"unknown source node '{sources[row]}'")
            elif targets[row] not in self._ids:
                self._bad.report(self._edge_path, line, f"unknown target node '{targets[row]}'")
            elif not relations[row]:
                self._bad.report(self._edge_path, line, "the relation is empty")
            else:
                good.append(row)
        return Batch([batch.lines[row] for row in good], [[column[row] for row in good] for column in batch.columns])


def _split_columns(path: Path, names: list[str], needed: Sequence[str]) -> tuple[list[int], list[int]]:
    """Positions of the needed columns, in that order, and of all others. Raises ExportError where one is missing."""
    for name in needed:
        if name not in names:
            found = ", ".join(f"'{found}'" for found in names)
            raise ExportError(
                f"{path}: line 1: no column '{name}'", f"columns needed: {', '.join(needed)}; found: {found}"
            )
    own = [names.index(name) for name in needed]
    return own, [index for index in range(len(names)) if index not in own]


def _json_problem(row: dict[str, Any]) -> str | None:
    for key in _NODE_COLUMNS:
        if key not in row:
            return f"no '{key}'; keys found: {', '.join(row) or 'none'}"
    if isinstance(row["id"], bool) or not isinstance(row["id"], (str, int)):
        return "'id' must be a text or an integer"
    if not isinstance(row["type"], str):
        return "'type' must be a text"
    if not isinstance(row["name"], str | None):
        return "'name' must be a text"
    return _reserved_problem("key") if _RESERVED in row else None


def _reserved_problem(what: str) -> str:
    return f"the {what} '{_RESERVED}' is reserved for the id; rename it"


def export_tables(
    nodes: Path,
    edges: Path,
    out: Path,
    *,
    queries: Path | None = None,
    candidates: Sequence[str] | None = None,
    name: str | None = None,
    reuse: bool = False,
    on_bad_row: OnBadRow = "stop",
    progress: Progress | None = None,
) -> Export:
    """Export a graph given as two tables into the new folder `out`.

    `queries` is a file of questions, `candidates` the node types that may be answers (all by default), `name` the
    graph's name (by default the folder's). With `reuse`, an export that is there already, or that another process
    makes meanwhile, is opened instead. Raises ExportError and leaves nothing behind where anything is wrong.
    """
    from exporter.write import write_export  # noqa: PLC0415 - polars takes a third of a second to import

    source = TablesSource(nodes, edges, on_bad_row, progress)
    return write_export(source, out, queries=queries, candidates=candidates, name=name, reuse=reuse, progress=progress)
