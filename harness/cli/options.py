"""Flags that several commands share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Names(click.ParamType[tuple[str, ...]]):
    """`a,b,c` as a tuple of names, without repeats."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = [part.strip() for part in str(value).split(",")]
        if not all(names):
            self.fail(f"'{value}' has an empty name", param, ctx)
        return tuple(dict.fromkeys(names))


class Pairs(click.ParamType[dict[str, str]]):
    """`a=b,c=d` as a dict."""

    name = "pairs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = {}
        for part in str(value).split(","):
            key, separator, named = (piece.strip() for piece in part.partition("="))
            if not (key and separator and named) or key in pairs:
                self.fail(f"'{part.strip()}' is not NAME=NAME, or a second one for that name", param, ctx)
            pairs[key] = named
        return pairs


class AtLeastOne(click.IntRange):
    """A whole number from 1 on."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"'{value}' is no whole number from 1 on", param, ctx)


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    envvar="HARNESS_DATA",
    help="Where exported graphs lie. Default: the platform's folder for user data.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

sandbox_option = click.option(
    "--sandbox",
    "sandbox_kind",
    type=click.Choice(["auto", "docker", "bwrap"]),
    default="auto",
    show_default=True,
    help="Docker, bubblewrap, or what can be had.",
)

set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the mode, for example limits.turns=50. See `harness modes NAME` for the keys.",
)
