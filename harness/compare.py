"""Systems compared on the questions that both were asked, each with the first: `harness compare`.

Differences are the second system's minus the first's. Everything is computed twice, with attempts that failed for
infrastructure reasons as misses, and with their questions left out. What each figure means is in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from harness.errors import UserError
from harness.metrics import METRICS
from harness.paired import Difference, Discordance, Floats, differences, holm, mcnemar, resolvable_hits
from harness.results import QuestionResult
from harness.systems import Key, System
from harness.where import Where

SCHEMA_VERSION = 1
RESOURCES = ("cost", "tokens", "turns", "seconds")
OVERALL = "overall"

Failures = Literal["miss", "left_out"]
Level = Literal["overall", "graph", "split"]


@dataclass(frozen=True)
class Both:
    """A question and what both systems made of it."""

    key: Key
    first: QuestionResult
    second: QuestionResult

    @property
    def failed(self) -> bool:
        """Whether either failed for infrastructure reasons."""
        return "failed" in (self.first.state, self.second.state)

    @property
    def outcome(self) -> float:
        """Above 0 where the second did better, below 0 where worse: by Hit@1, then MRR, then Recall@20."""
        one, two = self.first.scores, self.second.scores
        steps = (two.hit1 - one.hit1, two.mrr - one.mrr, two.recall20 - one.recall20)
        return next((step for step in steps if step), 0.0)


@dataclass(frozen=True)
class Figures:
    """Two systems over one set of questions: all of them, those of a graph, or those of a split."""

    level: Level
    name: str
    failures: Failures
    n: int
    metrics: dict[str, Difference]
    hits: Discordance
    resources: dict[str, Difference]
    wins: int
    losses: int

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json`; Hit@1 has the discordant counts and p-values with it."""
        quantities = {name: _difference(value) for name, value in {**self.metrics, **self.resources}.items()}
        quantities[METRICS[0]].update(
            only_first=self.hits.only_first, only_second=self.hits.only_second, p=self.hits.p, p_holm=self.hits.adjusted
        )
        counts = {"wins": self.wins, "losses": self.losses, "ties": self.n - self.wins - self.losses}
        return {"level": self.level, "name": self.name, "failures": self.failures, "n": self.n, **quantities, **counts}


@dataclass(frozen=True)
class LeftOut:
    """How many questions are not compared, and why."""

    only_first: int  # asked in the first system alone
    only_second: int
    unfinished: int  # not asked to the end in one of them
    changed: int  # the same id with another text, or another gold
    without_gold: int
    condition: int  # not kept by --where

    def texts(self) -> list[str]:
        """The counts that aren't 0, in words."""
        words = {
            "only_first": "asked in the first alone",
            "only_second": "asked in the second alone",
            "unfinished": "not finished in both",
            "changed": "with another text or gold",
            "without_gold": "without gold",
            "condition": "not kept by --where",
        }
        return [f"{getattr(self, name)} {text}" for name, text in words.items() if getattr(self, name)]


@dataclass(frozen=True)
class Pair:
    """The first system and another one. `questions` are those compared, in the order of the first."""

    first: System
    second: System
    questions: tuple[Both, ...]
    left_out: LeftOut
    figures: tuple[Figures, ...]

    def at(self, failures: Failures, level: Level = "overall", name: str = OVERALL) -> Figures | None:
        """The figures of one set of questions."""
        wanted = (failures, level, name)
        return next((each for each in self.figures if (each.failures, each.level, each.name) == wanted), None)

    @property
    def failed(self) -> int:
        """Questions that failed for infrastructure reasons in either system."""
        return sum(both.failed for both in self.questions)

    def as_dict(self, *, questions: bool) -> dict[str, Any]:
        """The form of `--json`."""
        table = {
            "first": self.first.label,
            "second": self.second.label,
            "questions_compared": len(self.questions),
            "questions_left_out": asdict(self.left_out),
            "failed": self.failed,
            "figures": [figures.as_dict() for figures in self.figures],
        }
        return {**table, "questions": [_question(both) for both in self.decided()]} if questions else table

    def decided(self) -> list[Both]:
        """The questions that one did better on: the second's wins, then its losses, the clearest first."""
        decided = [both for both in self.questions if both.outcome]
        return sorted(decided, key=lambda both: (both.outcome < 0, -abs(both.outcome)))


def compare(systems: Sequence[System], where: Where | None = None, others: Sequence[System] = ()) -> list[Pair]:
    """Compare each system with the first. `others` has a system for each of `where.folders`.

    Raises UserError where there is nothing to compare, or the condition doesn't fit these runs.
    """
    if len(systems) < 2:
        alone = " and ".join(f"{system.label} over {', '.join(system.runs)}" for system in systems)
        raise UserError(f"nothing to compare: there is one system, {alone}", "give two runs or more, or a parent")
    pairs = pair_up(systems, where, others)
    if not any(pair.questions for pair in pairs):
        kept = sum(pair.left_out.condition for pair in pairs)
        why = "no question is kept by --where" if kept else "the runs share no question"
        raise UserError(f"nothing to compare: {why}", "left out: " + ", ".join(pairs[0].left_out.texts()))
    return pairs


def pair_up(systems: Sequence[System], where: Where | None = None, others: Sequence[System] = ()) -> list[Pair]:
    """The first system with each other one; a pair may have no question in common."""
    named = dict(zip(where.folders, others, strict=True)) if where else {}
    condition = where.bind(list(systems), named) if where else None
    asked_everywhere = [key for key, _ in systems[0] if all(system.has(key) for system in systems)]
    kept = {key for key in asked_everywhere if condition.holds(key)} if condition else None
    return _adjust([_pair(systems[0], second, kept) for second in systems[1:]])


