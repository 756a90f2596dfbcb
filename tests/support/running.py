"""Runs over the sample graph with scripted words, and a listener that remembers."""

from __future__ import annotations

from collections.abc import Callable

from harness.ledger import AttemptRecord
from harness.questions import Question
from harness.runconfig import RunConfig, RunOutcome
from harness.runner import execute

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


def run(config: RunConfig) -> tuple[RunOutcome, Notes]:
    notes = Notes()
    outcome = execute(config, notes)
    assert notes.over
    return outcome, notes
