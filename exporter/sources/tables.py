"""The `tables` source: a table of nodes (JSON Lines, CSV, TSV or Parquet) and one of edges (CSV, TSV or Parquet).

Nodes have `id`, `type`, `name` and any further columns, which become attributes. Edges have `source`, `relation`,
`target` and any further columns, which become edge attributes. Columns that are called otherwise can be mapped. Node
types and relations are numbered in the order in which they first occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.identified import RESERVED, IdentifiedSource
from exporter.inputs import InputFile
from exporter.read import Export
from exporter.rows import OnBadRow, Table, json_rows, kind_of
from exporter.source import EdgeBlock, Node, Progress, Turn

NODE_COLUMNS = ("id", "type", "name")
EDGE_COLUMNS = ("source", "relation", "target")


class TablesSource(IdentifiedSource):
    """A graph in two files. Raises ExportError that names the file, the line and what is wrong.

    `columns` says what columns of NODE_COLUMNS and EDGE_COLUMNS are called in the files, where it is otherwise.
    """

    kind = "tables"
    ids = "ids of the node table"

    def __init__(
        self,
        nodes: Path,
        edges: Path,
        on_bad_row: OnBadRow = "stop",
        progress: Progress | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(on_bad_row, progress)
        self._node_path, self._node_kind = nodes, kind_of(nodes, ("jsonl", "csv", "tsv", "parquet"))
        self._edge_path, self._edge_kind = edges, kind_of(edges, ("csv", "tsv", "parquet"))
        self._columns = _checked(columns or {})

    def _called(self, columns: Sequence[str]) -> dict[str, str]:
        return {column: self._columns.get(column, column) for column in columns}

    def nodes(self) -> Iterator[Node]:
        yield from self._numbered(self._node_path, self._node_rows())
        self._some(self._node_path)

    def _node_rows(self) -> Iterator[tuple[int, Node]]:
        wanted = self._called(NODE_COLUMNS)
        if self._node_kind == "jsonl":
            with self._input(self._node_path) as file:
                yield from self._json_nodes(file, wanted)
        else:
            with self._table(self._node_path, self._node_kind) as table:
                yield from self._table_nodes(table, wanted)

    def _json_nodes(self, file: InputFile, wanted: Mapping[str, str]) -> Iterator[tuple[int, Node]]:
        node_id, node_type, name = wanted.values()
        for line, row in json_rows(file, self._bad):
            problem = _json_problem(row, wanted)
            if problem:
                self._bad.report(file.path, line, problem)
                continue
            attributes = {key: value for key, value in row.items() if key not in (node_id, node_type, name)}
            yield line, Node(row[node_type], row[name] or "", attributes, row[node_id])

    def _table_nodes(self, table: Table, wanted: Mapping[str, str]) -> Iterator[tuple[int, Node]]:
        own, others = _split_columns(self._node_path, table.names, wanted)
        if RESERVED in table.names:
            raise ExportError(f"{self._node_path}: line 1: {_reserved_problem('column')}")
        names = [table.names[index] for index in others]
        for batch in table.batches():
            ids, types, labels = (batch.columns[index] for index in own)
            values: Iterator[tuple[Any, ...]] = zip(*(batch.columns[index] for index in others), strict=True)
            for row, line in enumerate(batch.lines):
                attributes = dict(zip(names, next(values), strict=True)) if names else {}
                yield line, Node(_text(types[row]), _text(labels[row]), attributes, _id(ids[row]))

    def edges(self) -> Iterator[EdgeBlock]:
        wanted = self._called(EDGE_COLUMNS)
        with self._table(self._edge_path, self._edge_kind, texts=True) as table:
            own, others = _split_columns(self._edge_path, table.names, wanted)
            attributes = {table.names[index]: index for index in others}
            for batch in table.batches():
                yield from self._blocks(self._edge_path, batch, own, attributes)


def _checked(columns: Mapping[str, str]) -> Mapping[str, str]:
    for name in columns:
        if name not in (*NODE_COLUMNS, *EDGE_COLUMNS):
            known = ", ".join((*NODE_COLUMNS, *EDGE_COLUMNS))
            raise ExportError(f"there is no column '{name}' to map", f"columns: {known}")
    return columns


def _split_columns(path: Path, names: list[str], needed: Mapping[str, str]) -> tuple[list[int], list[int]]:
    """Positions of the needed columns, in that order, and of all others. `needed` says what each is called here. Raises
    ExportError where one is missing."""
    lacking = [column for column, name in needed.items() if name not in names]
    if lacking:
        told, found = (", ".join(f"'{name}'" for name in some) for some in (map(needed.get, lacking), names))
        mapped = ",".join(f"{column}=NAME" for column in lacking)
        raise ExportError(
            f"{path}: line 1: no column {told}", f"--columns {mapped} says what is called otherwise; found: {found}"
        )
    own = [names.index(name) for name in needed.values()]
    return own, [index for index in range(len(names)) if index not in own]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _id(value: Any) -> str | int:
    return value if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _json_problem(row: dict[str, Any], wanted: Mapping[str, str]) -> str | None:
    for column, key in wanted.items():
        if key not in row:
            return f"no '{key}'; keys found: {', '.join(row) or 'none'} (--columns {column}=KEY names another)"
    node_id, node_type, name = wanted.values()
    if isinstance(row[node_id], bool) or not isinstance(row[node_id], (str, int)):
        return f"'{node_id}' must be a text or an integer"
    if not isinstance(row[node_type], str):
        return f"'{node_type}' must be a text"
    if not isinstance(row[name], str | None):
        return f"'{name}' must be a text"
    return _reserved_problem("key") if RESERVED in row else None


def _reserved_problem(what: str) -> str:
    return f"the {what} '{RESERVED}' is reserved for the id; rename it"


def export_tables(
    nodes: Path,
    edges: Path,
    out: Path,
    *,
    columns: Mapping[str, str] | None = None,
    queries: Path | None = None,
    candidates: Sequence[str] | None = None,
    name: str | None = None,
    reuse: bool = False,
    index: bool = False,
    on_bad_row: OnBadRow = "stop",
    progress: Progress | None = None,
    turn: Turn | None = None,
) -> Export:
    """Export a graph given as two tables into the new folder `out`.

    `columns` maps `id`, `type`, `name`, `source`, `relation`, `target` to what they are called in the tables. `queries`
    is a file of questions, `candidates` the node types that may be answers (all by default), `name` the graph's name
    (by default the folder's). With `reuse`, an export that is there already, or that another process makes meanwhile,
    is opened instead; `turn` is told who makes it. With `index`, what the harness looks up is built too, which is else
    done when it is first needed. Raises ExportError and leaves nothing behind where anything is wrong.
    """
    from exporter.write import write_export  # noqa: PLC0415 - polars takes a third of a second to import

    source = TablesSource(nodes, edges, on_bad_row, progress, columns)
    return write_export(
        source,
        out,
        queries=queries,
        candidates=candidates,
        name=name,
        reuse=reuse,
        index=index,
        progress=progress,
        turn=turn,
    )
