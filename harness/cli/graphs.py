"""`harness graphs`: what can be asked."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import data_dir_option, json_option
from harness.cli.output import print_json
from harness.cli.tables import table
from harness.graphs import Listing, data_directory, list_graphs
from harness.text import number, size


@click.command()
@data_dir_option
@json_option
def command(data_dir: Path | None, as_json: bool) -> None:
    """List the graphs there are.

    A graph is named to `harness run --graph` as it is here, or by the path of an export. STaRK's graphs (prime, mag,
    amazon) are looked for in the data directory, in skb/NAME and qa/NAME as in the dataset repository or in NAME as
    STaRK lays them out, and in huggingface_hub's cache; else they are downloaded when first used.

    \b
    Example:
      $ harness graphs
    """
    listings = list_graphs(data_directory(data_dir))
    if as_json:
        print_json([listing.as_dict() for listing in listings])
        return
    rows = [
        (
            each.name,
            each.state,
            number(each.nodes),
            number(each.edges),
            _questions(each),
            "-" if each.bytes is None else size(each.bytes),
            (each.created or "-")[:10],
            each.note or each.path,
        )
        for each in listings
    ]
    click.echo(table(("graph", "state", "nodes", "edges", "questions", "size", "made", "where"), rows, "  rr r"))


def _questions(listing: Listing) -> str:
    if listing.questions is None:
        return "-"
    return ", ".join(f"{count} {split}" for split, count in listing.questions.items()) or "none"
