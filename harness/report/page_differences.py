"""The page's comparison of each system with the first: plot, figures, and the questions that make the difference."""

from __future__ import annotations

from harness.compare import RESOURCES, Both, Figures, Pair
from harness.metrics import METRICS
from harness.paired import Difference
from harness.report.data import Report
from harness.report.grid import SHOWN, difference_cell
from harness.report.html import Child, Safe, h, table
from harness.report.page_scores import figure
from harness.report.plot import difference_plot
from harness.report.units import TITLES, UNITS, p_value
from harness.text import count_of

_MOST = 300  # questions listed for a pair


def differences_section(report: Report) -> Child:
    """Plots first, then each pair."""
    plots = [Safe(difference_plot(report, [metric], alone=False)) for metric in SHOWN]
    return [
        h(
            "p",
            "Paired over the questions that both finished; the other's value minus the first's, in percentage points.",
        ),
        h("div", plots, class_="scroll", tabindex=0) if any(plots) else None,
        [_pair(pair, several=len(report.scopes) > 1) for pair in report.pairs],
    ]


def _pair(pair: Pair, *, several: bool) -> Child:
    title = h("h3", f"{pair.second.label} against {pair.first.label}")
    left_out = pair.left_out.texts()
    note = h("p", f"Not compared: {', '.join(left_out)}.", class_="dim") if left_out else None
    blocks = [_figures(pair, f) for f in pair.figures if f.n and (f.failures == "miss" or pair.failed)]
    first, others = blocks[:1], blocks[1:]
    more = h("details", h("summary", "By graph, by split, and with failures left out"), others) if others else None
    return [title, note, first, more, _questions(pair, several=several)]


def _figures(pair: Pair, figures: Figures) -> Child:
    where = "Overall" if figures.level == "overall" else f"{figures.level.title()} {figures.name or 'none'}"
    counted = "" if not pair.failed else ", failed = miss" if figures.failures == "miss" else ", failures left out"
    values = {**figures.metrics, **figures.resources}
    rows = [_row(TITLES.get(name, f"{name} a question"), name, values[name]) for name in (*METRICS, *RESOURCES)]
    header = ("", pair.first.label, pair.second.label, "difference", "resolvable")
    hits = figures.hits
    return [
        h("p", f"{where}{counted} (n = {figures.n:,})"),
        table(header, rows),
        h(
            "p",
            f"Hit@1: {hits.only_first} only {pair.first.label}, {hits.only_second} only {pair.second.label}; exact "
            f"McNemar p = {p_value(hits.p)}, by Holm {p_value(hits.adjusted)}. {pair.second.label} did better on "
            f"{figures.wins}, worse on {figures.losses}, the same on {figures.n - figures.wins - figures.losses}.",
        ),
    ]


def _row(title: str, name: str, value: Difference) -> list[Child]:
    unit = UNITS[name]
    difference = figure(difference_cell(value, unit))
    return [title, unit(value.first), unit(value.second), difference, unit(value.resolvable)]


def _questions(pair: Pair, *, several: bool) -> Child:
    decided = pair.decided()
    if not decided:
        return h("p", "Both did the same on every question.")
    wins = sum(both.outcome > 0 for both in decided)
    shown = decided[: min(wins, _MOST // 2)] + decided[wins : wins + _MOST - min(wins, _MOST // 2)]
    header = (
        "",
        "question",
        "text",
        f"rank {pair.first.label}",
        f"rank {pair.second.label}",
        "Recall@20",
        "",
        "turns",
        "",
    )
    rows = [_question(both, several=several) for both in shown]
    title = f"{count_of(len(decided), 'question')} that one did better on"
    if len(shown) < len(decided):
        title += f" (the clearest {len(shown)}; harness compare --wins lists all)"
    return h("details", h("summary", title), table(header, rows, left=3))


def _question(both: Both, *, several: bool) -> list[Child]:
    kind = "win" if both.outcome > 0 else "loss"
    sides = (both.first, both.second)
    return [
        h("span", kind, class_=kind),
        f"{both.key.graph} {both.key.id}" if several else both.key.id,
        h("div", both.first.question.text, class_="text"),
        *(str(side.rank or "-") for side in sides),
        *(UNITS["recall@20"](side.scores.recall20) for side in sides),
        *(str(side.turns) for side in sides),
    ]
