"""`harness export`: graph sources to files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from exporter import export_tables
from harness.cli.options import Names
from harness.cli.output import notice
from harness.text import count_of, number, plain


@click.group()
def command() -> None:
    """Turn a graph's sources into the files that an agent reads."""


@command.command()
@click.argument("nodes", type=click.Path(path_type=Path))
@click.argument("edges", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to make.")
@click.option(
    "--queries", type=click.Path(path_type=Path), help="Questions that come with the graph (JSONL, CSV or TSV)."
)
@click.option(
    "--candidates", type=Names(), metavar="TYPE,...", help="Node types that may be answers. Default: every type."
)
@click.option("--name", help="What to call the graph. Default: the folder's name.")
@click.option("--skip-bad-rows", is_flag=True, help="Leave out rows that are wrong instead of stopping at the first.")
def tables(
    nodes: Path,
    edges: Path,
    out: Path,
    queries: Path | None,
    candidates: tuple[str, ...] | None,
    name: str | None,
    skip_bad_rows: bool,
) -> None:
    """Export a graph given as a table of nodes and a table of edges.

    NODES is JSONL, CSV or TSV with the columns id, type, name and any others, which become attributes. EDGES is CSV
    or TSV with source, relation, target and any others, which become edge attributes. Both may be gzipped. The
    export appears whole or not at all.

    \b
    Example:
      $ harness export tables nodes.jsonl edges.tsv --out mygraph
      $ harness run --graph ./mygraph --mode files --queries questions.jsonl
    """
    with file_progress() as progress:
        export = export_tables(
            nodes,
            edges,
            out,
            queries=queries,
            candidates=candidates,
            name=name,
            on_bad_row="skip" if skip_bad_rows else "stop",
            progress=progress,
        )
    for why, count in export.manifest["source"].get("skipped", {}).items():
        notice(f"left out {count_of(count, 'row')}: {why}")
    click.echo(f"{out}: {number(export.node_count)} nodes, {number(export.schema['edges'])} edges")


@contextmanager
def file_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar of bytes per stage on a terminal's stderr; None where there is no terminal."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(plain(stage).replace("[", r"\["), total=total or None)
            bars.update(tasks[stage], completed=done, total=total or None)

        yield progress
