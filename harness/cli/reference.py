"""Prints docs/cli.md, the reference of all commands: `python -m harness.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness.cli.defaults import PROFILES, SHARED, flag_key
from harness.cli.root import root

_WIDTH = 100
_HEAD = """# Command line reference

This page is generated from the commands: `python -m harness.cli.reference > docs/cli.md`.

`harness` and `kgshell` are the same program. Results go to stdout, everything else to stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | infrastructure failures in a run, or a limit of it reached; faults found by `check`; no sandbox for `doctor` |
| 2 | a mistake in what was asked for: one line that says what, and a `hint:` |
| 3 | infrastructure: a failed isolation probe, an exhausted quota |
| 130 | stopped with Ctrl-C or SIGTERM; the command that goes on is printed |

Every flag has an environment variable and a key in the config file, named below each command. What is given on the
command line goes before the environment, and that before the config file. The config file is the one that
`HARNESS_CONFIG` names, else `config.toml` in the platform's folder for the settings of `kgshell`
(`~/.config/kgshell/` on Linux). In the config file, `default_model` stands for `--model` and `data_dir` for
`--data-dir` of every command, and the tables `[models.NAME]` are model profiles. An unknown key is an error, and so is
a variable that begins like those of a command and is none of them.
"""


def reference() -> str:
    """The whole page as Markdown."""
    context = _context(root, "harness", None)
    return "\n".join([_HEAD, *_section(root, context, 2)])


def _section(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```console\n$ {context.command_path} --help\n{context.command.get_help(context)}\n```\n"
    rows = list(_settings(command, context))
    if rows:
        yield "| flag | environment | config file |\n|---|---|---|"
        yield from rows
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _section(inner, _context(inner, name, context), min(level + 1, 3))


def _settings(command: click.Command, context: click.Context) -> Iterator[str]:
    if context.parent is None:
        return
    table = ".".join(context.command_path.split()[1:])
    shared = {flag: key for key, flag in SHARED.items()}
    for option in command.params:
        if isinstance(option, click.Option):
            key = flag_key(option)
            own = [] if table == PROFILES else [f"`{table}.{key}`"]  # that table holds the profiles themselves
            keys = [*own, *([f"`{shared[key]}`"] if key in shared else [])]
            yield f"| `{max(option.opts, key=len)}` | `{option.envvar}` | {', '.join(keys)} |"


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    return command.context_class(command, info_name=name, parent=parent, **settings)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
