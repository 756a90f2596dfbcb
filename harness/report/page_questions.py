"""The page's worst and best questions, with what was right and what was answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporter import Export, ExportError
from harness.errors import UserError
from harness.metrics import METRICS
from harness.report.data import Report
from harness.report.html import Child, h
from harness.report.units import one_decimal, percent
from harness.results import QuestionResult
from harness.systems import Key
from harness.text import count_of, money, shorten

_SHOWN = 15
_IDS = 5
_NAME = 60


@dataclass(frozen=True)
class _Asked:
    """A question with the results of the systems that finished it, by their position."""

    key: Key
    results: dict[int, QuestionResult]

    @property
    def rank(self) -> tuple[float, ...]:
        """For sorting from worst to best: mean MRR and Recall@20, then turns, the most first."""
        results = self.results.values()
        mean = [math.fsum(result.scores[i] for result in results) / len(results) for i in range(len(METRICS))]
        return (mean[3], mean[2], -sum(result.turns for result in results) / len(results))


def questions_section(report: Report) -> Child:
    """The questions that the systems together did worst and best on."""
    asked = sorted(_asked(report), key=lambda each: (each.rank, each.key))
    names = _node_names(report)
    worst, best = asked[:_SHOWN], asked[::-1][:_SHOWN]
    what = (
        "by mean MRR over the modes, then Recall@20, then turns"
        if len(report.systems) > 1
        else "by MRR, Recall@20, turns"
    )
    return [
        h(
            "p",
            f"{count_of(len(asked), 'question')}, {what}. A rank is the place of the first right node in the answer.",
        ),
        h("h3", "Worst"),
        _table(report, worst, names),
        h("h3", "Best"),
        _table(report, best, names),
    ]


def _asked(report: Report) -> list[_Asked]:
    found: dict[Key, _Asked] = {}
    for position, system in enumerate(report.systems):
        for key, result in system:
            if result.asked:
                found.setdefault(key, _Asked(key, {})).results[position] = result
    return list(found.values())


def _table(report: Report, asked: Sequence[_Asked], names: Callable[[Key, int], str]) -> Child:
    several = len(report.scopes) > 1
    rows: list[Child] = []
    for each in asked:
        span, one = len(each.results), next(iter(each.results.values()))
        identity = f"{each.key.graph} {each.key.id}" if several else each.key.id
        question: Child = [
            h("td", h("div", identity, class_="id"), rowspan=span),
            h("td", _text(each, one, report, names), rowspan=span),
        ]
        for position, result in each.results.items():
            rows.append(h("tr", question, _cells(report.systems[position].label, result)))
            question = None
    figures = ("rank", "Recall@20", "turns", "seconds", "cost")
    header = [h("th", title, scope="col") for title in ("question", "text", "mode")]
    header += [h("th", title, scope="col", class_="figure") for title in figures]
    content = h("table", h("thead", h("tr", header)), h("tbody", rows))
    return h("div", content, class_="scroll", tabindex=0)


def _cells(label: str, result: QuestionResult) -> Child:
    """A system's figures for one question, as cells."""
    figures = (
        str(result.rank or "-") if result.state == "scored" else "failed",
        percent(result.scores.recall20),
        str(result.turns),
        one_decimal(result.seconds),
        money(result.cost),
    )
    return [h("td", label), [h("td", figure, class_="figure") for figure in figures]]


def _text(asked: _Asked, one: QuestionResult, report: Report, names: Callable[[Key, int], str]) -> Child:
    answers = [
        h("p", f"{report.systems[position].label}: ", _nodes(asked.key, result.ids, names))
        for position, result in asked.results.items()
    ]
    details = h(
        "details",
        h("summary", "right and answered", class_="dim"),
        h("p", "right: ", _nodes(asked.key, one.question.gold, names)),
        answers,
    )
    return h("div", one.question.text, details, class_="text")


def _nodes(key: Key, ids: Sequence[int], names: Callable[[Key, int], str]) -> str:
    shown = [f"{node} ({shorten(names(key, node), _NAME)})" for node in ids[:_IDS]]
    return ", ".join(shown) + (f" and {len(ids) - _IDS} more" if len(ids) > _IDS else "") or "nothing"


def _node_names(report: Report) -> Callable[[Key, int], str]:
    """Names of nodes, from the exports that the runs were made on."""
    exports: dict[str, Export] = {}
    for system in report.systems:
        for graph, run in system.runs.items():
            if graph not in exports:
                exports[graph] = run.export

    def name(key: Key, node: int) -> str:
        try:
            return str(exports[key.graph].node(node).get("name") or "no name")
        except (KeyError, ExportError, UserError):
            return "unknown"

    return name
