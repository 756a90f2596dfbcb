"""Rows of CSV, TSV and JSON Lines files in batches, each with its line number, bad ones reported.

CSV is RFC 4180. TSV cells are literal, so that a tab or line feed can't occur in them, but where a file puts quotes
around its cells (`tsv_quotes`). Lines end with LF or CRLF; empty lines are passed over.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from exporter import tsv
from exporter.counted import counted
from exporter.csv_blocks import columns
from exporter.csv_lines import CsvLines
from exporter.errors import ExportError
from exporter.inputs import InputFile
from exporter.tsv_quotes import quotes_cells, stand_around

OnBadRow = Literal["stop", "skip"]
MAX_DEPTH = 200  # of nested JSON; orjson writes 254 levels at most
_KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
}  # fmt: skip
_TOLD_OF, _TOLD = 10, 300  # bad rows of a file that are told of, characters of what is told
_DIGITS_ONLY = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG_INTEGER = b"0" * 19  # orjson reads integers beyond 64 bits as floats


def kind_of(path: Path, allowed: Sequence[str]) -> str:
    """`csv`, `tsv`, `jsonl` or `parquet` by the file's name, without .gz but for Parquet. Raises ExportError where it
    is none of `allowed`."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    kind = _KINDS.get(suffix)
    if kind is None or kind not in allowed:
        texts = ", ".join(known for known, kind in _KINDS.items() if kind in allowed and kind != "parquet")
        more = " or .parquet" if "parquet" in allowed else ""
        raise ExportError(
            f"{path}: cannot tell the format from the name", f"use one of {texts}, each also with .gz behind it{more}"
        )
    if kind == "parquet" and path.name.endswith(".gz"):
        raise ExportError(f"{path}: a Parquet file can't be gzipped too", "unpack it; Parquet is packed within")
    return kind


class BadRows:
    """What to do with a bad row: stop with an error, or skip it and count. The first of each file are told of."""

    def __init__(self, policy: OnBadRow, instead: str = "leave out bad rows with --skip-bad-rows") -> None:
        """`instead` is what a person can do who won't correct a row."""
        self.policy = policy
        self._instead = instead
        self.skipped: Counter[str] = Counter()
        self.told: list[dict[str, Any]] = []  # file, line, why

    def report(self, path: Path, line: int, what: str, hint: str = "correct the row") -> None:
        """Raise ExportError that names file and line, or count the row as skipped."""
        if self.policy == "stop":
            raise ExportError(f"{path}: line {line}: {what}", f"{hint}, or {self._instead}")
        self.skipped[path.name] += 1
        if self.skipped[path.name] <= _TOLD_OF:
            self.told.append({"file": path.name, "line": line, "why": what[:_TOLD]})

    def silent(self) -> BadRows:
        """For a first pass over rows that will be read again: bad ones are passed over, whatever the policy."""
        return BadRows("skip")


def bad_questions() -> BadRows:
    """For files of questions where no flag leaves rows out."""
    return BadRows("stop", "remove it from the file")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as columns: `columns[i][row]` is a cell, `lines[row]` the line where the row begins (from 1)."""

    lines: Sequence[int]
    columns: list[list[Any]]


class Table(Protocol):
    """A file with a header line."""

    names: list[str]

    def batches(self) -> Iterator[Batch]:
        """All rows below the header that have as many cells as it has."""


def open_table(file: InputFile, kind: str, bad: BadRows) -> Table:
    """Read the header of a CSV or TSV file. Raises ExportError where there is none or a name occurs twice."""
    table = TsvTable(file, bad) if kind == "tsv" else CsvTable(file, bad)
    for name, count in Counter(table.names).items():
        if count > 1:
            raise ExportError(f"{file.path}: line 1: column '{name}' occurs {count} times", "give each its own name")
    return table


def decode(raw: bytes, path: Path, line: int) -> str:
    """`raw` as UTF-8. Raises ExportError that names the line; `line` is that of the first byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line += raw.count(b"\n", 0, error.start)
        raise ExportError(
            f"{path}: line {line}: not UTF-8 (byte 0x{raw[error.start]:02x})", "save the file as UTF-8"
        ) from error


def _empty(path: Path) -> ExportError:
    return ExportError(f"{path}: the file is empty", "it needs a header line and rows")


class TsvTable:
    """Tab-separated rows. A block that is rectangular is split at once; any other line by line. From the first quote on
    a file that puts quotes around its cells is read as CSV is."""

    def __init__(self, file: InputFile, bad: BadRows) -> None:
        self._file = file
        self._bad = bad
        header = file.header()
        if not header.strip():
            raise _empty(file.path)
        text = decode(header, file.path, 1).rstrip("\r\n")
        self.names = text.split("\t")
        self._quoted: bool | None = None  # not known before the first quote
        if any(map(stand_around, self.names)):
            self.names, self._quoted = next(csv.reader([text], delimiter="\t")), True

    def batches(self) -> Iterator[Batch]:
        line = 2
        blocks = self._file.blocks()
        for block in blocks:
            if self._quoted is None and b'"' in block:
                self._quoted = quotes_cells(self._file.path, len(self.names))
            if self._quoted:
                coming = chain((block,), blocks)
                yield from CsvTable(self._file, self._bad, "\t", self.names, coming, line).batches()
                return
            count = block.count(b"\n")
            text = decode(block, self._file.path, line).replace("\r\n", "\n")
            if tsv.is_rectangular(block, len(self.names)):
                yield Batch(range(line, line + count), tsv.columns(text, len(self.names)))
            else:
                yield self._by_line(text, line)
            line += count

    def _by_line(self, text: str, first: int) -> Batch:
        lines: list[int] = []
        rows: list[list[str]] = []
        for number, row in enumerate(text.removesuffix("\n").split("\n"), first):
            cells = row.split("\t")
            if len(cells) == len(self.names):
                lines.append(number)
                rows.append(cells)
            elif row:
                self._bad.report(self._file.path, number, _ragged(len(cells), len(self.names)))
        return _transposed(lines, rows, len(self.names))


