"""A saved run opened for reading: what its manifest refers to, and what became of each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from exporter import Export
from harness.audit.checks.answers import class_by_answer, error_class
from harness.audit.facts import AttemptFacts
from harness.audit.run import context_of
from harness.audit.walk import Context, Job, walk
from harness.errors import UserError
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, read_ledger
from harness.metrics import score_answer
from harness.questions import Question
from harness.runfiles import read_manifest, recorded_export, recorded_questions
from harness.suggest import did_you_mean
from harness.text import line


@dataclass(frozen=True)
class SavedRun:
    """A run folder with what its manifest refers to. `export` is None where it is no longer there."""

    path: Path
    manifest: Mapping[str, Any]
    records: Sequence[AttemptRecord]
    export: Export | None
    questions: Mapping[str, Question]
    lacking: str

    @classmethod
    def open(cls, path: Path, data: Path | None = None) -> SavedRun:
        """Read a run folder. Raises UserError where it is none; a missing export is only noted in `lacking`.

        `data` is as in `recorded_export`.
        """
        manifest = read_manifest(path)
        export, questions, lacking = None, {}, ""
        try:
            export = recorded_export(manifest, path, data)
            questions = {each.id: each for each in recorded_questions(manifest, export, path)}
        except UserError as error:
            lacking = str(error)
        return cls(path, manifest, read_records(path), export, questions, lacking)

    def attempts(self, query_id: str) -> list[AttemptRecord]:
        """All attempts at a question, in order. Raises UserError for an id that the run doesn't have."""
        ids = self.manifest["questions"]["ids"]
        if query_id not in ids:
            near = did_you_mean(query_id, ids)
            raise UserError(f"the run has no question '{query_id}'", near or f"`harness show {self.path}` lists them")
        found = [record for record in self.records if record.query_id == query_id]
        if not found:
            raise UserError(f"question '{query_id}' has not been asked yet", "finish the run with --resume")
        return found

    def gold(self, query_id: str) -> tuple[int, ...] | None:
        """The question's gold as it was recorded; None where it isn't known."""
        question = self.questions.get(query_id)
        return question.gold if question is not None else None

    def verdict(self, record: AttemptRecord) -> str:
        """hit, miss with the rank of the first right id, failed, or - where gold is unknown."""
        gold = self.gold(record.query_id)
        if record.is_infrastructure:
            return "failed"
        if self.export is None or not gold:
            return "-"
        scores = score_answer(record.ids, gold, self.export.is_candidate)
        if scores.hit1:
            return "hit"
        return f"right at {round(1 / scores.mrr)}" if scores.mrr else "miss"

    def class_by_answer(self, record: AttemptRecord) -> str | None:
        """The attempt's error class where the ledger tells it; None where its trajectory has to be read."""
        is_candidate = self._context.is_candidate
        gold = {node for node in self.gold(record.query_id) or () if is_candidate(node)}
        hit = score_answer(record.ids, gold, is_candidate).hit1 == 1
        return class_by_answer(gold, record.ids, failed=record.is_infrastructure, hit=hit)

    def error_class(self, record: AttemptRecord) -> str:
        """What became of the question in this attempt, as in the audit. Reads the trajectory of most misses.

        Raises OSError where it can't be opened.
        """
        return self.class_by_answer(record) or error_class(self.facts(record))

    def facts(self, record: AttemptRecord) -> AttemptFacts:
        """What an audit knows of the attempt. Reads its trajectory; raises OSError where it can't be opened."""
        file = str(trajectory_path(record.query_id, record.agent, record.attempt))
        return walk(Job(file, record, True, self.gold(record.query_id)), self._context)

    @cached_property
    def _context(self) -> Context:
        return context_of(self.path, self.manifest, self.export.path if self.export is not None else None)

    def name_of(self, node: int) -> str:
        """A node's name on one line, empty where the export is gone."""
        if self.export is None or not 0 <= node < self.export.node_count:
            return ""
        return line(str(self.export.node(node)["name"]))


def read_records(run: Path) -> list[AttemptRecord]:
    """The ledger of a run. Raises UserError where a line of it is damaged."""
    try:
        return read_ledger(run)
    except ValueError as error:
        raise UserError(str(error), f"`harness check {run}` says what else is wrong") from None
