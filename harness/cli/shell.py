"""`harness shell`: a person in the agent's place."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

import sandbox
from harness.cli.file_progress import file_progress
from harness.cli.options import data_dir_option, sandbox_option, set_option
from harness.cli.output import notice
from harness.errors import UserError
from harness.graphs import data_directory, open_graph
from harness.modes import Sandbox, load_mode
from harness.settings import parse_assignments
from harness.setup import sandbox_spec

# Exit codes of what a signal ended that the kernel sends.
_KILLED = {
    128 + signal.SIGKILL: "by SIGKILL, as the kernel does where memory runs out, or from inside",
    128 + signal.SIGXCPU: "one process used up sandbox.cpu_seconds",
    128 + signal.SIGXFSZ: "it wrote a file larger than sandbox.file_size",
}


@click.command()
@click.option("--graph", required=True, metavar="GRAPH", help="A name from `harness graphs`, or the path of an export.")
@click.option("--mode", default="files", show_default=True, metavar="MODE", help="See `harness modes`.")
@sandbox_option
@data_dir_option
@set_option
def command(graph: str, mode: str, sandbox_kind: str, data_dir: Path | None, assignments: tuple[str, ...]) -> int:
    """Open a shell in exactly the sandbox that the agent has.

    Same files, same limits, same programs, no network. What is written there is gone when the shell ends. Exits
    with the shell's exit code, 137 where a limit ended it, and says which.

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
    try:
        end = backend.shell(sandbox_spec(opened.export, resolved.view, resolved.sandbox, {"run": "shell"}))
    except sandbox.SandboxLost:
        click.echo(err=True)  # the shell may have been in the middle of a line
        raise
    if why := _why(end, resolved.sandbox):
        click.echo(err=True)
        notice(why)
    return end.code


def _why(end: sandbox.ShellEnd, limits: Sandbox) -> str:
    """What ended a shell that did not end by itself, as far as is known; empty where it did."""
    reached = {
        "oom": f"its processes and files together took more memory than sandbox.memory, {limits.memory:,} MiB",
        "pid_limit": f"it had more processes and threads than sandbox.pids, {limits.pids:,}",
        "cpu_limit": f"its processes together used up sandbox.cpu_seconds, {limits.cpu_seconds:,} s",
    }
    if end.termination != "exit":
        what = reached.get(end.termination, "one of its limits was reached")
        return f"the shell was ended: {what}; --set changes a limit"
    if end.code not in _KILLED:
        return ""
    return f"the shell's exit code {end.code} means that it, or what it ran last, was killed: {_KILLED[end.code]}"
