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
from typing import Any

from exporter import Export, read_questions
from harness.errors import UserError
from harness.suggest import hint
from harness.text import count_of

ALL = ("train", "val", "test")  # what the split `all` stands for, besides questions without a split
EXPORT = "export"  # the source of questions that come with the graph
SPLITS = (*ALL, "test-0.1", "human", "all")


@dataclass(frozen=True)
class Question:
    """One question. `gold` holds node ids, empty where the answer is unknown; `split` is empty where it names none."""

    id: str
    text: str
    gold: tuple[int, ...]
    split: str


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one run, in the order they are asked. `sha256` is over their ids, texts and gold."""

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
    only: Callable[[str, str], bool] | None = None,
    only_hint: str = "",
) -> QuestionSet:
    """The questions to ask of `export`: its own, or those of `file`.

    No `splits` means test where there are test questions, else all. `sample` questions are drawn with `seed` and
    kept in order, then the first `limit` are taken. `only` says by id and text which questions can be asked at
    all (a backbone that knows some of them), and `only_hint` what to do where none can; it goes before the default
    split. Raises UserError.
    """
    source = str(file.resolve()) if file else EXPORT
    found = _from_file(file, export) if file else [_own(row) for row in export.queries()]
    if not found:
        raise UserError("this graph has no questions of its own", "give some with --queries FILE")
    if only:
        found = [question for question in found if only(question.id, question.text)]
        if not found:
            raise UserError(f"the model knows none of the questions in {file or f'graph {export.name}'}", only_hint)
    chosen = found if only and not splits else _in_splits(found, splits)
    if sample is not None and sample < len(chosen):
        picked = sorted(random.Random(seed).sample(range(len(chosen)), sample))  # noqa: S311 - not for secrets
        chosen = [chosen[i] for i in picked]
    chosen = chosen[:limit]
    return QuestionSet(tuple(chosen), source, digest(chosen))


def digest(questions: Iterable[Question]) -> str:
    """sha256 of the questions, whatever file they came from."""
    lines = (json.dumps([q.id, q.text, q.gold], ensure_ascii=False) for q in questions)
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
    return Question(row["id"], row["query"], tuple(row["answer_ids"]), row["split"])


def _from_file(file: Path, export: Export) -> list[Question]:
    """The questions of a file, gold as node ids. Raises UserError, and ExportError from reading it."""
    rows = list(read_questions(file))
    given = [(number, text) for number, row in rows for text in row["answer_ids"]]
    known = export.source_ids() if given else {}
    unknown = [(number, text) for number, text in given if text not in known]
    if unknown:
        first = ", ".join(f"'{text}' (line {number})" for number, text in unknown[:3])
        are = "is" if len(unknown) == 1 else "are"
        raise UserError(
            f"question file {file}: {len(unknown)} of {count_of(len(given), 'answer id')} {are} not in the graph:"
            f" {first}" + (", …" if len(unknown) > 3 else ""),
            _about_ids([text for _, text in given], next(iter(known)), export.node_count),
        )
    return [
        Question(row["id"], row["query"], tuple(known[i] for i in row["answer_ids"]), row["split"]) for _, row in rows
    ]


def _about_ids(given: Sequence[str], own: str, nodes: int) -> str:
    """What answer ids should be like; the likeliest mistake is to give node ids, as in an export's own queries."""
    meant = f"answer_ids are the ids of the graph's sources, like '{own}'"
    if all(text.isascii() and text.isdigit() and int(text) < nodes for text in given):
        return f"{meant}, and these look like node ids; the questions that came with an export need no --queries"
    return meant


def _in_splits(questions: Sequence[Question], splits: Sequence[str]) -> list[Question]:
    for split in splits:
        if split not in SPLITS:
            there = [*sorted({question.split for question in questions} - {""}), "all"]
            raise UserError(f"unknown split '{split}'", hint(split, there, "splits there are"))
    has_test = any(question.split == "test" for question in questions)
    wanted: set[str] = set()
    for split in splits or ("test" if has_test else "all",):
        names = {*ALL, ""} if split == "all" else {split}
        if not any(question.split in names for question in questions):
            there = sorted({question.split or "all" for question in questions})
            raise UserError(f"there are no questions in split '{split}'", f"splits there are: {', '.join(there)}")
        wanted |= names
    unique: dict[str, Question] = {}  # a question may stand in test and in test-0.1
    for question in questions:
        if question.split in wanted:
            unique.setdefault(question.id, question)
    return list(unique.values())
