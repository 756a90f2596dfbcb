"""Runs over the sample graph's questions in a test: their configuration, and a listener that remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from exporter import Export
from harness.ledger import AttemptRecord, read_ledger
from harness.modes import load_mode
from harness.questions import Question, QuestionSet, load_questions
from harness.runconfig import RunConfig, RunOutcome
from harness.runner import execute
from harness.settings import parse_assignments
from sandbox import Backend
from tests.support.words import Turn, Words

Make = Callable[..., RunConfig]


class Notes:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.records: list[AttemptRecord] = []
        self.texts: list[str] = []
        self.over = False

    def started(self, total: int, done: int) -> None:
        self.total, self.done = total, done

    def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
        assert record.query_id == question.id
        self.records.append(record)

    def notice(self, text: str) -> None:
        self.texts.append(text)

    def closed(self) -> None:
        self.over = True


def maker(biogo: Export, bwrap: Backend, out: Path) -> Make:
    """Makes a run's configuration over the sample's first questions."""
    questions = load_questions(biogo, splits=["all"])

    def config(turns: list[Turn] | Words, count: int = 3, settings: tuple[str, ...] = (), **changes: Any) -> RunConfig:
        chosen = QuestionSet(questions.questions[:count], questions.source, questions.sha256)
        given = RunConfig(
            graph="biogo",
            export=biogo,
            mode=load_mode("files", parse_assignments(settings)),
            profile={"name": "words"},
            backbone=turns if isinstance(turns, Words) else Words(turns),
            sandboxes=bwrap,
            questions=chosen,
            out=out,
        )
        return replace(given, **changes)

    return config


def run(config: RunConfig) -> tuple[RunOutcome, Notes]:
    notes = Notes()
    outcome = execute(config, notes)
    assert notes.over
    return outcome, notes


def stops(path: Path) -> list[tuple[str, int, str]]:
    return sorted((record.query_id, record.attempt, record.stop_reason) for record in read_ledger(path))
