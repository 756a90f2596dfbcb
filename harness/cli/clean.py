"""`harness clean`: what killed runs left behind."""

from __future__ import annotations

import click

import sandbox
from harness.cli.output import notice
from harness.cli.tables import table
from harness.text import count_of


@click.command()
@click.option("--dry-run", is_flag=True, help="Only list them.")
def command(dry_run: bool) -> None:
    """Remove what killed runs left behind.

    A sandbox ends with the harness that opened it, so there is hardly ever anything: containers that were made and
    not yet started when their harness was killed, and empty volumes. Those of living runs, and other people's, are
    left alone.

    \b
    Example:
      $ harness clean --dry-run
    """
    found = sandbox.leftovers()
    if found:
        header = ("name", "created", "status", "run")
        rows = [
            (each.name, f"{each.created:%Y-%m-%d %H:%M}", each.status, each.labels.get("run", "-")) for each in found
        ]
        click.echo(table(header, rows))
    if dry_run:
        notice(f"{count_of(len(found), 'leftover')} would be removed")
    else:
        notice(f"{count_of(sandbox.clean(found) if found else 0, 'leftover')} removed")
