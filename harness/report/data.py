"""The figures of a report: every system, over each graph and overall, read in several ways.

A reading says which scores of a question count: its final ones with failures as misses or left out, those of the first
attempts, or those of its single agents. The last two exist only where something was retried or has several agents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.compare import OVERALL, RESOURCES, Failures, Figures, Level, Pair, pair_up
from harness.intervals import interval
from harness.metrics import METRICS
from harness.paired import known_means
from harness.results import QuestionResult
from harness.servers import where_asked
from harness.systems import System
from harness.text import count_of

MISS, LEFT_OUT, FIRST, AGENTS = "failed = miss", "failures left out", "first attempts", "single agents"
_FAILURES: dict[str, Failures] = {MISS: "miss", LEFT_OUT: "left_out"}


@dataclass(frozen=True)
class Value:
    """A mean over n questions with its 95 % interval; None where it is unknown or there is no question."""

    n: int
    mean: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Entry:
    """One system over one scope (a graph's name, or overall) in one reading.

    `difference` compares it with the first system; None for the first itself and for readings without comparison.
    """

    system: System
    scope: str
    reading: str
    metrics: dict[str, Value]
    difference: Figures | None

    @property
    def n(self) -> int:
        """How many questions it is over."""
        return self.metrics[METRICS[0]].n


@dataclass(frozen=True)
class Effort:
    """What one system spent over one scope: means per question, and sums (None where a question's is unknown).

    `difference` compares it with the first system.
    """

    system: System
    scope: str
    resources: dict[str, Value]
    totals: dict[str, float | None]
    difference: Figures | None


@dataclass(frozen=True)
class Report:
    """All figures. `scopes` are the graphs, where there are several, and overall."""

    systems: tuple[System, ...]
    scopes: tuple[str, ...]
    entries: tuple[Entry, ...]
    efforts: tuple[Effort, ...]
    pairs: tuple[Pair, ...]

    @property
    def readings(self) -> list[str]:
        """The readings that say something, the published convention first."""
        return list(dict.fromkeys(entry.reading for entry in self.entries))

    def entry(self, reading: str, scope: str, system: System) -> Entry | None:
        """One entry, None where that system has nothing in that reading."""
        found = (e for e in self.entries if (e.reading, e.scope) == (reading, scope) and e.system is system)
        return next(found, None)

    def effort(self, scope: str, system: System) -> Effort:
        """What a system spent over a scope."""
        return next(effort for effort in self.efforts if effort.scope == scope and effort.system is system)

    def notes(self) -> list[str]:
        """What a reader has to know besides the figures."""
        notes = []
        for system in self.systems:
            states = [result.state for _, result in system]
            for state, words in (
                ("failed", "failed for infrastructure reasons"),
                ("open", "not asked to the end, and in no figure"),
                ("without_gold", "without gold, and not scored"),
            ):
                if state in states:
                    notes.append(
                        f"{system.label}: {states.count(state)} of {count_of(len(states), 'question')} {words}"
                    )
            notes += [
                f"{system.label}: the model of {run.path} was asked at several addresses: {where}"
                for run in system.runs.values()
                if (where := where_asked(run.manifest))
            ]
        for pair in self.pairs:
            if pair.left_out.texts():
                notes.append(f"{pair.second.label} against {pair.first.label}: {', '.join(pair.left_out.texts())}")
        return notes


def make_report(systems: Sequence[System]) -> Report:
    """All figures of these systems; the first is what the others are compared with."""
    graphs = list(dict.fromkeys(graph for system in systems for graph in system.runs))
    scopes = (*graphs, OVERALL) if len(graphs) > 1 else (OVERALL,)
    pairs = pair_up(systems)
    results = {
        (position, scope): [r for key, r in system if scope in (OVERALL, key.graph) and r.asked]
        for position, system in enumerate(systems)
        for scope in scopes
    }
    every = [result for asked in results.values() for result in asked]
    entries = [
        Entry(systems[position], scope, reading, metrics, _difference(pairs, position, reading, scope, len(graphs)))
        for reading, rows_of in _readings(every).items()
        for (position, scope), asked in results.items()
        if (metrics := _metrics(asked, rows_of)) is not None
    ]
    efforts = [
        Effort(systems[position], scope, *_spent(asked), _difference(pairs, position, MISS, scope, len(graphs)))
        for (position, scope), asked in results.items()
    ]
    return Report(tuple(systems), scopes, tuple(entries), tuple(efforts), tuple(pairs))


Rows = Callable[[QuestionResult], Sequence[float] | None]


def _readings(results: Sequence[QuestionResult]) -> dict[str, Rows]:
    """The readings that differ from the first one for some question."""
    readings: dict[str, Rows] = {MISS: lambda result: result.scores}
    if any(result.state == "failed" for result in results):
        readings[LEFT_OUT] = lambda result: result.scores if result.state == "scored" else None
    if any(result.attempts > len(result.agents) for result in results):
        readings[FIRST] = lambda result: result.first
    if any(len(result.agents) > 1 for result in results):
        readings[AGENTS] = lambda result: np.mean(result.agents, axis=0).tolist() if len(result.agents) > 1 else None
    return readings


def _metrics(results: Sequence[QuestionResult], rows_of: Rows) -> dict[str, Value] | None:
    rows = [row for result in results if (row := rows_of(result)) is not None]
    if not rows:
        return None
    columns = zip(METRICS, zip(*rows, strict=True), strict=True)
    return {name: Value(len(rows), float(np.mean(column)), interval(column)) for name, column in columns}


def _difference(pairs: Sequence[Pair], position: int, reading: str, scope: str, graphs: int) -> Figures | None:
    if position == 0 or reading not in _FAILURES:
        return None
    level: Level = "overall" if scope == OVERALL else "graph"
    found = pairs[position - 1].at(_FAILURES[reading], level, scope)
    # A pair that shares one graph alone has no breakdown by graphs: its overall figures are that graph's.
    shared = {both.key.graph for both in pairs[position - 1].questions}
    return found or (pairs[position - 1].at(_FAILURES[reading]) if graphs > 1 and shared == {scope} else None)


def _spent(results: Sequence[QuestionResult]) -> tuple[dict[str, Value], dict[str, float | None]]:
    rows = [[getattr(result, name) for name in RESOURCES] for result in results]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(RESOURCES))  # unknown ones are NaN
    found = known_means(table)
    totals = {
        name: None if np.isnan(column).any() else math.fsum(column)
        for name, column in zip(RESOURCES, table.T, strict=True)
    }
    return {name: Value(*each) for name, each in zip(RESOURCES, found, strict=True)}, totals
