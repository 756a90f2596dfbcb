"""Question files: JSON Lines, CSV or TSV with `id`, `query` and optionally `answer_ids` and `split`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.inputs import InputFile
from exporter.rows import BadRows, json_rows, kind_of, open_table, parse_json

NO_SPLIT = "all"  # of a question that names none
_KEYS = ("id", "query")


def read_questions(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, question): `id` and `query` (texts), `answer_ids` (texts), `split`, and what else the file has.

    In CSV and TSV `answer_ids` is a JSON list, or ids separated by `|`. Raises ExportError that names the line: a
    missing field, a text that is empty, an id that occurs twice, an empty file.
    """
    kind = kind_of(path, ("jsonl", "csv", "tsv"))
    bad = BadRows("stop")
    seen: set[str] = set()
    with InputFile(path) as file:
        for line, row in json_rows(file, bad) if kind == "jsonl" else _table_rows(file, kind, bad):
            question, problem = _checked(row)
            if not problem and question["id"] in seen:
                problem = f"duplicate question id '{question['id']}'"
            if problem:
                bad.report(path, line, problem)
            seen.add(question["id"])
            yield line, question
    if not seen:
        raise ExportError(f"{path}: no questions", "it needs at least one")


def _table_rows(file: InputFile, kind: str, bad: BadRows) -> Iterator[tuple[int, dict[str, Any]]]:
    table = open_table(file, kind, bad)
    for key in _KEYS:
        if key not in table.names:
            raise ExportError(
                f"{file.path}: line 1: no column '{key}'",
                f"columns needed: {', '.join(_KEYS)}; found: {', '.join(table.names)}",
            )
    for batch in table.batches():
        for row, line in enumerate(batch.lines):
            yield line, {name: column[row] for name, column in zip(table.names, batch.columns, strict=True)}


def _checked(row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The question in its regular form, and what is wrong with it."""
    question = dict(row)
    for key in _KEYS:
        value = row.get(key)
        if key == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            return row, f"'{key}' is missing, empty or not a text"
        question[key] = value
    split = row.get("split") or NO_SPLIT
    if not isinstance(split, str):
        return row, "'split' must be a text"
    question["split"] = split
    try:
        question["answer_ids"] = _ids(row.get("answer_ids"))
    except ValueError as error:
        return row, str(error)
    return question, None


def _ids(value: Any) -> list[str]:
    """Distinct ids as texts, in their order."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        value = parse_json(value.encode()) if value.lstrip().startswith("[") else value.split("|")
    if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, str | int) for item in value):
        raise ValueError("'answer_ids' must be a list of ids")
    return list(dict.fromkeys(str(item).strip() for item in value))


def mapped_questions(path: Path, node_id: Callable[[str], int | None], canary: str) -> Iterator[dict[str, Any]]:
    """Questions with gold in node ids, as the export keeps them; each carries the canary that must never be seen
    in a sandbox. Raises ExportError for an answer that the graph doesn't have."""
    for line, question in read_questions(path):
        gold = []
        for source_id in question["answer_ids"]:
            found = node_id(source_id)
            if found is None:
                raise ExportError(
                    f"{path}: line {line}: answer '{source_id}' of question '{question['id']}' is not in the graph",
                    "answer_ids are ids of the node table",
                )
            gold.append(found)
        yield {**question, "answer_ids": gold, "canary": canary}


def counts(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """For the manifest: how many questions, in all and by split."""
    return {"count": len(questions), "splits": dict(Counter(question["split"] for question in questions))}
