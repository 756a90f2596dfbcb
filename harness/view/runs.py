"""The runs that are looked at, as rows of questions.

A run that goes on is followed: its ledger is read again when it has grown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from harness.audit.checks.answers import UNREADABLE
from harness.errors import UserError
from harness.events import trajectory_path
from harness.fuse import answer_of
from harness.ledger import LEDGER, AgentState, AttemptRecord, fold
from harness.metrics import score_answer
from harness.runfiles import line_cap
from harness.saved import SavedRun, read_records
from harness.show import total_cost
from harness.text import line

VERDICTS = ("hit", "miss", "failed", "open", "no gold")


@dataclass(frozen=True)
class Row:
    """One question of a run. `verdict` is one of VERDICTS; `ids` the fused answer of its agents.

    `rank` is the place of the first right id, None where there is none or it isn't known.
    """

    id: str
    text: str
    split: str
    verdict: str
    rank: int | None
    ids: tuple[int, ...]
    agents: tuple[AgentState, ...]

    @property
    def records(self) -> list[AttemptRecord]:
        """All attempts of all agents."""
        return [record for agent in self.agents for record in agent.records]

    @property
    def last(self) -> list[AttemptRecord]:
        """The attempt of each agent that counts."""
        return [agent.records[-1] for agent in self.agents if agent.records]


class ViewedRun:
    """A run folder that is looked at. Safe to use from several threads. `number` is its place among the runs."""

    def __init__(self, number: int, path: Path, data: Path | None = None) -> None:
        """`data` is as in `recorded_export`. Raises UserError where it is no run folder."""
        self.number = number
        self._size = _ledger_size(path)
        self.saved = SavedRun.open(path, data)
        self._rows: tuple[Row, ...] | None = None
        self._classes: dict[str, str] = {}
        self._lock = threading.Lock()

    @cached_property
    def nodes(self) -> int:
        """How many nodes the run's graph has."""
        return int(self.saved.manifest["export"]["nodes"])

    @cached_property
    def line_cap(self) -> int | None:
        """The mode's `output.line_cap`."""
        return line_cap(self.saved.manifest)

    @property
    def mode(self) -> str:
        """The mode's name."""
        return line(str(self.saved.manifest["mode"]["name"]))

    def rows(self) -> tuple[Row, ...]:
        """Its questions as they are now, in the order they are asked. Raises UserError for a damaged ledger."""
        with self._lock:
            size = _ledger_size(self.saved.path)
            if size != self._size:
                self.saved = replace(self.saved, records=read_records(self.saved.path))
                self._size, self._rows = size, None
            if self._rows is None:
                self._rows = tuple(_rows(self.saved))
            return self._rows

    def row(self, query_id: str) -> Row:
        """One question. Raises UserError for an id that the run doesn't have."""
        for row in self.rows():
            if row.id == query_id:
                return row
        raise UserError(f"the run has no question '{query_id}'")

    def record(self, query_id: str, agent: int, attempt: int) -> AttemptRecord:
        """One attempt. Raises UserError where there is none."""
        for record in self.row(query_id).records:
            if (record.agent, record.attempt) == (agent, attempt):
                return record
        raise UserError(f"question '{query_id}' has no attempt {attempt + 1} of agent {agent + 1}")

    def trajectory(self, record: AttemptRecord) -> Path:
        """Where an attempt's trajectory lies by the layout, whatever the ledger says."""
        return self.saved.path / trajectory_path(record.query_id, record.agent, record.attempt)

    def known_class(self, record: AttemptRecord) -> str | None:
        """An attempt's error class if no trajectory has to be read for it."""
        return self._classes.get(_key(record)) or self.saved.class_by_answer(record)

    def error_class(self, record: AttemptRecord) -> str:
        """An attempt's error class; reads its trajectory where that takes it, once."""
        found = self.known_class(record)
        if found is None:
            try:
                found = self.saved.error_class(record)
            except OSError:
                found = UNREADABLE
            self._classes[_key(record)] = found
        return found

    def says(self, row: Row, text: str) -> bool:
        """Whether a trajectory of a question holds a text, upper and lower case (of ASCII) alike."""
        needle = orjson.dumps(text)[1:-1].lower()
        return any(needle in _lower(self.trajectory(record)) for record in row.records)


def _rows(saved: SavedRun) -> Iterator[Row]:
    states = fold(saved.records)
    mode = saved.manifest["mode"]
    settings, most = mode["agents"], mode["answer"]["max_ids"]
    for query_id in saved.manifest["questions"]["ids"]:
        keys = [(query_id, agent) for agent in range(settings.get("count", 1))]
        agents = tuple(states.get(key, AgentState(*key)) for key in keys)
        answer = answer_of(agents, settings.get("fuse", "vote"), settings.get("seed", 0), most)
        question, gold = saved.questions.get(query_id), saved.gold(query_id)
        rank = None
        if answer.state == "scored" and gold and saved.export is not None:
            scores = score_answer(answer.ids, gold, saved.export.is_candidate)
            rank = round(1 / scores.mrr) if scores.mrr else None
        verdict: str = answer.state
        if verdict == "scored":
            verdict = "no gold" if not gold else "hit" if rank == 1 else "miss"
        text, split = (line(question.text), line(question.split)) if question else ("", "")
        yield Row(query_id, text, split, verdict, rank, answer.ids, agents)


def brief(run: ViewedRun, row: Row) -> dict[str, Any]:
    """A row for the list. Costs are in US dollars; `classes` has None where a trajectory has to be read."""
    records = row.records
    return {
        "run": run.number, "id": row.id, "label": line(row.id), "text": row.text, "split": row.split,
        "verdict": row.verdict, "rank": row.rank,
        "answer": [[node, run.saved.name_of(node)] for node in row.ids[:3]], "ids": len(row.ids),
        "classes": [run.known_class(record) for record in row.last],
        "stops": list(dict.fromkeys(record.stop_reason for record in row.last)),
        "limits": list(dict.fromkeys(record.limit for record in row.last if record.limit)),
        "last": [[record.agent, record.attempt] for record in row.last],
        "attempts": len(records), "turns": sum(record.turns for record in records),
        "seconds": sum(record.times.wall for record in records), "cost": total_cost(records) if records else None,
    }  # fmt: skip


def summary(run: ViewedRun, rows: Sequence[Row]) -> dict[str, Any]:
    """A run for the page's head, with how many of its questions are what."""
    manifest = run.saved.manifest
    records = [record for row in rows for record in row.records]
    return {
        "number": run.number, "folder": line(run.saved.path.name or str(run.saved.path)), "mode": run.mode,
        "path": line(str(run.saved.path)), "graph": line(str(manifest["graph"])),
        "model": line(str(manifest["model"]["name"])), "nodes": run.nodes, "lacking": line(run.saved.lacking),
        "questions": len(rows), "verdicts": _count(row.verdict for row in rows),
        "stops": _count(record.stop_reason for row in rows for record in row.last),
        "cost": total_cost(records), "records": run.saved.export is not None,
    }  # fmt: skip


def _count(names: Iterator[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def _key(record: AttemptRecord) -> str:
    return str(trajectory_path(record.query_id, record.agent, record.attempt))


def _ledger_size(run: Path) -> int:
    path = run / LEDGER
    return path.stat().st_size if path.exists() else 0


def _lower(path: Path) -> bytes:
    try:
        return path.read_bytes().lower()
    except OSError:
        return b""
