"""The page's tables of scores, and what is to be known about them."""

from __future__ import annotations

from harness.report.data import Report
from harness.report.grid import Cell, Grid, Group, grids
from harness.report.html import Child, Safe, h


def scores_section(report: Report) -> Child:
    """The table of each reading; the first is open. There is none where no question has been asked to its end."""
    tables = grids(report)[:-1]
    shown, others = tables[:1], tables[1:]
    return [
        [[h("p", grid.caption + "."), grid_table(grid)] for grid in shown],
        h("p", "No question has been asked to its end.") if not tables else None,
        [h("details", h("summary", grid.caption + "."), grid_table(grid)) for grid in others],
        _notes(report),
    ]


def _notes(report: Report) -> Child:
    return h("ul", [h("li", note) for note in report.notes()]) if report.notes() else None


def grid_table(grid: Grid) -> Safe:
    """A grid as a table for each group of columns, overall first: narrow enough for a laptop and for paper."""
    groups = grid.groups[-1:] + grid.groups[:-1]
    return h("div", [_group(grid, group, whole=not i) for i, group in enumerate(groups)], class_="blocks")


def _group(grid: Grid, group: Group, *, whole: bool) -> Safe:
    """One group; `whole` has all of the labels, the others the first alone."""
    kept = len(grid.labels) if whole else 1
    header = [h("th", label, scope="col") for label in grid.labels[:kept]]
    header += [h("th", column, scope="col", class_="figure") for column in group.columns]
    rows = []
    for names, cells in zip(grid.names, group.rows, strict=True):
        texts = [h("th", names[0], scope="row"), *(h("td", name) for name in names[1:kept])]
        rows.append(h("tr", texts, [h("td", figure(cell), class_="figure") for cell in cells]))
    content = h("table", h("caption", group.title), h("thead", h("tr", header)), h("tbody", rows))
    return h("div", content, class_="scroll", tabindex=0)


def figure(cell: Cell) -> Child:
    """A figure with its interval below."""
    return [cell.text, h("span", cell.interval, class_="interval") if cell.interval else None]
