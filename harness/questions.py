"""Questions: those that come with an export, or a file of the user's own.

Which are asked is decided here once, by split, sample and limit, and written into the run's manifest.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from exporter import Export
from harness.errors import UserError
from harness.question_file import Row, read_rows
from harness.suggest import hint

ALL = ("train", "val", "test")  # what the split `all` stands for, besides questions without a split
EXPORT = "export"  # the source of questions that come with the graph
SPLITS = (*ALL, "test-0.1", "human", "all")


@dataclass(frozen=True)
class Question:
    """One question. `gold` holds node ids, empty where the answer is unknown; `split` is empty where it has none."""

    id: str
    text: str
    gold: tuple[int, ...]
    split: str


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one run, in the order they are asked. `sha256` is over their ids, texts, gold and splits."""

    questions: tuple[Question, ...]
    source: str
    sha256: str


def load_questions(
    export: Export,
    *,
    splits: Sequence[str] = (),
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    file: Path | None = None,
    only: Callable[[str], bool] | None = None,
) -> QuestionSet:
    """The questions to ask of `export`: its own, or those of `file`.

    No `splits` means test where there are test questions, else all. `sample` questions are drawn with `seed` and
    kept in order, then the first `limit` are taken. `only` says by id which questions can be asked at all (a
    backbone that knows some of them); it goes before the default split. Raises UserError.
    """
    source = str(file.resolve()) if file else EXPORT
    found = _from_file(file, export) if file else [_own(row) for row in export.queries()]
    if not found:
        raise UserError("this graph has no questions of its own", "give some with --queries FILE")
    if only:
        found = [question for question in found if only(question.id)]
        if not found:
            raise UserError(f"the model knows none of the questions in {file or 'the graph'}")
    chosen = found if only and not splits else _in_splits(found, splits)
    if sample is not None and sample < len(chosen):
        picked = sorted(random.Random(seed).sample(range(len(chosen)), sample))  # noqa: S311 - not for secrets
        chosen = [chosen[i] for i in picked]
    chosen = chosen[:limit]
    return QuestionSet(tuple(chosen), source, digest(chosen))


def digest(questions: Iterable[Question]) -> str:
    """sha256 of the questions, whatever file they came from."""
    lines = (json.dumps([q.id, q.text, q.gold, q.split], ensure_ascii=False) for q in questions)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def recorded(export: Export, source: str, ids: Sequence[str], sha256: str, run: str) -> tuple[Question, ...]:
    """The questions that a run's manifest names, read anew from where they were. Raises UserError if they changed."""
    file = None if source == EXPORT else Path(source)
    found = {q.id: q for q in (_from_file(file, export) if file else map(_own, export.queries()))}
    questions = tuple(found[identity] for identity in ids if identity in found)
    if digest(questions) != sha256:
        where = f"question file {file}" if file else f"the questions of {export.path}"
        raise UserError(f"{where} changed since {run} was made", "put back the file that the run was made with")
    return questions


def _own(row: Mapping[str, Any]) -> Question:
    gold = tuple(dict.fromkeys(row.get("answer_ids") or ()))
    return Question(str(row["id"]), row["query"], gold, row.get("split") or "")


def _from_file(file: Path, export: Export) -> list[Question]:
    rows = read_rows(file, SPLITS[:-1])
    ids = export.source_ids() if any(row.gold for row in rows) else {}
    resolve = ids.get if ids else _node_id(export.node_count)
    unknown = [(row, text) for row in rows for text in row.gold if resolve(text) is None]
    if unknown:
        _refuse(file, unknown, sum(len(row.gold) for row in rows), ids, export.node_count)
    return [
        Question(row.id, row.query, tuple(i for text in row.gold if (i := resolve(text)) is not None), row.split)
        for row in rows
    ]


def _node_id(count: int) -> Callable[[str], int | None]:
    def resolve(text: str) -> int | None:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else count
        return number if number < count else None

    return resolve


def _refuse(file: Path, unknown: Sequence[tuple[Row, str]], total: int, ids: Mapping[str, int], count: int) -> NoReturn:
    first = ", ".join(f"'{text}' (line {row.line})" for row, text in unknown[:3])
    more = ", …" if len(unknown) > 3 else ""
    like = f"its ids are the source's own, like '{next(iter(ids))}'" if ids else f"its ids run from 0 to {count - 1}"
    raise UserError(
        f"question file {file}: {len(unknown)} of {total} answer ids are not in the graph: {first}{more}", like
    )


def _in_splits(questions: Sequence[Question], splits: Sequence[str]) -> list[Question]:
    for split in splits:
        if split not in SPLITS:
            raise UserError(f"unknown split '{split}'", hint(split, SPLITS, "splits"))
    has_test = any(question.split == "test" for question in questions)
    wanted: set[str] = set()
    for split in splits or ("test" if has_test else "all",):
        names = {*ALL, ""} if split == "all" else {split}
        if not any(question.split in names for question in questions):
            there = sorted({question.split for question in questions if question.split}) or ["none but all"]
            raise UserError(f"there are no questions in split '{split}'", f"splits there are: {', '.join(there)}")
        wanted |= names
    unique: dict[str, Question] = {}  # a question may stand in test and in test-0.1
    for question in questions:
        if question.split in wanted:
            unique.setdefault(question.id, question)
    return list(unique.values())
