"""`harness modes`: what the modes are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from harness.cli.options import json_option
from harness.cli.output import print_json
from harness.cli.tables import table
from harness.modes import load_mode, mode_names
from harness.text import plain


@click.command()
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the modes, or print mode NAME in full.

    What is printed of one mode is its resolved form: every setting with the key that `harness run --set` takes, and
    the prompt.

    \b
    Example:
      $ harness modes files
    """
    if name is None:
        modes = [load_mode(each) for each in mode_names()]
        if as_json:
            print_json([mode.as_dict() for mode in modes])
        else:
            rows = [(mode.name, ", ".join(mode.tools), mode.summary) for mode in modes]
            click.echo(table(("mode", "tools", "what it is"), rows))
        return
    mode = load_mode(name).as_dict()
    if as_json:
        print_json(mode)
        return
    prompt = mode.pop("prompt")
    for key, value in settings(mode):
        click.echo(f"{key} = {value}")
    click.echo(f"\nprompt:\n{plain(prompt).strip()}")


def settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys with their values, as `--set` takes them."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from settings(value, f"{prefix}{key}.")
        else:
            yield prefix + key, "none" if value is None else plain(json.dumps(value, ensure_ascii=False))
