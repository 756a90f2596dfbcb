"""The root command: finds a command's module when it is asked for, and turns errors into lines and exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from harness import __version__
from harness.cli.defaults import check_variables, name_variables, table_for
from harness.cli.errors import Stopped, report
from harness.config import load_config

# Command -> what the list of commands says. The command itself is `command` in harness/cli/<name>.py.
COMMANDS = {
    "run": "Ask an agent the questions of a graph and score its answers.",
    "score": "Score runs: Hit@1, Hit@5, Recall@20 and MRR, with intervals.",
    "compare": "Compare runs on the questions they share, with intervals and tests.",
    "audit": "Say what agents did in runs, where answers come from, and whether to trust them.",
    "replay": "Run a saved run's commands again and compare what the model saw.",
    "convert": "Write a saved run in another tool's format.",
    "import": "Make a run folder of runs made elsewhere, to audit, score and compare them.",
    "report": "Make the table of an ablation, or a page on its runs.",
    "view": "Read runs and their trajectories in the browser.",
    "show": "Read a run or one of its trajectories in the terminal.",
    "graphs": "List the graphs there are.",
    "export": "Turn a graph's sources into the files that an agent reads.",
    "check": "Verify an export or a run folder.",
    "modes": "List the modes, or print mode NAME in full.",
    "models": "List the model profiles, or print profile NAME in full.",
    "doctor": "Say what is and isn't there on this machine.",
    "shell": "Open a shell in exactly the sandbox that the agent has.",
    "clean": "Remove what killed runs left behind.",
}


class Root(click.Group):
    """A group whose commands are imported when used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"harness.cli.{cmd_name}")
        command: click.Command = module.command
        name_variables(command, f"HARNESS_{cmd_name.upper()}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS and not ctx.resilient_parsing:
            command = self.get_command(ctx, name)
            assert command is not None
            check_variables(command, f"HARNESS_{name.upper()}")
            ctx.meta["harness.command"] = ["harness", *args]
            ctx.default_map = {name: table_for(command, name, load_config(), list(COMMANDS))}
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click itself would print an empty line and call it aborted
            raise Stopped("stopped") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run and exit. A command returns its exit code, or None for 0."""
        extra.pop("standalone_mode", None)
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(words, prog_name, standalone_mode=False, **extra)
        except Exception as error:
            code = report(error, " ".join(["harness", *(word for word in words[:1] if word in COMMANDS)]))
            if code is None:
                raise
        sys.exit(code or 0)


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, "--version", prog_name="harness")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Let an LLM agent search a knowledge graph that lies in a sandbox as plain files.

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 done with infrastructure failures or
    faults found, 2 a mistake in what was asked for, 3 infrastructure.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
