"""`harness models`: what the model profiles are."""

from __future__ import annotations

import click

from harness.backbones import OTHERS, Profile, load_profile, profile_names
from harness.cli.modes import settings
from harness.cli.options import json_option
from harness.cli.output import print_json, table
from harness.text import number


@click.command()
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the model profiles, or print profile NAME in full.

    Profiles of your own are tables [models.NAME] in the config file, with the keys that are printed here. Whether a
    key is set is said; the key never is.

    \b
    Example:
      $ harness models gpt-5.2
    """
    if name is None:
        profiles = [load_profile(each) for each in profile_names()]
        if as_json:
            print_json([_as_dict(profile) for profile in profiles])
        else:
            header = ("model", "id", "api", "effort", "window", "price in", "cached", "out", "key", "endpoint")
            click.echo(table(header, [_row(profile) for profile in profiles], "    rrrr"))
            click.echo(f"\nnot profiles, and named to --model too: {', '.join(OTHERS)}")
        return
    profile = load_profile(name)
    if as_json:
        print_json(_as_dict(profile))
        return
    for key, value in settings(profile.as_dict()):
        click.echo(f"{key} = {value}")
    click.echo(f"# key: {_key(profile)}")


def _as_dict(profile: Profile) -> dict[str, object]:
    return {**profile.as_dict(), "needs_key": profile.needs_key, "key_is_set": profile.has_key}


def _row(profile: Profile) -> tuple[str, ...]:
    prices = (profile.prices.input, profile.prices.cached, profile.prices.output)
    return (
        profile.name,
        profile.model,
        profile.api,
        profile.effort or "-",
        number(profile.window),
        *("-" if price is None else f"{price:g}" for price in prices),
        _key(profile),
        profile.endpoint or "-",
    )


def _key(profile: Profile) -> str:
    if not profile.needs_key:
        return "not needed"
    return f"{profile.key_variable} is set" if profile.has_key else f"{profile.key_variable} is not set"
