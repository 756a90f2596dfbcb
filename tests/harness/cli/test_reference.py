"""The reference is generated from the commands, and every command says what it does and shows how."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.reference import reference
from harness.cli.root import root
from tests.support.cli import run_cli

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = list(commands())


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text("utf-8") == reference(), "python -m harness.cli.reference > docs/cli.md"


@pytest.mark.parametrize(("path", "command"), EVERY, ids=[" ".join(path) for path, _ in EVERY])
def test_every_command_has_help_with_an_example(path: tuple[str, ...], command: click.Command) -> None:
    text = run_cli(*path, "--help").stdout
    assert command.help
    if not isinstance(command, click.Group):
        assert f"$ harness {' '.join(path)}" in text
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
