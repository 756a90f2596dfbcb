"""Attempts of a saved run as turns: what the model said in each, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError
from harness.events import Reading
from harness.ledger import AttemptRecord, fold, read_ledger
from harness.metrics import METRICS, score_answer
from harness.runfiles import read_manifest, recorded_export, recorded_questions

_MADE = ("name", "arguments", "program", "characters", "seconds", "error")  # what is kept of a program's call


@dataclass
class Call:
    """One call with its result; `result` is None where the attempt ended before there was one.

    `arguments` is a table where the model's text was one, `text` that text as it was; `made` are calls of the graph's
    tools that its programs made.
    """

    id: str
    name: str
    text: str
    arguments: Mapping[str, Any] | None
    result: Mapping[str, Any] | None = None
    made: Sequence[Mapping[str, Any]] = ()


@dataclass
class Turn:
    """One reply with its calls. `said` are the harness's messages before it."""

    reply: Mapping[str, Any]
    calls: list[Call]
    said: list[Mapping[str, Any]] = field(default_factory=list)
    cleared: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class SavedAttempt:
    """One attempt. `gold` and `scores` are None where gold isn't known; `left` was said after the last reply.

    `damaged` are lines of its trajectory that can't be read, so that something is missing.
    """

    record: AttemptRecord
    start: Mapping[str, Any]
    turns: Sequence[Turn]
    left: Sequence[Mapping[str, Any]]
    gold: tuple[int, ...] | None
    scores: Mapping[str, float] | None
    damaged: tuple[int, ...] = ()

    @property
    def system(self) -> str:
        """The system message, empty where there was none."""
        return str(self.start.get("system", ""))

    @property
    def name(self) -> str:
        """The attempt's name in its run: question, agent and attempt, counted from 0."""
        return f"{self.record.query_id}/{self.record.agent}-{self.record.attempt}"


@dataclass(frozen=True)
class Source:
    """A run to convert. `unknown` says why gold isn't known, where it isn't."""

    run: Path
    manifest: Mapping[str, Any]
    records: Sequence[AttemptRecord]
    gold: Mapping[str, tuple[int, ...]]
    is_candidate: Callable[[int], bool]
    unknown: str = ""
    damaged: list[str] = field(default_factory=list)  # lines that `read` could not read, as FILE:LINE

    @classmethod
    def open(cls, run: Path, data: Path | None = None) -> Source:
        """Read a run folder. Raises UserError where it is none; missing gold is only noted.

        `data` is as in `recorded_export`.
        """
        manifest = read_manifest(run)
        try:
            records = read_ledger(run)
        except ValueError as error:
            raise UserError(str(error), f"`harness check {run}` says what else is wrong") from None
        try:
            export = recorded_export(manifest, run, data)
            questions = recorded_questions(manifest, export, run)
        except UserError as error:
            return cls(run, manifest, records, {}, lambda _: False, str(error))
        return cls(run, manifest, records, {q.id: q.gold for q in questions}, export.is_candidate)

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.manifest["model"]["name"])

    @property
    def mode(self) -> str:
        """The mode's name."""
        return str(self.manifest["mode"]["name"])

    def counted(self) -> list[AttemptRecord]:
        """The attempts that the score is about: each question's and agent's last one."""
        return [state.last for state in fold(self.records).values() if state.last is not None]

    def read(self, records: Sequence[AttemptRecord]) -> Iterator[SavedAttempt]:
        """Read the trajectories of these attempts, one at a time; fills `damaged`.

        An attempt whose beginning is damaged, so that its task isn't known, is left out. Raises UserError for a
        trajectory that isn't there or that lacks its beginning otherwise.
        """
        for record in records:
            path = self.run / record.trajectory
            try:
                attempt, damaged = self._read(record, path)
            except (OSError, ValueError) as error:
                hint = f"`harness check {self.run}` says what else is wrong"
                raise UserError(f"{path} can't be read: {error!r}", hint) from None
            self.damaged.extend(f"{record.trajectory}:{line}" for line in damaged)
            if attempt is not None:
                yield attempt

    def scores(self, record: AttemptRecord) -> dict[str, float] | None:
        """Metrics of an attempt, None without gold; of an attempt that failed for infrastructure reasons, zeros."""
        gold = self.gold.get(record.query_id)
        if not gold:
            return None
        ids = () if record.is_infrastructure else record.ids
        return dict(zip(METRICS, score_answer(ids, gold, self.is_candidate), strict=True))

    def _read(self, record: AttemptRecord, path: Path) -> tuple[SavedAttempt | None, tuple[int, ...]]:
        start: Mapping[str, Any] | None = None
        turns: list[Turn] = []
        said: list[Mapping[str, Any]] = []
        cleared: list[Mapping[str, Any]] = []
        made: list[Mapping[str, Any]] = []
        calls: dict[str, Call] = {}
        reading = Reading(path)
        for _, event in reading:
            kind = event["type"]
            if kind == "start":
                start = event
            elif kind == "notice":
                said.append(event)
            elif kind == "clear":
                cleared.append(event)
            elif kind == "reply":
                found = [Call(c["id"], c["name"], c["arguments"], _table(c["arguments"])) for c in event["calls"]]
                calls.update((call.id, call) for call in found)
                turns.append(Turn(event, found, said, cleared))
                said, cleared = [], []
            elif kind == "client_call":
                made.append({key: event[key] for key in _MADE})
            elif kind == "result" and event["call_id"] in calls:
                call = calls[event["call_id"]]
                call.result, call.made, made = event, made, []
        damaged = tuple(damage.line for damage in reading.damaged)
        if start is None:
            if not damaged:
                raise ValueError("it has no start event")
            return None, damaged
        gold, scores = self.gold.get(record.query_id), self.scores(record)
        return SavedAttempt(record, start, turns, said, gold, scores, damaged), damaged


def reasoning(reply: Mapping[str, Any]) -> str:
    """The reasoning that the provider showed in a reply, empty where it showed none."""
    raw = reply["raw"]
    if isinstance(raw, Mapping):
        text = raw.get("reasoning_content") or raw.get("reasoning")
        return text if isinstance(text, str) else ""
    items = [item for item in raw if isinstance(item, Mapping)] if isinstance(raw, list) else []
    parts = [
        part.get("text", "")
        for item in items
        if item.get("type") == "reasoning"
        for part in [*(item.get("summary") or []), *(item.get("content") or [])]
        if isinstance(part, Mapping)
    ]
    return "\n".join(text for text in parts if isinstance(text, str))


def iso(seconds: float) -> str:
    """Unix seconds as an ISO 8601 time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _table(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
