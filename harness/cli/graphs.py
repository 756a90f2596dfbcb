"""`harness graphs`: what can be asked."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import data_dir_option, json_option
from harness.cli.output import print_json, table
from harness.graphs import Listing, data_directory, list_graphs
from harness.text import number


@click.command()
@data_dir_option
@json_option
def command(data_dir: Path | None, as_json: bool) -> None:
    """List the graphs there are.

    A graph is named to `harness run --graph` as it is here, or by the path of an export.

    \b
    Example:
      $ harness graphs
    """
    listings = list_graphs(data_directory(data_dir))
    if as_json:
        print_json([listing.as_dict() for listing in listings])
        return
    rows = [
        (each.name, each.state, number(each.nodes), number(each.edges), _questions(each), each.note or each.path)
        for each in listings
    ]
    click.echo(table(("graph", "state", "nodes", "edges", "questions", "where"), rows, "  rr"))


def _questions(listing: Listing) -> str:
    if listing.questions is None:
        return "-"
    return ", ".join(f"{count} {split}" for split, count in listing.questions.items()) or "none"
