"""`harness convert`: a saved run in another tool's format."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import data_dir_option
from harness.cli.output import notice
from harness.cli.torn import tell_damaged
from harness.convert import FORMATS, Source
from harness.errors import UserError
from harness.ledger import AttemptRecord
from harness.text import count_of


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="The format to write.")
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH", help="Default: inside the run folder.")
@click.option("--all", "every", is_flag=True, help="Attempts that were retried, too.")
@click.option("--best", is_flag=True, help="Of each question, only the attempt with the best Recall@20.")
@data_dir_option
def command(run: Path, form: str, out: Path | None, every: bool, best: bool, data_dir: Path | None) -> None:
    """Write a saved run in another tool's format.

    atif: a folder with one JSON file for each attempt. inspect: a JSON log that Inspect reads. messages: JSON Lines of
    chat messages for fine-tuning, each message with a weight, 1 for the model's own and 0 for all others. Takes the
    attempts that the score is about. --best takes, of a question's attempts, the one with the best Recall@20, of these
    the one with the fewest turns, and none of a question where nothing right was found; it needs the run's export.

    \b
    Example:
      $ harness convert runs/biogo-files --to messages --best
    """
    if every and best:
        raise UserError("--all and --best exclude each other")
    source = Source.open(run, data_dir)
    write, name = FORMATS[form]
    target = out or run / name
    if target.exists():
        raise UserError(f"{target} exists", "name another with --out, or remove it")
    records = source.records if every else _best(source) if best else source.counted()
    if source.unknown:
        notice(f"gold is not known: {source.unknown}")
    count = write(source, source.read(records), target)
    tell_damaged(run, len(source.damaged), source.damaged)
    if count < len(records):
        notice(f"{run}: {count_of(len(records) - count, 'attempt')} not written, for lines that can't be read")
    click.echo(f"{target}: {count_of(count, 'attempt')}")


def _best(source: Source) -> list[AttemptRecord]:
    if source.unknown:
        raise UserError(f"--best needs gold: {source.unknown}")
    found: dict[str, tuple[float, int, AttemptRecord]] = {}
    for record in source.records:
        scores = source.scores(record)
        if scores is not None and scores["recall@20"] > 0:
            rank = (-scores["recall@20"], record.turns)
            if record.query_id not in found or rank < found[record.query_id][:2]:
                found[record.query_id] = (*rank, record)
    return [record for _, _, record in found.values()]
