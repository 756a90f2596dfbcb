"""`harness show`: read a run."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import click
from rich.console import Console

from harness.cli.output import table
from harness.errors import UserError
from harness.show import AttemptPrinter, SavedRun, question_rows


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("query", required=False)
@click.option("--agent", type=click.IntRange(min=1), metavar="N", help="Which agent, where there are several.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Which attempt. Default: the last.")
@click.option("--full", is_flag=True, help="Fold nothing.")
def command(run: Path, query: str | None, agent: int | None, attempt: int | None, full: bool) -> None:
    """Read a run or one of its trajectories in the terminal.

    Without QUERY, lists the questions of the run. With the id of a question, shows its last attempt turn by turn:
    what the model said, the code it ran, the outputs (folded), what was cut and where it went, what was cleared from
    the conversation, and the answer against gold.

    \b
    Example:
      $ harness show runs/biogo-files bio01
    """
    saved = SavedRun.open(run)
    if query is None:
        header = ("id", "question", "answer", "verdict", "ended", "attempts", "turns", "time")
        text = table(header, question_rows(saved), "     rrr") + "\n"
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
        AttemptPrinter(saved, console, full).print(found[-1])
        text = buffer.getvalue()
    if sys.stdout.isatty():
        click.echo_via_pager(text, color=True)
    else:
        click.echo(text, nl=False)
