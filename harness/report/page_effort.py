"""The page's figures of cost, tokens and time, and why attempts stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.ledger import AttemptRecord, total_usage
from harness.report.bars import bar, legend
from harness.report.data import Report
from harness.report.grid import grids
from harness.report.html import Child, Safe, h, table
from harness.report.page_scores import grid_table
from harness.report.units import one_decimal
from harness.systems import System
from harness.text import number

_PARTS = ("model", "waiting", "sandbox", "queue", "harness")


def effort_section(report: Report) -> Child:
    """Means per question, tokens by class, time by part, stop reasons."""
    grid = grids(report)[-1]
    return [
        h("p", grid.caption + ". All attempts count, those that were retried too."),
        grid_table(grid),
        h("h3", "Tokens"),
        table(("", "input", "cached", "cached share", "output", "reasoning"), [_tokens(s) for s in report.systems]),
        h("h3", "Time per question by part, seconds"),
        legend(_PARTS),
        table(("", *_PARTS, "wall", ""), [_times(system) for system in report.systems]),
        h("h3", "How attempts ended"),
        _stops(report),
    ]


def _records(system: System) -> Iterator[AttemptRecord]:
    return (record for _, result in system for record in result.records)


def _tokens(system: System) -> list[Child]:
    usage = total_usage([record.usage for record in _records(system)])
    given, cached = usage["input"], usage["cached"]
    share = "-" if not given or cached is None else f"{cached / given:.0%}"
    return [system.label, number(given), number(cached), share, number(usage["output"]), number(usage["reasoning"])]


def _times(system: System) -> list[Child]:
    asked = sum(bool(result.records) for _, result in system) or 1
    records = list(_records(system))
    means = [sum(getattr(record.times, part) for record in records) / asked for part in (*_PARTS, "wall")]
    return [system.label, *(one_decimal(mean) for mean in means), bar(means[:-1])]


def _stops(report: Report) -> Safe:
    counts = {system.label: Counter(record.stop_reason for record in _records(system)) for system in report.systems}
    reasons = sorted({reason for counter in counts.values() for reason in counter})
    header = ("", *(reason.replace("_", " ") for reason in reasons), "attempts")
    rows = [(label, *(str(c[reason]) for reason in reasons), str(c.total())) for label, c in counts.items()]
    return table(header, rows)
