"""`harness export`: graph sources to files, a subcommand for each source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from exporter import Export, Progress, export_stark, export_tables
from exporter.stark import DATASETS, find
from harness import stark as stark_data
from harness.cli.file_progress import file_progress
from harness.cli.options import Names, data_dir_option
from harness.cli.output import notice
from harness.errors import UserError
from harness.graphs import data_directory
from harness.text import count_of, number

F = TypeVar("F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_SHARED: tuple[Callable[[Any], Any], ...] = (
    click.option("--out", required=True, type=_PATH, help="The folder to make."),
    click.option("--queries", type=_PATH, help="Questions that come with the graph (JSONL, CSV or TSV)."),
    click.option("--candidates", type=Names(), metavar="TYPE,...", help="Node types that may be answers."),
)
_NAME = click.option("--name", help="What to call the graph. Default: the folder's name.")
_SKIP = click.option(
    "--skip-bad-rows",
    "on_bad_row",
    flag_value="skip",
    default="stop",
    help="Leave out rows that are wrong instead of stopping at the first.",
)


def _shared(*more: Callable[[Any], Any]) -> Callable[[F], F]:
    """The flags that every source has, and `more`."""

    def add(command: F) -> F:
        for option in reversed((*_SHARED, *more)):
            command = option(command)
        return command

    return add


def _export(out: Path, make: Callable[[Progress | None], Export]) -> None:
    """Make an export and say what came of it."""
    with file_progress() as progress:
        export = make(progress)
    source = export.manifest["source"]
    for why, count in source.get("skipped", {}).items():
        notice(f"left out {count_of(count, 'row')}: {why}")
    for warning in source.get("warnings", ()):
        notice(warning)
    click.echo(f"{out}: {number(export.node_count)} nodes, {number(export.schema['edges'])} edges")


@click.group()
def command() -> None:
    """Turn a graph's sources into the files that an agent reads.

    The export appears whole or not at all. Tables and texts may be gzipped.
    """


@command.command()
@click.argument("nodes", type=_PATH)
@click.argument("edges", type=_PATH)
@_shared(_NAME, _SKIP)
def tables(nodes: Path, edges: Path, out: Path, **options: Any) -> None:
    """Export a graph given as a table of nodes and a table of edges.

    NODES is JSONL, CSV or TSV with the columns id, type, name and any others, which become attributes. EDGES is CSV
    or TSV with source, relation, target and any others, which become edge attributes.

    \b
    Example:
      $ harness export tables nodes.jsonl edges.tsv --out mygraph
      $ harness run --graph ./mygraph --mode files --queries questions.jsonl
    """
    _export(out, lambda progress: export_tables(nodes, edges, out, progress=progress, **options))


@command.command()
@click.argument("graph", type=click.Choice(list(DATASETS)))
@click.argument("folder", type=_PATH, required=False)
@_shared(data_dir_option)
def stark(graph: str, folder: Path | None, out: Path, data_dir: Path | None, **options: Any) -> None:
    """Export one of STaRK's graphs, with its questions.

    FOLDER holds it as the dataset repository does (skb/GRAPH/processed.zip and qa/GRAPH), or as STaRK lays it out.
    Without FOLDER it is looked for where `harness run --graph GRAPH` does, and downloaded where it isn't there.

    \b
    Example:
      $ harness export stark prime ~/stark --out prime
    """
    if folder is None:
        place = stark_data.fetch(graph, data_directory(data_dir), notice)
    else:
        found = find(DATASETS[graph], folder)
        if found is None:
            raise UserError(
                f"there is no graph '{graph}' in {folder}",
                f"put skb/{graph}/processed.zip and qa/{graph} of the dataset repository there",
            )
        place = found
    _export(out, lambda progress: export_stark(graph, place, out, progress=progress, **options))
