"""Scores of a run: means over its questions, with intervals, and what they took. Needs no key, no sandbox.

An attempt that failed for infrastructure reasons is counted both ways: as a miss, and left out. A question that was
not asked to the end (the run was stopped) is in neither figure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import write_json
from harness.intervals import interval
from harness.ledger import total_usage
from harness.metrics import METRICS, Scores
from harness.prices import PriceList
from harness.results import ASKED, TIMES, QuestionResult, RunResults, read_results

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
class RunScore:
    """Everything that `harness score` says about one run.

    Usage, cost, turns and times are sums over all attempts, those that were retried too. `cost` is in US dollars,
    None where an attempt's is unknown. `first_attempt` is None where nothing was retried.
    """

    run: str
    graph: str
    mode: str
    model: str
    questions: tuple[QuestionResult, ...]
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
        """How many questions are in `state`: scored, failed, open or without_gold."""
        return sum(question.state == state for question in self.questions)

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json` and of scores.json, without the single questions."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{key: getattr(self, key) for key in ("run", "graph", "mode", "model")},
            **self.failed_is_miss.as_dict(),
            "failed_left_out": self.failed_left_out.as_dict(),
            "first_attempt": self.first_attempt.as_dict() if self.first_attempt else None,
            "questions": len(self.questions),
            **{state: self.count(state) for state in (*ASKED, "open", "without_gold")},
            **{key: getattr(self, key) for key in ("attempts", "stop_reasons", "usage", "cost", "turns", "times")},
        }


def score_run(run: Path, prices: PriceList | None = None, data: Path | None = None) -> RunScore:
    """Score the run folder `run`; `prices` and `data` as in `read_results`. Raises UserError."""
    return score_results(read_results(run, prices, data))


def score_results(results: RunResults) -> RunScore:
    """The score of a run whose results have been read."""
    questions = tuple(results.questions.values())
    asked = [question for question in questions if question.asked]
    records = [record for question in questions for record in question.records]
    costs = [question.cost for question in questions]
    retried = any(question.attempts > len(question.agents) for question in asked)
    return RunScore(
        run=str(results.path),
        graph=results.graph,
        mode=str(results.mode["name"]),
        model=results.model,
        questions=questions,
        failed_is_miss=Figures.over([question.scores for question in asked]),
        failed_left_out=Figures.over([question.scores for question in asked if question.state == "scored"]),
        first_attempt=Figures.over([question.first for question in asked]) if retried else None,
        attempts=len(records),
        stop_reasons=dict(Counter(record.stop_reason for record in records)),
        usage=total_usage([record.usage for record in records]),
        cost=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        turns=sum(question.turns for question in questions),
        times={part: math.fsum(question.time(part) for question in questions) for part in TIMES},
    )


def write_scores(run: Path, score: RunScore) -> None:
    """Write scores.json into the run folder. Raises OSError."""
    queries = [
        {
            "id": each.question.id,
            "state": each.state,
            **dict(zip(METRICS, each.scores, strict=True)),
            "attempts": each.attempts,
        }
        for each in score.questions
    ]
    write_json(run / SCORES, {**score.as_dict(), "queries": queries})
