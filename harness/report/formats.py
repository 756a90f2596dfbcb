"""A report as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from harness.compare import OVERALL, RESOURCES, Figures
from harness.metrics import METRICS
from harness.paired import Difference
from harness.report.data import Report, Value
from harness.report.grid import Grid, Group, grids
from harness.systems import System
from harness.text import line

SCHEMA_VERSION = 1
_COLUMNS = (
    *("system", "mode", "graph_access", "python", "model", "scope", "reading", "quantity", "n", "mean", "low", "high"),
    *("compared_with", "compared_n", "difference", "difference_low", "difference_high", "resolvable"),
    *("only_first", "only_second", "p", "p_holm"),
)
_EFFORT = "all attempts"  # the reading of cost, tokens, turns and seconds

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def markdown(report: Report) -> str:
    """A table for each group of figures, and the notes as a list."""
    parts: list[str] = []
    for grid in grids(report):
        parts += [f"**{_markdown_text(grid.caption)}**", *(_markdown_table(grid, group) for group in grid.groups)]
    parts += ["\n".join(f"- {_markdown_text(note)}" for note in report.notes())] if report.notes() else []
    return "\n\n".join(parts) + "\n"


def _markdown_table(grid: Grid, group: Group) -> str:
    header = [*grid.labels, *group.columns]
    rows = [
        [*names, *(f"{cell.text} {cell.interval}".rstrip() for cell in cells)]
        for names, cells in zip(grid.names, group.rows, strict=True)
    ]
    lines = [header, ["---"] * len(grid.labels) + ["---:"] * len(group.columns), *rows]
    return "\n".join(
        [_markdown_text(group.title), "", *("| " + " | ".join(map(_markdown_text, row)) + " |" for row in lines)]
    )


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_|<>~])", r"\\\1", line(text))


def latex(report: Report) -> str:
    """A `table*` for each grid, in booktabs' manner: a part for each graph, and intervals in a smaller line below."""
    notes = "".join(f"% {line(note)}\n" for note in report.notes())
    return "% needs \\usepackage{booktabs}\n" + notes + "\n".join(map(_latex_table, grids(report)))


def _latex_table(grid: Grid) -> str:
    left, right = len(grid.labels), len(grid.groups[0].columns)
    caption = rf"\caption{{{_latex_text(grid.caption)}.}}"
    lines = [r"\begin{table*}", r"\centering\small", caption]
    lines += [rf"\begin{{tabular}}{{{'l' * left}{'r' * right}}}", r"\toprule"]
    lines.append(_latex_row(map(_latex_text, [*grid.labels, *grid.groups[0].columns])))
    for group in grid.groups:
        lines.append(r"\midrule")
        if len(grid.groups) > 1 or group.title != OVERALL:
            lines.append(rf"\multicolumn{{{left + right}}}{{l}}{{\emph{{{_latex_text(group.title)}}}}} \\")
        for names, cells in zip(grid.names, group.rows, strict=True):
            lines.append(_latex_row([*map(_latex_text, names), *(_latex_number(cell.text) for cell in cells)]))
            small = (rf"{{\scriptsize {_latex_number(cell.interval)}}}" if cell.interval else "" for cell in cells)
            lines.append(_latex_row([*[""] * left, *small]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]) + "\n"


def _latex_row(cells: Any) -> str:
    return " & ".join(cells) + r" \\"


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in line(text))


def _latex_number(text: str) -> str:
    if text == "-":
        return "--"
    power = re.fullmatch(r"([\d.]+)e-0*(\d+)", text)
    if power:
        return rf"${power[1]}\cdot10^{{-{power[2]}}}$"
    return re.sub(r"-(?=[\d$.\\])", "$-$", _latex_text(text))


def csv_table(report: Report) -> str:
    """One line for each system, scope, reading and quantity, unrounded: made for other programs."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(report))
    return out.getvalue()


def json_document(report: Report) -> str:
    """The systems, the same rows as in CSV, and the notes."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "systems": [
            {**_who(system), "runs": {graph: str(run.path) for graph, run in system.runs.items()}}
            for system in report.systems
        ],
        "scopes": report.scopes,
        "rows": list(_rows(report)),
        "notes": report.notes(),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _rows(report: Report) -> Iterator[dict[str, Any]]:
    for entry in report.entries:
        who = {**_who(entry.system), "scope": entry.scope, "reading": entry.reading}
        for name in METRICS:
            yield {**who, **_value(name, entry.metrics[name]), **_against(report, entry.difference, name)}
    for effort in report.efforts:
        who = {**_who(effort.system), "scope": effort.scope, "reading": _EFFORT}
        for name in RESOURCES:
            yield {**who, **_value(name, effort.resources[name]), **_against(report, effort.difference, name)}


def _who(system: System) -> dict[str, Any]:
    return {
        "system": system.label,
        "mode": system.mode["name"],
        "graph_access": system.mode.get("graph_access"),
        "python": system.mode.get("python"),
        "model": system.model,
    }


def _value(name: str, value: Value) -> dict[str, Any]:
    low, high = value.interval or (None, None)
    return {"quantity": name, "n": value.n, "mean": value.mean, "low": low, "high": high}


def _against(report: Report, figures: Figures | None, name: str) -> dict[str, Any]:
    """The difference to the first system; nothing for the first itself."""
    if figures is None:
        return {}
    value: Difference = {**figures.metrics, **figures.resources}[name]
    low, high = value.interval or (None, None)
    row = {
        "compared_with": report.systems[0].label,
        "compared_n": value.n,
        "difference": value.difference,
        "difference_low": low,
        "difference_high": high,
        "resolvable": value.resolvable,
    }
    if name == METRICS[0]:
        hits = figures.hits
        row |= {"only_first": hits.only_first, "only_second": hits.only_second, "p": hits.p, "p_holm": hits.adjusted}
    return row


FORMATS: dict[str, Callable[[Report], str]] = {
    "md": markdown,
    "latex": latex,
    "csv": csv_table,
    "json": json_document,
}
