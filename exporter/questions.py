"""Question files: JSON Lines, CSV or TSV with `id`, `query` and optionally `answer_ids` and `split`."""

from __future__ import annotations

import ast
import difflib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.inputs import InputFile
from exporter.rows import BadRows, bad_questions, json_rows, kind_of, open_table

SPLITS = ("train", "val", "test", "test-0.1", "human")
_NEEDED = ("id", "query")
_KNOWN = (*_NEEDED, "answer_ids", "split")


def read_questions(
    path: Path, opened: InputFile | None = None, bad: BadRows | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, question): `id` and `query` (texts), `answer_ids` (texts), `split` ("" where it has none), and what
    else the file has.

    In CSV and TSV `answer_ids` is a JSON or Python list, or a single id. Raises ExportError that names the line: a
    field that is missing or misspelt, a text that is empty, an id that occurs twice, an empty file. `opened` is `path`
    where the caller wants to describe what was read, `bad` says what becomes of such lines where they need not stop.
    """
    kind = kind_of(path, ("jsonl", "csv", "tsv"))
    bad = bad or bad_questions()
    seen: set[str] = set()
    with opened or InputFile(path) as file:
        for line, row in json_rows(file, bad) if kind == "jsonl" else _table_rows(file, kind, bad):
            question, problem = _checked(row)
            if not problem and question["id"] in seen:
                problem = f"duplicate question id '{question['id']}'"
            if problem:
                bad.report(path, line, problem)
                continue
            seen.add(question["id"])
            yield line, question
    if not seen and not bad.skipped[path.name]:
        raise ExportError(f"{path}: no questions", "it needs at least one")


def _table_rows(file: InputFile, kind: str, bad: BadRows) -> Iterator[tuple[int, dict[str, Any]]]:
    table = open_table(file, kind, bad)
    problem = _name_problem(table.names)
    if problem:
        raise ExportError(f"{file.path}: line 1: {problem}", f"columns: {', '.join(_KNOWN)}")
    for batch in table.batches():
        for row, line in enumerate(batch.lines):
            yield line, {name: column[row] for name, column in zip(table.names, batch.columns, strict=True)}


def _checked(row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The question in its regular form, and what is wrong with it."""
    problem = _name_problem(row)
    if problem:
        return row, problem
    question = dict(row)
    for key in _NEEDED:
        value = row[key]
        if key == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            return row, f"'{key}' is empty or not a text"
        question[key] = value
    question["split"] = row.get("split") or ""
    if question["split"] not in ("", *SPLITS):
        return row, f"unknown split {question['split']!r}; splits: {', '.join(SPLITS)}"
    try:
        question["answer_ids"] = _ids(row.get("answer_ids"))
    except ValueError as error:
        return row, str(error)
    return question, None


def _name_problem(names: Collection[str]) -> str | None:
    """A field that is needed and not there, or an optional one that is misspelt."""
    others = [name for name in names if name not in _KNOWN]
    for key in _KNOWN:
        near = difflib.get_close_matches(key, others, 1, 0.8)
        if key not in names and near:
            return f"unknown field '{near[0]}'; is '{key}' meant?"
        if key not in names and key in _NEEDED:
            return f"no '{key}' among {', '.join(names) or 'the fields'}"
    return None


def _ids(value: Any) -> list[str]:
    """Distinct ids as texts, in their order."""
    if isinstance(value, str):
        value = _listed(value.strip())
    if value is None:
        return []
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, str | int) for item in value):
        raise ValueError("'answer_ids' is not a list of ids")
    return list(dict.fromkeys(map(str, value)))


def _listed(text: str) -> Any:
    """What a cell holds: a list as JSON or as Python writes it, one id, or nothing."""
    if not text.startswith("["):
        return [text] if text else None
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def mapped_questions(
    path: Path, node_id: Callable[[str], int | None], bad: BadRows, ids: str
) -> Iterator[dict[str, Any]]:
    """Questions with gold in node ids, as the export keeps them; an answer that the graph doesn't have makes a bad row.

    `ids` says what the ids of nodes are in the source.
    """
    for line, question in read_questions(path, bad=bad):
        gold = {source_id: node_id(source_id) for source_id in question["answer_ids"]}
        unknown = next((source_id for source_id, found in gold.items() if found is None), None)
        if unknown is None:
            yield {**question, "answer_ids": list(gold.values())}
        else:
            what = f"answer '{unknown}' of question '{question['id']}' is not in the graph"
            bad.report(path, line, what, f"answer_ids are {ids}")


def counts(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """For the manifest: how many questions, in all and by split."""
    return {"count": len(questions), "splits": dict(Counter(question["split"] for question in questions))}
