"""The `neo4j` source: CSV files as `neo4j-admin database import` reads them.

Headers name and type the columns: `:ID`, `:LABEL`, `:START_ID`, `:END_ID`, `:TYPE`, `:IGNORE`, `name`, `age:int`,
`tags:string[]`, with id spaces as in `:ID(Person)`:
https://neo4j.com/docs/operations-manual/current/import/. Which files hold nodes and which relationships is told by
their headers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from exporter.errors import ExportError
from exporter.identified import EdgeRow, IdentifiedSource, attribute_names
from exporter.inputs import InputFile
from exporter.options import Options
from exporter.read import Export
from exporter.rows import BadRows, CsvTable
from exporter.source import EdgeBlock, Node

_COLUMN = re.compile(r"(?P<name>[^:{]*)(?::(?P<type>[A-Za-z_]+)(?P<many>\[\])?(?:\((?P<space>[^)]*)\))?)?(?:\{.*\})?")
_INTEGERS = ("int", "long", "short", "byte")
_NAMES = ("name", "title", "label", "displayName", "display_name")
_NO_LABEL = "node"


class _Column(NamedTuple):
    name: str
    type: str  # in lower case, "string" where the header says nothing
    many: bool
    space: str


@dataclass(frozen=True)
class Input:
    """One file, or parts of one: the first begins with the header. `prefix` stands before `=`: labels, or a type."""

    paths: tuple[Path, ...]
    prefix: str = ""
    columns: tuple[_Column, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, text: str) -> Input:
        """From `[LABEL:LABEL=|TYPE=]FILE[,FILE...]`."""
        prefix, _, files = text.rpartition("=")
        return cls(tuple(map(Path, files.split(","))), prefix)


class Neo4jSource(IdentifiedSource):
    """A node's type is its first label; where it has several, they are its attribute `labels`. Its id has `SPACE:`
    before it where the file has an id space. Its name is what its property `name`, `title`, `label` or `displayName`
    says, else its id. Empty cells are no properties. Relationship files are read twice, since their properties differ.
    """

    kind = "neo4j"
    ids = "ids as in the column :ID, with SPACE: before each of an id space"

    def __init__(self, inputs: Sequence[str], delimiter: str, array_delimiter: str, options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._delimiter, self._array = delimiter, array_delimiter
        opened = [self._with_header(Input.of(text)) for text in inputs]
        self._node_inputs = [each for each in opened if _position(each, "id") is not None]
        self._edge_inputs = [each for each in opened if _position(each, "start_id") is not None]
        for each in opened:
            if each not in self._node_inputs and each not in self._edge_inputs:
                raise ExportError(f"{each.paths[0]}: line 1: no column :ID, nor :START_ID", "the header must say so")
        for each in self._edge_inputs:
            if _position(each, "end_id") is None or (not each.prefix and _position(each, "type") is None):
                lacking = ":END_ID" if _position(each, "end_id") is None else ":TYPE, and no TYPE= before the file"
                raise ExportError(f"{each.paths[0]}: line 1: no column {lacking}", "the header must say so")

    def _with_header(self, given: Input) -> Input:
        with InputFile(given.paths[0]) as file:
            names = CsvTable(file, BadRows("stop"), self._delimiter).names
        columns = []
        for name in names:
            found = _COLUMN.fullmatch(name)
            if found is None:
                raise ExportError(f"{given.paths[0]}: line 1: '{name}' is not a column's header")
            kind = (found["type"] or "string").lower()
            columns.append(_Column(found["name"], kind, bool(found["many"]), found["space"] or ""))
        return Input(given.paths, given.prefix, tuple(columns))

    def _rows(self, given: Input, bad: BadRows) -> Iterator[tuple[Path, int, Sequence[str]]]:
        """Every row below the header, which stands in the first file only."""
        for number, path in enumerate(given.paths):
            with self._input(path) as file:
                names = [str(position) for position in range(len(given.columns))] if number else None
                for batch in CsvTable(file, bad, self._delimiter, names).batches():
                    for line, cells in zip(batch.lines, zip(*batch.columns, strict=True), strict=True):
                        yield path, line, cells

    def nodes(self) -> Iterator[Node]:
        for given in self._node_inputs:
            for path, line, cells in self._rows(given, self._bad):
                try:
                    node = self._node(given, cells)
                except ValueError as error:
                    self._bad.report(path, line, str(error))
                else:
                    yield from self._numbered(path, [(line, node)])
        self._some(", ".join(str(given.paths[0]) for given in self._node_inputs) or "the files given")

    def _node(self, given: Input, cells: Sequence[str]) -> Node:
        labels = given.prefix.split(":") if given.prefix else []
        properties: dict[str, Any] = {}
        source_id = ""
        for column, cell in zip(given.columns, cells, strict=True):
            if column.type == "id":
                source_id = _spaced(column.space, cell)
                if column.name:
                    properties[column.name] = cell
            elif column.type == "label":
                labels += [label for label in cell.split(self._array) if label]
            elif column.type != "ignore" and cell:
                properties[column.name] = self._value(column, cell)
        if not source_id:
            raise ValueError("the id is empty")
        if len(labels) > 1:
            properties["labels"] = labels
        name = next((str(properties[key]) for key in _NAMES if key in properties), source_id)
        return Node(labels[0] if labels else _NO_LABEL, name, properties, source_id)

    def _value(self, column: _Column, cell: str) -> Any:
        if column.many:
            return [_scalar(column, part) for part in cell.split(self._array)]
        return _scalar(column, cell)

    def edges(self) -> Iterator[EdgeBlock]:
        bad = self._bad.silent()
        names = attribute_names(row for given in self._edge_inputs for row in self._edge_rows(given, bad))
        for given in self._edge_inputs:
            yield from self._blocks_of_rows(given.paths[0], self._edge_rows(given, self._bad), names)

    def _edge_rows(self, given: Input, bad: BadRows) -> Iterator[EdgeRow]:
        start, end = (_position(given, kind) for kind in ("start_id", "end_id"))
        assert start is not None
        assert end is not None
        typed = _position(given, "type")
        properties = [
            (number, column.name)
            for number, column in enumerate(given.columns)
            if column.type not in ("start_id", "end_id", "type", "ignore")
        ]
        for _, line, cells in self._rows(given, bad):
            yield EdgeRow(
                line,
                _spaced(given.columns[start].space, cells[start]),
                given.prefix or ("" if typed is None else cells[typed]),
                _spaced(given.columns[end].space, cells[end]),
                {name: cells[number] or None for number, name in properties},
            )


def _position(given: Input, kind: str) -> int | None:
    return next((number for number, column in enumerate(given.columns) if column.type == kind), None)


def _spaced(space: str, cell: str) -> str:
    return f"{space}:{cell}" if space and cell else cell


def _scalar(column: _Column, cell: str) -> Any:
    """A cell's value. Raises ValueError where it is not of the column's type."""
    try:
        if column.type in _INTEGERS:
            return int(cell)
        if column.type in ("float", "double"):
            return float(cell)
    except ValueError:
        raise ValueError(f"column '{column.name}': '{cell}' is not of type {column.type}") from None
    return cell == "true" if column.type == "boolean" else cell


def export_neo4j(
    inputs: Sequence[str],
    out: Path,
    options: Options | None = None,
    *,
    delimiter: str = ",",
    array_delimiter: str = ";",
) -> Export:
    """Export the files of a Neo4j import into the new folder `out`. Raises ExportError.

    Each of `inputs` is `[LABEL:LABEL=|TYPE=]FILE[,FILE...]`, as neo4j-admin has them.
    """
    options = options or Options()
    try:
        csv.reader([], delimiter=delimiter)
    except TypeError as error:
        raise ExportError(f"'{delimiter}' can't separate columns", "give a single character") from error
    return options.write(Neo4jSource(inputs, delimiter, array_delimiter, options), out)
