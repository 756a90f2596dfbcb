"""`harness show`: read a run."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from harness.audit.checks.answers import UNREADABLE, error_class
from harness.cli.options import AtLeastOne, data_dir_option
from harness.cli.output import notice
from harness.cli.tables import table
from harness.cli.torn import tell_damaged
from harness.errors import UserError
from harness.ledger import AttemptRecord
from harness.saved import SavedRun
from harness.servers import where_asked
from harness.show import FORM, HEADER, SPARED, AttemptPrinter, failures, question_rows

_MANY = 200  # trajectories that take a while to read


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("query", required=False)
@click.option("--agent", type=AtLeastOne(), metavar="N", help="Which agent, where there are several.")
@click.option("--attempt", type=AtLeastOne(), metavar="N", help="Which attempt. Default: the last.")
@click.option("--full", is_flag=True, help="Fold nothing.")
@click.option("--no-classes", is_flag=True, help="In the list, read no trajectory to say what became of a miss.")
@data_dir_option
def command(
    run: Path,
    query: str | None,
    agent: int | None,
    attempt: int | None,
    full: bool,
    no_classes: bool,
    data_dir: Path | None,
) -> None:
    """Read a run or one of its trajectories in the terminal.

    Without QUERY, lists the questions of the run, each with its error class (see `harness audit`). With the id of a
    question, shows its last attempt turn by turn: what the model said, the code it ran, the outputs (folded), what
    was cut and where it went, what was cleared from the conversation, and the answer against gold with the turn and
    byte that first showed each id.

    \b
    Example:
      $ harness show runs/biogo-files bio01
    """
    saved = SavedRun.open(run, data_dir)
    if query is None:
        damaged: dict[str, None] = {}
        rows = question_rows(saved, _classes(saved, no_classes, damaged))
        text = table(HEADER, rows, FORM, optional=SPARED) + "\n"
        tell_damaged(run, len(damaged), damaged)
        text += "".join(f"{reason}\n" for reason in failures(saved.records))
        if where := where_asked(saved.manifest):
            text += f"the model was asked at several addresses: {where}\n"
        if saved.lacking:
            text += f"gold is not known: {saved.lacking}\n"
    else:
        found = saved.attempts(query)
        if agent is not None:
            found = [record for record in found if record.agent == agent - 1]
        if attempt is not None:
            found = [record for record in found if record.attempt == attempt - 1]
        if not found:
            count = len(saved.attempts(query))
            raise UserError(f"question '{query}' has no such attempt", f"it has {count}, counted from 1")
        width = shutil.get_terminal_size((100, 24)).columns
        buffer = io.StringIO()
        terminal = sys.stdout.isatty()
        console = Console(file=buffer, width=width, force_terminal=terminal, highlight=False, markup=False, emoji=False)
        printer = AttemptPrinter(saved, console, full)
        printer.print(found[-1])
        tell_damaged(run, len(printer.damaged), (f"{found[-1].trajectory}:{each.line}" for each in printer.damaged))
        text = buffer.getvalue()
    if sys.stdout.isatty():
        click.echo_via_pager(text)  # click has less show colours, and takes them out for a pager that might not
    else:
        click.echo(text, nl=False)


def _classes(run: SavedRun, only_known: bool, damaged: dict[str, None]) -> Callable[[AttemptRecord], str]:
    """What says an attempt's class; it adds the lines that it can't read to `damaged`, as FILE:LINE."""

    def class_of(record: AttemptRecord) -> str:
        known = run.class_by_answer(record)
        if known is not None or only_known:
            return known or "?"
        try:
            facts = run.facts(record)
            damaged.update((f"{facts.file}:{number}", None) for number, _ in facts.damaged)
            return error_class(facts)
        except OSError:
            return UNREADABLE

    many = 0 if only_known else sum(run.class_by_answer(record) is None for record in run.records)
    if many > _MANY:
        notice(f"reading {many:,} trajectories to say what became of misses; --no-classes does without")
    return class_of
