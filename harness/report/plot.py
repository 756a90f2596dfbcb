"""The differences to the first system with their intervals, drawn as SVG without any library."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from harness.compare import OVERALL
from harness.paired import Difference
from harness.report.data import MISS, Report
from harness.report.grid import SHOWN, difference_cell
from harness.report.units import TITLES, percent
from harness.text import line, shorten

_LEFT, _WIDTH, _RIGHT = 190, 380, 210  # labels, axis, figures; pixels
_ROW, _HEAD, _FOOT, _MARGIN = 22, 34, 34, 8
_TICKS = 8

STYLE = """
.plot { font: 12px system-ui, sans-serif; }
.plot text { fill: var(--ink, #1f2328); }
.plot .dim { fill: var(--dim, #59636e); }
.plot .strong { font-weight: 600; }
.plot line { stroke: var(--line, #c9d1d9); }
.plot .zero { stroke: var(--ink, #1f2328); }
.plot .range { stroke: var(--mark, #0a58ca); stroke-width: 2; }
.plot circle { fill: var(--mark, #0a58ca); stroke: var(--mark, #0a58ca); stroke-width: 2; }
.plot .unclear { fill: var(--paper, #ffffff); }
"""
_ALONE = """
.plot { background: var(--paper); --paper: #ffffff; }
@media (prefers-color-scheme: dark) {
  .plot { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --mark: #6cb0ff; --paper: #0d1117; }
}
"""


@dataclass(frozen=True)
class _Line:
    """One interval: its label, whether it is over all graphs, and the difference."""

    label: str
    overall: bool
    value: Difference


def difference_plot(report: Report, metrics: Sequence[str] = SHOWN, *, alone: bool = True) -> str:
    """An SVG document; empty text where there is nothing to compare. `alone` brings its own style.

    One panel for each metric, in percentage points. A hollow point is a difference whose interval holds 0.
    """
    panels = {metric: list(_lines(report, metric)) for metric in metrics}
    if not any(panels.values()):
        return ""
    body = [f'<text class="dim" x="{_LEFT + _WIDTH + 12}" y="18">hollow: the interval holds 0</text>']
    y = 0
    for metric, lines in panels.items():
        body += list(_panel(f"{TITLES[metric]}: difference to {report.systems[0].label}, percentage points", lines, y))
        y += _HEAD + _ROW * len(lines) + _FOOT
    width, height = _LEFT + _WIDTH + _RIGHT + 2 * _MARGIN, y + 2 * _MARGIN
    title = f"Differences to {report.systems[0].label} with 95 % intervals"
    style = f"<style>{_ALONE}{STYLE}</style>" if alone else ""
    box = f'viewBox="-{_MARGIN} -{_MARGIN} {width} {height}" width="{width}" height="{height}"'
    head = f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" role="img" {box}><title>{_text(title)}</title>{style}'
    return "\n".join([head, *body, "</svg>\n"])


def _lines(report: Report, metric: str) -> Iterator[_Line]:
    for system in report.systems[1:]:
        for scope in sorted(report.scopes, key=lambda scope: scope != OVERALL):
            entry = report.entry(MISS, scope, system)
            if entry and entry.difference and entry.difference.n:
                overall = scope == OVERALL
                yield _Line(system.label if overall else scope, overall, entry.difference.metrics[metric])


def _panel(title: str, lines: list[_Line], top: int) -> Iterator[str]:
    ends = [end for each in lines for end in (*(each.value.interval or ()), each.value.difference or 0.0)]
    low, high, step = _axis(min([0.0, *ends]) * 100, max([0.0, *ends]) * 100)

    def x(value: float) -> float:
        return round(_LEFT + (value - low) / (high - low) * _WIDTH, 1)

    bottom = top + _HEAD + _ROW * len(lines)
    yield f'<text class="strong" x="0" y="{top + 18}">{_text(title)}</text>'
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        kind = ' class="zero"' if abs(value) < step / 2 else ""
        yield f'<line{kind} x1="{x(value)}" y1="{top + _HEAD - 4}" x2="{x(value)}" y2="{bottom}"/>'
        yield f'<text class="dim" x="{x(value)}" y="{bottom + 15}" text-anchor="middle">{_tick(value, step)}</text>'
    for number, each in enumerate(lines):
        yield from _row(each, top + _HEAD + number * _ROW + _ROW // 2, x)


def _row(row: _Line, y: int, x: Callable[[float], float]) -> Iterator[str]:
    value, kind = row.value, "strong" if row.overall else "dim"
    indent = 0 if row.overall else 14
    yield f'<text class="{kind}" x="{indent}" y="{y + 4}">{_text(shorten(row.label, 28))}</text>'
    middle = x(100 * (value.difference or 0.0))
    unclear = ""
    if value.interval:
        one, two = (x(100 * end) for end in value.interval)
        yield f'<line class="range" x1="{one}" y1="{y}" x2="{two}" y2="{y}"/>'
        unclear = ' class="unclear"' if value.interval[0] <= 0 <= value.interval[1] else ""
    yield f'<circle{unclear} cx="{middle}" cy="{y}" r="{5 if row.overall else 3.5}"/>'
    cell = difference_cell(value, percent)
    figures = f"{cell.text} {cell.interval}, n = {value.n:,}"
    yield f'<text class="{kind}" x="{_LEFT + _WIDTH + 12}" y="{y + 4}">{_text(figures)}</text>'


def _axis(low: float, high: float) -> tuple[float, float, float]:
    """A range of whole steps (1, 2 or 5 times a power of ten) around two values, and the step."""
    span = max(high - low, 1e-6)
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= _TICKS)
    return math.floor(low / step - 1e-9) * step, math.ceil(high / step + 1e-9) * step, step


def _tick(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step)))
    text = f"{abs(value):.{decimals}f}"
    return text if float(text) == 0 else f"{'-' if value < 0 else '+'}{text}"


def _text(text: str) -> str:
    return escape(line(text))
