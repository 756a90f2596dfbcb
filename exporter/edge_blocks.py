"""Reads edges/NN.tsv in blocks, ids as arrays, strictly: a row that is not as the layout says has its own fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter import tsv
from exporter.counted import counted
from exporter.errors import ExportError
from exporter.inputs import whole_lines

Ids = NDArray[np.int64]
TypeIds = NDArray[np.integer[Any]]

_BLOCK_BYTES = 2 * 1024 * 1024
_COUNTED_TYPES = 256  # up to so many node types, pairs of them are counted without sorting
_MIXED_TYPES = 65_535  # up to so many node types, numbers of pairs fit 32 bits
_MAX_DIGITS = 18  # fits 64 bits


@dataclass(frozen=True)
class EdgeRows:
    """Consecutive rows of an edge file: their ids, and the text they were read from."""

    first_line: int  # counted from 1, the header being line 1
    sources: Ids
    targets: Ids
    text: bytes

    def lines(self) -> list[bytes]:
        """The rows as they are in the file, with their line feeds."""
        return [line + b"\n" for line in self.text[:-1].split(b"\n")]

    def attributes(self, width: int) -> Iterator[tuple[str | None, ...]]:
        """The unescaped cells behind the two ids, row by row; `width` counts all cells of a row."""
        if width == 2:
            yield from ((),) * len(self.sources)
            return
        cells = tsv.columns(self.text.decode(), width)[2:]
        yield from zip(*(map(tsv.unescape, column) for column in cells), strict=True)


class BadEdgeRow(Exception):
    """A row that is not well-formed; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def read_edge_blocks(path: Path, width: int) -> Iterator[EdgeRows]:
    """All rows below the header. Raises BadEdgeRow at the first line that hasn't `width` cells or two plain ids."""
    with path.open("rb") as file:
        file.readline()
        line = 2
        for text in whole_lines(file, _BLOCK_BYTES):
            yield _parsed(text, width, line)
            line += text.count(b"\n")


def checked_edge_blocks(path: Path, width: int) -> Iterator[EdgeRows]:
    """`read_edge_blocks` for an export that is trusted to be sound: a bad row raises ExportError."""
    try:
        yield from read_edge_blocks(path, width)
    except BadEdgeRow as bad:
        raise ExportError(f"{path}: line {bad.line}: {bad}", "the export is damaged: make it again") from bad
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}", "the export is damaged: make it again") from error


def count_triples(type_ids: TypeIds, sources: Ids, targets: Ids) -> Counter[tuple[int, int]]:
    """How many edges there are for each pair (type id of the source, type id of the target)."""
    types = int(type_ids.max()) + 1
    # numpy has no integer for an unsigned one of 64 bits and a signed one: it would take floats.
    kind = np.min_scalar_type(types * types) if types <= _MIXED_TYPES else np.dtype(np.int64)
    pairs = type_ids[sources].astype(kind) * types + type_ids[targets]
    if types <= _COUNTED_TYPES:
        counts = np.bincount(pairs)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(pairs, return_counts=True)
    return Counter({divmod(pair, types): count for pair, count in zip(found.tolist(), counts.tolist(), strict=True)})


def canonical(type_ids: TypeIds, sources: Ids, targets: Ids) -> NDArray[np.bool_]:
    """Which edges have their source before their target: lower type id first, then lower node id."""
    source_types, target_types = type_ids[sources], type_ids[targets]
    before: NDArray[np.bool_] = (source_types < target_types) | ((source_types == target_types) & (sources < targets))
    return before


def _parsed(text: bytes, width: int, line: int) -> EdgeRows:
    if not tsv.is_rectangular(text, width):
        for number, row_text in enumerate(text[:-1].split(b"\n"), line):
            cells = row_text.count(b"\t") + 1
            if cells != width:
                raise BadEdgeRow(number, f"{counted(cells, 'cell')}, but the header has {width}")
    if width > 2:
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadEdgeRow(line + text.count(b"\n", 0, error.start), "not UTF-8") from error
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((data == 9) | (data == 10)).reshape(-1, width)
    starts = np.empty(len(ends), np.int64)
    starts[0] = 0
    starts[1:] = ends[:-1, -1] + 1
    sources, bad_sources = _integers(data, starts, ends[:, 0])
    targets, bad_targets = _integers(data, ends[:, 0] + 1, ends[:, 1])
    for column, bad in (("source", bad_sources), ("target", bad_targets)):
        if bad.any():
            row = int(np.argmax(bad))
            raise BadEdgeRow(line + row, f"the {column} is not a plain integer")
    return EdgeRows(line, sources, targets, text)


def _integers(data: NDArray[np.uint8], starts: Ids, ends: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """The decimal numbers in `data[start:end]`, and which of them are none (or have leading zeros)."""
    lengths = ends - starts
    longest = int(min(lengths.max(initial=0), _MAX_DIGITS))
    bad = (lengths < 1) | (lengths > _MAX_DIGITS)
    bad |= (lengths > 1) & (data[starts] == 48)
    values = np.zeros(len(starts), np.int64)
    for place in range(longest):
        inside = lengths > place
        digits = data[np.where(inside, ends - 1 - place, 0)].astype(np.int64) - 48
        bad |= inside & ((digits < 0) | (digits > 9))
        values += np.where(inside, digits * 10**place, 0)
    return values, bad
