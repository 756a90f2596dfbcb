"""The tables of a report as texts, before any format: rows are systems, columns come in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.compare import RESOURCES
from harness.paired import Difference
from harness.report.data import AGENTS, FIRST, LEFT_OUT, MISS, Entry, Report, Value
from harness.report.units import TITLES, UNITS, Unit, p_value, percent, signed
from harness.systems import System
from harness.text import money

SHOWN = ("hit@1", "recall@20", "mrr")
_CAPTIONS = {
    MISS: "Scores in %, with 95 % intervals; failed attempts are misses",
    LEFT_OUT: "Scores in %, with 95 % intervals; questions that failed for infrastructure reasons left out",
    FIRST: "Scores in % of first attempts, with 95 % intervals",
    AGENTS: "Scores in % of single agents (means over a question's agents), with 95 % intervals over questions",
}


@dataclass(frozen=True)
class Cell:
    """A figure and, under or beside it, its interval."""

    text: str
    interval: str = ""


@dataclass(frozen=True)
class Group:
    """The figures over one scope; `rows` has a cell for each column, for each system."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Grid:
    """One table. `labels` are the columns at the left, `names` their texts for each row. Groups have equal columns."""

    caption: str
    labels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]


def grids(report: Report) -> list[Grid]:
    """The tables of scores, one for each reading, and that of effort."""
    return [*(_scores(report, reading) for reading in report.readings), _effort(report)]


def _scores(report: Report, reading: str) -> Grid:
    systems = [s for s in report.systems if any(report.entry(reading, scope, s) for scope in report.scopes)]
    counts = {scope: {e.n for s in systems if (e := report.entry(reading, scope, s))} for scope in report.scopes}
    same_n = all(len(numbers) <= 1 for numbers in counts.values())
    groups = tuple(_score_group(report, reading, scope, systems, same_n=same_n) for scope in report.scopes)
    labels, names = _labels(report, systems)
    return Grid(_CAPTIONS[reading], labels, names, groups)


def _score_group(report: Report, reading: str, scope: str, systems: Sequence[System], *, same_n: bool) -> Group:
    entries = [report.entry(reading, scope, system) for system in systems]
    compared = reading in (MISS, LEFT_OUT) and bool(report.pairs)
    columns = [] if same_n else ["n"]
    columns += [TITLES[name] for name in SHOWN]
    if compared:
        columns += [f"Hit@1 - {report.systems[0].label}", "p (Holm)"]
    rows = []
    for entry in entries:
        cells = [] if same_n else [Cell(str(entry.n) if entry else "0")]
        cells += [value_cell(entry.metrics[name] if entry else None, percent) for name in SHOWN]
        rows.append((*cells, *(_difference_cells(entry) if compared else ())))
    title = f"{scope} (n = {max(entry.n for entry in entries if entry):,})" if same_n else scope
    return Group(title, tuple(columns), tuple(rows))


def _difference_cells(entry: Entry | None) -> tuple[Cell, Cell]:
    figures = entry.difference if entry else None
    if entry is None or figures is None or not figures.n:
        return Cell("-"), Cell("-")
    cell = difference_cell(figures.metrics["hit@1"], percent)
    count = "" if figures.n == entry.n else f" (n = {figures.n:,})"
    return Cell(cell.text + count, cell.interval), Cell(p_value(figures.hits.adjusted))


def _effort(report: Report) -> Grid:
    labels, names = _labels(report, report.systems)
    groups = []
    for scope in report.scopes:
        rows = []
        for system in report.systems:
            effort = report.effort(scope, system)
            cells = [value_cell(effort.resources[name], UNITS[name]) for name in RESOURCES]
            rows.append((Cell(f"{effort.resources['turns'].n:,}"), *cells, Cell(money(effort.totals["cost"]))))
        groups.append(Group(scope, ("n", *RESOURCES, "cost in all"), tuple(rows)))
    caption = "Effort: means per question with 95 % intervals (US dollars, tokens, turns, seconds of working time)"
    return Grid(caption, labels, names, tuple(groups))


def value_cell(value: Value | None, unit: Unit) -> Cell:
    """A mean with its interval."""
    if value is None:
        return Cell("-")
    ends = "" if value.interval is None or value.mean is None else f"[{', '.join(map(unit, value.interval))}]"
    return Cell(unit(value.mean), ends)


def difference_cell(value: Difference, unit: Unit) -> Cell:
    """A difference with its interval, signs written."""
    ends = "" if value.interval is None else f"[{', '.join(signed(end, unit) for end in value.interval)}]"
    return Cell(signed(value.difference, unit), ends)


def _labels(report: Report, systems: Sequence[System]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    several = len({system.model for system in report.systems}) > 1
    labels = ("mode", "graph access", "Python", *(("model",) if several else ()))
    names = tuple(
        (
            system.label,
            str(system.mode.get("graph_access") or "-"),
            str(system.mode.get("python") or "-"),
            *((system.model,) if several else ()),
        )
        for system in systems
    )
    return labels, names