def _pair(first: System, second: System, kept: set[Key] | None) -> Pair:
    common: list[Both] = []
    counts = dict.fromkeys(LeftOut.__dataclass_fields__, 0)
    for key, one in first:
        two = second.get(key)
        if two is None:
            counts["only_first"] += 1
            continue
        both = Both(key, one, two)
        reason = _reason(both, first, second, kept)
        if reason:
            counts[reason] += 1
        else:
            common.append(both)
    counts["only_second"] = sum(first.get(key) is None for key, _ in second)
    figures = tuple(_all_figures(common)) if common else ()
    return Pair(first, second, tuple(common), LeftOut(**counts), figures)


def _reason(both: Both, first: System, second: System, kept: set[Key] | None) -> str | None:
    """Why a question that both systems have is not compared."""
    states = {both.first.state, both.second.state}
    if _changed(both, first, second):
        return "changed"
    if "without_gold" in states:
        return "without_gold"
    if "open" in states:
        return "unfinished"
    return "condition" if kept is not None and both.key not in kept else None


def _changed(both: Both, first: System, second: System) -> bool:
    one, two = both.first.question, both.second.question
    digests = {system.runs[both.key.graph].manifest["export"]["digest"] for system in (first, second)}
    same_ids = len(digests) == 1  # otherwise the same node may have another id
    return one.text != two.text or (same_ids and set(one.gold) != set(two.gold))


def _all_figures(questions: Sequence[Both]) -> Iterable[Figures]:
    """Every set of questions under both conventions; no breakdown into a single part, which would say nothing new."""
    sets: list[tuple[Level, str, list[Both]]] = [("overall", OVERALL, list(questions))]
    breakdowns: dict[Level, Callable[[Both], str]] = {
        "graph": lambda both: both.key.graph,
        "split": lambda both: both.first.question.split,
    }
    for level, name_of in breakdowns.items():
        parts = dict.fromkeys(map(name_of, questions))
        if len(parts) > 1:
            sets += [(level, part, [both for both in questions if name_of(both) == part]) for part in parts]
    for level, name, members in sets:
        figures = _figures(level, name, "miss", members)
        yield figures
        ended = [both for both in members if not both.failed]
        same = len(ended) == len(members)
        yield replace(figures, failures="left_out") if same else _figures(level, name, "left_out", ended)


def _figures(level: Level, name: str, failures: Failures, questions: Sequence[Both]) -> Figures:
    first, second = [both.first for both in questions], [both.second for both in questions]
    found = differences(_values(first), _values(second), bounded=len(METRICS))
    metrics, resources = found[: len(METRICS)], found[len(METRICS) :]
    only_first = sum(both.first.scores.hit1 > both.second.scores.hit1 for both in questions)
    only_second = sum(both.first.scores.hit1 < both.second.scores.hit1 for both in questions)
    p = mcnemar(only_first, only_second)
    metrics[0] = replace(metrics[0], resolvable=resolvable_hits(len(questions), only_first + only_second))
    return Figures(
        level=level,
        name=name,
        failures=failures,
        n=len(questions),
        metrics=dict(zip(METRICS, metrics, strict=True)),
        hits=Discordance(only_first, only_second, p, adjusted=p),
        resources=dict(zip(RESOURCES, resources, strict=True)),
        wins=sum(both.outcome > 0 for both in questions),
        losses=sum(both.outcome < 0 for both in questions),
    )


def _adjust(pairs: Sequence[Pair]) -> list[Pair]:
    """Holm's adjustment. A family is all tests of one level and one convention: pairs, times the graphs or splits."""
    families: dict[tuple[Level, Failures], list[tuple[int, int]]] = {}
    for i, pair in enumerate(pairs):
        for j, figures in enumerate(pair.figures):
            if figures.n:
                families.setdefault((figures.level, figures.failures), []).append((i, j))
    adjusted = [list(pair.figures) for pair in pairs]
    for members in families.values():
        p_values = holm([adjusted[i][j].hits.p for i, j in members])
        for (i, j), p in zip(members, p_values, strict=True):
            adjusted[i][j] = replace(adjusted[i][j], hits=replace(adjusted[i][j].hits, adjusted=p))
    return [replace(pair, figures=tuple(figures)) for pair, figures in zip(pairs, adjusted, strict=True)]


def _values(results: Sequence[QuestionResult]) -> Floats:
    """A row for each question: the metrics, then the resources; NaN where one is unknown."""
    rows = [[*result.scores, result.cost, result.tokens, result.turns, result.seconds] for result in results]
    return np.array(rows, dtype=np.float64).reshape(-1, len(METRICS) + len(RESOURCES))


def _difference(value: Difference) -> dict[str, Any]:
    table = asdict(value)
    return {"ci" if key == "interval" else key: item for key, item in table.items()}


def _question(both: Both) -> dict[str, Any]:
    def side(result: QuestionResult) -> dict[str, Any]:
        scores = dict(zip(METRICS, result.scores, strict=True))
        spent = {name: getattr(result, name) for name in RESOURCES}
        return {"state": result.state, **scores, "rank": result.rank, **spent}

    return {
        **both.key._asdict(),
        "split": both.first.question.split,
        "query": both.first.question.text,
        "outcome": "win" if both.outcome > 0 else "loss",
        "first": side(both.first),
        "second": side(both.second),
    }
