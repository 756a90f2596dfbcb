"""What sources have in common whose nodes have ids of their own: they are numbered as they come, edges are mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exporter.errors import ExportError
from exporter.inputs import InputFile, hash_file
from exporter.questions import mapped_questions
from exporter.rows import BadRows, Batch, OnBadRow, Table, open_table
from exporter.source import EdgeBlock, Node, Progress

RESERVED = "source_id"  # where the export keeps the source's own id
_CHUNK = 100_000  # edges gathered into columns


class EdgeRow(NamedTuple):
    """One edge in the source's terms, and the line it stands in (0 where there are no lines)."""

    line: int
    source: str
    relation: str
    target: str
    attributes: Mapping[str, str | None]


class IdentifiedSource:
    """Base of such sources: numbers nodes, refuses two with the same id, maps the ends of edges, counts bad rows.

    `source_id` of nodes are texts or integers; as texts they are unique. Memory: the index of ids.
    """

    kind = ""  # what the manifest calls it
    ids = "ids of nodes"  # what questions name their answers by
    node_types: Sequence[str] = ()
    relations: Sequence[str] = ()

    def __init__(self, on_bad_row: OnBadRow = "stop", progress: Progress | None = None) -> None:
        self._bad = BadRows(on_bad_row)
        self._progress = progress
        self._ids: dict[str, int] = {}
        self._inputs: dict[Path, dict[str, Any]] = {}

    @property
    def left_out(self) -> int:
        return self._bad.skipped.total()

    def questions(self) -> Iterator[dict[str, Any]]:
        return iter(())

    def questions_of(self, path: Path) -> Iterator[dict[str, Any]]:
        return mapped_questions(path, self._ids.get, self._bad, self.ids)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "inputs": list(self._inputs.values()),
            "skipped": dict(self._bad.skipped),
            "left_out": self._bad.told,
        }

    @contextmanager
    def _input(self, path: Path) -> Iterator[InputFile]:
        """An input file, described in the manifest once it has been read."""
        with InputFile(path, self._progress) as file:
            yield file
            self._inputs[path] = file.describe()

    @contextmanager
    def _table(self, path: Path, kind: str, texts: bool = False) -> Iterator[Table]:
        """A CSV, TSV or Parquet file; with `texts`, Parquet's values are texts or None."""
        if kind == "parquet":
            from exporter.parquet import ParquetTable  # noqa: PLC0415 - polars takes a third of a second to import

            yield ParquetTable(path, texts, self._progress)
            self._inputs[path] = {"file": path.name, **hash_file(path)}
        else:
            with self._input(path) as file:
                yield open_table(file, kind, self._bad)

    def _numbered(self, path: Path, rows: Iterable[tuple[int, Node]]) -> Iterator[Node]:
        """The nodes of a file, numbered; bad ones are reported with their line."""
        for line, node in rows:
            problem = self._problem(node)
            if problem:
                self._bad.report(path, line, problem)
                continue
            self._ids[str(node.source_id)] = len(self._ids)
            yield node

    def _problem(self, node: Node) -> str | None:
        if node.source_id == "":
            return "the id is empty"
        if str(node.source_id) in self._ids:
            return f"duplicate id '{node.source_id}'"
        if RESERVED in node.attributes:
            return f"'{RESERVED}' is reserved for the id; rename it"
        return None if node.type else "the type is empty"

    def _some(self, where: object) -> None:
        """Raises ExportError where there was no node."""
        if not self._ids:
            raise ExportError(f"{where}: no nodes", "a graph needs at least one node")

    def _blocks(
        self, path: Path, batch: Batch, ends: Sequence[int], attributes: Mapping[str, int], undirected: bool = False
    ) -> Iterator[EdgeBlock]:
        """Map a batch's ids and split it by relation, in the order in which relations occur.

        `ends` are the columns of source, relation and target, `attributes` those of the edges' attributes.
        """
        source, relation, target = ends
        try:
            heads, tails = self._node_ids(batch.columns[source]), self._node_ids(batch.columns[target])
            codes = {name: code for code, name in enumerate(dict.fromkeys(batch.columns[relation]))}
            good = all(codes)
        except KeyError:
            good = False
        if not good:
            yield from self._blocks(path, self._good_edges(path, batch, ends), ends, attributes, undirected)
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
                undirected=undirected,
            )

    def _node_ids(self, source_ids: list[str]) -> NDArray[np.int64]:
        """Raises KeyError where the graph doesn't have one of them."""
        return np.fromiter(map(self._ids.__getitem__, source_ids), np.int64, len(source_ids))

    def _good_edges(self, path: Path, batch: Batch, ends: Sequence[int]) -> Batch:
        """The rows whose ends are known and whose relation has a name; the others are reported."""
        sources, relations, targets = (batch.columns[index] for index in ends)
        good = []
        for row, line in enumerate(batch.lines):
            if sources[row] not in self._ids:
                self._bad.report(path, line, f"unknown source node '{sources[row]}'")
            elif targets[row] not in self._ids:
                self._bad.report(path, line, f"unknown target node '{targets[row]}'")
            elif not relations[row]:
                self._bad.report(path, line, "the relation is empty")
            else:
                good.append(row)
        return Batch([batch.lines[row] for row in good], [[column[row] for row in good] for column in batch.columns])

    def _blocks_of_rows(
        self, path: Path, rows: Iterable[EdgeRow], names: Mapping[str, Sequence[str]], undirected: bool = False
    ) -> Iterator[EdgeBlock]:
        """Edges that come one by one, as blocks. `names` are the attributes of each relation, in their order: every
        block of a relation has them all."""
        coming = iter(rows)
        while chunk := list(islice(coming, _CHUNK)):
            by_relation: dict[str, list[EdgeRow]] = {}
            for row in chunk:
                by_relation.setdefault(row.relation, []).append(row)
            for relation, group in by_relation.items():
                lines, sources, relations, targets, attributes = zip(*group, strict=True)
                keys = names.get(relation, ())
                cells = [[each.get(key) for each in attributes] for key in keys]
                columns = [list(sources), list(relations), list(targets), *cells]
                positions = {key: number for number, key in enumerate(keys, 3)}
                yield from self._blocks(path, Batch(lines, columns), (0, 1, 2), positions, undirected)


def attribute_names(rows: Iterable[EdgeRow]) -> dict[str, list[str]]:
    """The attributes of each relation, in the order in which they occur: a first pass over edges that differ."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row.relation, {}).update(dict.fromkeys(row.attributes))
    return {relation: list(names) for relation, names in found.items()}