class CsvTable:
    """Comma-separated rows with quoting; a cell may hold line feeds. `names` stand for a header that isn't there,
    `blocks` for the file's where some have been read: the next one begins with line `line`.

    A block that is regular is read at once; any other row by row, and up to the end of its last row. Where bad rows are
    skipped, reading goes on at the line behind the one in which a bad row begins, since a quote that is never closed
    swallows rows that are good.
    """

    def __init__(
        self,
        file: InputFile,
        bad: BadRows,
        delimiter: str = ",",
        names: list[str] | None = None,
        blocks: Iterator[bytes] | None = None,
        line: int = 1,
    ) -> None:
        self._file = file
        self._bad = bad
        self._delimiter = delimiter
        self._blocks = file.blocks() if blocks is None else blocks
        self._lines = CsvLines(self._more, again=bad.policy == "skip")
        self._lines.line = line - 1
        csv.field_size_limit(2**31 - 1)  # its default refuses cells beyond 128 kB
        if names is None:
            names = self._header()
        self.names = names
        if not self.names:
            raise _empty(file.path)

    def _more(self) -> str | None:
        """The next block, for a row that goes on in it."""
        block = next(self._blocks, None)
        return None if block is None else decode(block, self._file.path, self._lines.line + 1)

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(iter(self._lines), strict=True, delimiter=self._delimiter)

    def _header(self) -> list[str]:
        try:
            return next(self._reader(), [])
        except csv.Error as error:
            raise ExportError(
                f"{self._file.path}: line 1: not valid CSV ({_said(error)})",
                "the names of the columns must stand there",
            ) from error

    def batches(self) -> Iterator[Batch]:
        behind_header = self._lines.take().encode()
        if behind_header:
            yield self._batch(behind_header)
        for block in self._blocks:
            yield self._batch(block)

    def _batch(self, block: bytes) -> Batch:
        line = self._lines.line + 1
        text = decode(block, self._file.path, line)
        cells = columns(block, len(self.names), self._delimiter)
        if cells is None:
            self._lines.add(text)
            return self._by_row()
        self._lines.line += block.count(b"\n")
        return Batch(range(line, self._lines.line + 1), cells)

    def _by_row(self) -> Batch:
        lines: list[int] = []
        rows: list[list[str]] = []
        coming = self._reader()
        while self._lines:
            start = self._lines.begin()
            try:
                row = next(coming, [])
            except csv.Error as error:
                self._bad.report(self._file.path, start, f"not valid CSV ({_said(error)})")
                self._lines.back()
                coming = self._reader()
                continue
            if len(row) == len(self.names):
                lines.append(start)
                rows.append(row)
            elif row:
                self._bad.report(self._file.path, start, _ragged(len(row), len(self.names)))
                if self._swallowed_a_row():
                    self._lines.back()
                    coming = self._reader()
        return _transposed(lines, rows, len(self.names))

    def _swallowed_a_row(self) -> bool:
        """Whether the second line of the row that was read is a row itself, and no end of a cell."""
        second = "".join(self._lines.row[1:2]).encode()
        return bool(second) and columns(second, len(self.names), self._delimiter) is not None


def _said(error: csv.Error) -> str:
    return str(error).replace("\t", "\\t")


def _ragged(found: int, expected: int) -> str:
    return f"{counted(found, 'cell')}, but the header has {expected}"


def _transposed(lines: list[int], rows: list[list[str]], width: int) -> Batch:
    return Batch(lines, [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)])


def json_rows(file: InputFile, bad: BadRows) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a JSON Lines file with their line numbers.

    NaN and infinities, which are not JSON but which Python writes, are read as null. Integers keep all their digits.
    """
    line = 0
    for line, raw in enumerate(file.lines(), 1):
        if not raw.strip():
            continue
        try:
            value = parse_json(raw)
            _limit_depth(raw, value)
        except ValueError as error:
            decode(raw, file.path, line)  # says so where the encoding is at fault
            bad.report(file.path, line, str(error))
            continue
        if isinstance(value, dict):
            yield line, value
        else:
            bad.report(file.path, line, "not a JSON object; there must be one object a line")
    if not line:
        raise ExportError(f"{file.path}: the file is empty", "it needs one JSON object a line")


def parse_json(raw: bytes) -> Any:
    """One JSON text, NaN and infinities as null. Raises ValueError that says what is wrong with it."""
    try:
        exact = _LONG_INTEGER not in raw.translate(_DIGITS_ONLY)
        value = orjson.loads(raw) if exact else _parse_slowly(raw)
    except orjson.JSONDecodeError:
        value = _parse_slowly(raw)
    return value


def _parse_slowly(raw: bytes) -> Any:
    """What orjson refuses or reads inexactly: NaN, integers beyond 64 bits, numbers beyond a float's range."""
    try:
        value = _cleaned(json.loads(raw.decode("utf-8")))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg}, column {error.colno})") from error
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half of a surrogate pair, which UTF-8 cannot hold") from error
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    except RecursionError as error:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep") from error
    return value


def _cleaned(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value


def _limit_depth(raw: bytes, value: Any) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _items(container)]
    if any(isinstance(item, list | dict) for item in level):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
