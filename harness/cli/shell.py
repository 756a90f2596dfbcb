"""`harness shell`: a person in the agent's place."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import sandbox
from harness.cli.file_progress import file_progress
from harness.cli.options import data_dir_option, sandbox_option, set_option
from harness.cli.output import notice
from harness.errors import UserError
from harness.graphs import data_directory, open_graph
from harness.modes import load_mode
from harness.settings import parse_assignments
from harness.setup import sandbox_spec


@click.command()
@click.option("--graph", required=True, metavar="GRAPH", help="A name from `harness graphs`, or the path of an export.")
@click.option("--mode", default="files", show_default=True, metavar="MODE", help="See `harness modes`.")
@sandbox_option
@data_dir_option
@set_option
def command(graph: str, mode: str, sandbox_kind: str, data_dir: Path | None, assignments: tuple[str, ...]) -> int:
    """Open a shell in exactly the sandbox that the agent has.

    Same files, same limits, same programs, no network. What is written there is gone when the shell ends. Exits
    with the shell's exit code.

    \b
    Example:
      $ harness shell --graph biogo
    """
    if not sys.stdin.isatty():
        raise UserError("harness shell needs a terminal", "run it by hand, not in a pipe")
    resolved = load_mode(mode, parse_assignments(assignments))
    with file_progress() as progress:
        opened = open_graph(graph, data_directory(data_dir), notice, progress=progress)
    backend = sandbox.choose(sandbox_kind, base=resolved.sandbox.base, notice=notice)
    notice(f"the graph {opened.name} is at {sandbox.GRAPH}, you are in {sandbox.SCRATCH}; `exit` ends it")
    if resolved.view.one_program:
        notice("the one Python program of this mode is for its agent: here there is none")
    return backend.shell(sandbox_spec(opened.export, resolved.view, resolved.sandbox, {"run": "shell"}))
