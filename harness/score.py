"""Scores of a run, from its ledger and the gold of the questions that its manifest names. Needs no key, no sandbox.

An attempt that failed for infrastructure reasons is counted both ways: as a miss, and left out. A question that was
never asked (the run was stopped) is in neither figure. Means are over questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exporter import Export
from harness.errors import UserError
from harness.files import write_json
from harness.intervals import interval
from harness.ledger import AgentState, AttemptRecord, fold, read_ledger, total_usage
from harness.messages import Usage
from harness.metrics import METRICS, ZERO, Scores, score_answer
from harness.prices import PriceList, cost
from harness.questions import Question
from harness.runfiles import read_manifest, recorded_export, recorded_questions

SCORES = "scores.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Figures:
    """Means of the four metrics over `n` questions, with 95 % intervals; None where there is no question."""

    n: int
    mean: dict[str, float | None]
    interval: dict[str, tuple[float, float]]

    @classmethod
    def over(cls, scores: Sequence[Scores]) -> Figures:
        """The figures of these questions' scores."""
        columns = dict(zip(METRICS, zip(*scores, strict=True), strict=True)) if scores else dict.fromkeys(METRICS, ())
        mean = {name: math.fsum(values) / len(values) if values else None for name, values in columns.items()}
        return cls(len(scores), mean, {name: interval(values) for name, values in columns.items()})

    def as_dict(self) -> dict[str, Any]:
        """`n`, each metric by its key, and `ci`."""
        return {"n": self.n, **self.mean, "ci": {name: list(ends) for name, ends in self.interval.items()}}


@dataclass(frozen=True)
class QueryScore:
    """One question of a run. `state` is scored, failed, open (not asked) or without_gold."""

    id: str
    state: str
    scores: Scores
    first: Scores
    attempts: int


@dataclass(frozen=True)
class RunScore:
    """Everything that `harness score` says about one run.

    Usage, cost, turns and times are sums over all attempts, those that were retried too. `cost` is in US dollars,
    None where an attempt's is unknown. `first_attempt` is None where nothing was retried.
    """

    run: str
    graph: str
    mode: str
    model: str
    queries: tuple[QueryScore, ...]
    failed_is_miss: Figures
    failed_left_out: Figures
    first_attempt: Figures | None
    attempts: int
    stop_reasons: dict[str, int]
    usage: dict[str, int | None]
    cost: float | None
    turns: int
    times: dict[str, float]

    def count(self, state: str) -> int:
        """How many questions are in `state`."""
        return sum(query.state == state for query in self.queries)

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json` and of scores.json, without the single questions."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{key: getattr(self, key) for key in ("run", "graph", "mode", "model")},
            **self.failed_is_miss.as_dict(),
            "failed_left_out": self.failed_left_out.as_dict(),
            "first_attempt": self.first_attempt.as_dict() if self.first_attempt else None,
            "questions": len(self.queries),
            **{state: self.count(state) for state in ("scored", "failed", "open", "without_gold")},
            **{key: getattr(self, key) for key in ("attempts", "stop_reasons", "usage", "cost", "turns", "times")},
        }


def score_run(run: Path, prices: PriceList | None = None) -> RunScore:
    """Score the run folder `run`; `prices` replaces the recorded costs. Raises UserError."""
    manifest = read_manifest(run)
    export = recorded_export(manifest, run)
    questions = recorded_questions(manifest, export, run)
    try:
        records = read_ledger(run)
    except ValueError as error:
        raise UserError(str(error), f"harness check {run} says what else is wrong") from None
    states = fold(records)
    if any(agent for _, agent in states):
        raise UserError(f"{run} has several agents a question: their votes have to be fused before they are scored")
    queries = tuple(_score_query(question, states.get((question.id, 0)), export) for question in questions)
    asked = [query for query in queries if query.state in ("scored", "failed")]
    model = manifest["model"]
    return RunScore(
        run=str(run),
        graph=manifest["graph"],
        mode=manifest["mode"]["name"],
        model=model["name"],
        queries=queries,
        failed_is_miss=Figures.over([query.scores for query in asked]),
        failed_left_out=Figures.over([query.scores for query in asked if query.state == "scored"]),
        first_attempt=Figures.over([q.first for q in asked]) if any(q.attempts > 1 for q in asked) else None,
        attempts=len(records),
        stop_reasons=dict(Counter(record.stop_reason for record in records)),
        usage=total_usage([record.usage for record in records]),
        cost=_cost(records, prices, model["name"]),
        turns=sum(record.turns for record in records),
        times=_times(records),
    )


def write_scores(run: Path, score: RunScore) -> None:
    """Write scores.json into the run folder. Raises OSError."""
    queries = [
        {"id": q.id, "state": q.state, **dict(zip(METRICS, q.scores, strict=True)), "attempts": q.attempts}
        for q in score.queries
    ]
    write_json(run / SCORES, {**score.as_dict(), "queries": queries})


def _score_query(question: Question, state: AgentState | None, export: Export) -> QueryScore:
    if not question.gold:
        return QueryScore(question.id, "without_gold", ZERO, ZERO, 0)
    if state is None or state.last is None:
        return QueryScore(question.id, "open", ZERO, ZERO, 0)
    counted = sum(record.stop_reason != "interrupted" for record in state.records)
    return QueryScore(
        question.id,
        "failed" if state.last.is_infrastructure else "scored",
        _score_record(question, state.last, export),
        _score_record(question, state.first, export),
        counted,
    )


def _score_record(question: Question, record: AttemptRecord | None, export: Export) -> Scores:
    if record is None or record.is_infrastructure:
        return ZERO
    return score_answer(record.ids, question.gold, export.is_candidate)


def _cost(records: Sequence[AttemptRecord], prices: PriceList | None, model: str) -> float | None:
    if prices is None:
        costs = [record.cost for record in records]
    else:
        costs = [cost(Usage(**record.usage), prices.of(model)) for record in records]
    return math.fsum(each for each in costs if each is not None) if None not in costs else None


def _times(records: Sequence[AttemptRecord]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for record in records:
        times: Mapping[str, float] = asdict(record.times)
        for name, seconds in times.items():
            sums[name] = sums.get(name, 0.0) + seconds
    return sums
