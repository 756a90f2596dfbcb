"""`harness report`: the table of an ablation, its plot, or a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.audit import Audit, audit_run
from harness.cli.options import data_dir_option
from harness.cli.output import notice
from harness.cli.tables import table
from harness.cli.torn import tell_torn
from harness.errors import UserError
from harness.files import write_atomic
from harness.prices import read_prices
from harness.report.data import Report, make_report
from harness.report.formats import FORMATS
from harness.report.grid import Grid, grids
from harness.report.page import html_page
from harness.report.page_audit import audit_section
from harness.report.plot import difference_plot
from harness.systems import load_systems


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|PARENT...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *FORMATS, "html"]),
    default="text",
    show_default=True,
    help="html writes report.html into the folder; the others go to stdout.",
)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw the differences to the first.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to write the page instead.")
@click.option("--no-audit", is_flag=True, help="Leave the audit out of the page: no trajectory is read.")
@click.option("--prices", type=click.Path(path_type=Path), help="Cost the runs anew with a price list (TOML).")
@data_dir_option
def command(
    runs: tuple[Path, ...],
    form: str,
    plot: Path | None,
    out: Path | None,
    no_audit: bool,
    prices: Path | None,
    data_dir: Path | None,
) -> None:
    """Make the table of an ablation, or a page on its runs.

    A row for each mode, for each graph and overall: Hit@1, Recall@20 and MRR with 95 % intervals, the difference in
    Hit@1 to the first mode with its interval and p-value (see `harness compare`), then cost, tokens, turns and
    seconds per question. Modes stand in the order in which their runs were started, or as the folders are given.

    The page (html) has all of this and what the runs were made with, in one file that needs no network: scores,
    differences and the questions that make them, cost and time, the worst and the best questions, the audit.

    \b
    Example:
      $ harness report runs/ablation --format latex --plot differences.svg
    """
    if plot and plot.suffix.lower() != ".svg":
        raise UserError(f"--plot writes SVG, not {plot.suffix or plot.name}", "name a file that ends in .svg")
    page = _page_path(runs, out) if form == "html" else None
    if out and not page:
        raise UserError(f"--out is where the page goes, and --format {form} makes none", "add --format html")
    report = make_report(load_systems(runs, read_prices(prices) if prices else None, data_dir))
    tell_torn(run.path for system in report.systems for run in system.runs.values())
    if plot:
        drawing = difference_plot(report)
        if not drawing:
            raise UserError("--plot: there are no differences to draw", "give runs of two modes that share questions")
        write_atomic(plot, drawing.encode())
    if page:
        more = [] if no_audit else [audit_section(list(_audits(report, data_dir)))]
        write_atomic(page, html_page(report, more).encode())
        click.echo(str(page))
    elif form in FORMATS:
        click.echo(FORMATS[form](report), nl=False)
    else:
        click.echo("\n\n".join(_text(report)))
        for text in report.notes():
            notice(text)


def _audits(report: Report, data: Path | None) -> Iterator[tuple[str, Audit]]:
    for system in report.systems:
        for graph, run in system.runs.items():
            yield f"{system.label}, {graph}" if len(system.runs) > 1 else system.label, audit_run(run.path, data=data)


def _page_path(runs: tuple[Path, ...], out: Path | None) -> Path:
    if out is None and len(set(runs)) > 1:
        raise UserError("several folders: where is the page to be written?", "name it with --out FILE.html")
    return out or runs[0] / "report.html"


def _text(report: Report) -> Iterator[str]:
    for grid in grids(report):
        yield f"{grid.caption}\n\n" + "\n\n".join(_blocks(grid))


def _blocks(grid: Grid) -> Iterator[str]:
    """A block for each group of columns, so that it fits a terminal."""
    for group in grid.groups:
        header = [*grid.labels, *group.columns]
        rows = [
            [*names, *(f"{cell.text} {cell.interval}".rstrip() for cell in cells)]
            for names, cells in zip(grid.names, group.rows, strict=True)
        ]
        yield f"{group.title}\n" + table(header, rows, " " * len(grid.labels) + "r" * len(group.columns))
