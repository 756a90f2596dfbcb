"""Reads a question file: JSON Lines or CSV with `id`, `query`, and optionally `answer_ids` and `split`.

Files may be gzipped, have a byte order mark and CRLF. Every mistake names the file and the line.
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.suggest import did_you_mean, hint

REQUIRED = ("id", "query")
OPTIONAL = ("answer_ids", "split")


@dataclass(frozen=True)
class Row:
    """One question as its file has it; `gold` holds ids as text, `line` is where it starts."""

    line: int
    id: str
    query: str
    gold: tuple[str, ...]
    split: str


def read_rows(path: Path, splits: Sequence[str]) -> list[Row]:
    """Every question of the file in its order. `splits` are the names a split may have. Raises UserError."""
    text = _text(path)
    name = path.name.removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        records = _jsonl(path, text)
    elif name.endswith(".csv"):
        records = _csv(path, text)
    else:
        raise UserError(f"question file {path}: unknown kind of file", "name it .jsonl or .csv (or with .gz behind it)")
    rows = [_row(path, line, record, splits) for line, record in records]
    if not rows:
        raise UserError(f"question file {path} is empty", "each question needs an id and a query")
    first: dict[str, int] = {}
    for row in rows:
        if first.setdefault(row.id, row.line) != row.line:
            raise UserError(
                f"question file {path}, line {row.line}: id '{row.id}' is that of line {first[row.id]} too",
                "each question needs an id of its own",
            )
    return rows


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.name.endswith(".gz"):
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise UserError(f"there is no question file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UserError(f"question file {path}: {reason}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"question file {path}, line {line}: not UTF-8", "save it as UTF-8") from None


def _jsonl(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(
                f"question file {path}, line {number}: not JSON",
                'for example: {"id": "q1", "query": "Which genes …?", "answer_ids": [1, 2]}',
            ) from None
        if not isinstance(record, dict):
            raise UserError(f"question file {path}, line {number}: not a JSON object but {type(record).__name__}")
        _check_names(path, number, record)
        yield number, record


def _csv(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    start = 1
    try:
        for cells in reader:
            if header is None:
                header = [cell.strip() for cell in cells]
                if any(header):
                    _check_names(path, 1, header)
                else:
                    header = None
            elif cells:
                if len(cells) != len(header):
                    raise UserError(
                        f"question file {path}, line {start}: {len(cells)} columns where the header has {len(header)}",
                        "put double quotes around a text with commas in it",
                    )
                yield start, {key: cell for key, cell in zip(header, cells, strict=True) if cell or key in REQUIRED}
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"question file {path}, line {start}: {error}") from None


def _check_names(path: Path, line: int, names: Sequence[str] | Mapping[str, Any]) -> None:
    """Refuse a record without the columns it needs, or with one that is a misspelt optional one."""
    known = (*REQUIRED, *OPTIONAL)
    extra = [name for name in names if name not in known]
    for key in known:
        if key in names:
            continue
        near = next((name for name in extra if did_you_mean(name, [key])), None)
        if near is not None:
            raise UserError(f"question file {path}, line {line}: unknown column '{near}'", f"did you mean '{key}'?")
        if key in REQUIRED:
            raise UserError(
                f"question file {path}, line {line}: there is no '{key}' among {', '.join(names) or 'the columns'}",
                f"columns: {', '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}",
            )


def _row(path: Path, line: int, record: Mapping[str, Any], splits: Sequence[str]) -> Row:
    where = f"question file {path}, line {line}"
    identity, query, split = record["id"], record["query"], record.get("split")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or not str(identity).strip():
        raise UserError(f"{where}: the id is {identity!r}", "an id is text or a whole number")
    if not isinstance(query, str) or not query.strip():
        raise UserError(f"{where}: the query of '{identity}' is empty" if query in ("", None) else f"{where}: no text")
    if split is not None and split not in splits:
        raise UserError(f"{where}: unknown split {split!r}", hint(str(split), splits, "splits"))
    return Row(line, str(identity), query, _gold(where, record.get("answer_ids")), split or "")


def _gold(where: str, value: Any) -> tuple[str, ...]:
    """Ids as text from a JSON list, the text of a JSON or Python list, or a single id."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = _listed(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or any(isinstance(i, bool) or not isinstance(i, str | int) for i in value):
        raise UserError(f"{where}: answer_ids is {value!r}", "give a list of ids, for example [12, 7]")
    return tuple(dict.fromkeys(str(item) for item in value))


def _listed(text: str) -> Any:
    if not text.strip().startswith("["):
        return [text.strip()] if text.strip() else []
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text
