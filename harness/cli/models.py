"""`harness models`: what the model profiles are, and what an endpoint supports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from harness.backbones import LOCAL, OTHERS, Profile, load_profile, make_backbone, profile_names, takes_settings
from harness.backbones.profiles import model_settings
from harness.cli.errors import INFRASTRUCTURE
from harness.cli.modes import settings
from harness.cli.options import json_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table
from harness.errors import BackboneError, UserError
from harness.settings import parse_assignments
from harness.text import count_of, duration, number

if TYPE_CHECKING:
    from harness.backbones.probe import Probe


@click.command()
@click.argument("name", required=False)
@click.option("--probe", "asked", is_flag=True, help="Send NAME one tiny request and say what its endpoint supports.")
@click.option("--base-url", metavar="URL", help="Ask this OpenAI-compatible endpoint instead of the profile's.")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change a setting, for example model.effort=low."
)
@json_option
def command(name: str | None, asked: bool, base_url: str | None, assignments: tuple[str, ...], as_json: bool) -> int:
    """List the model profiles, or print profile NAME in full.

    Profiles of your own are tables [models.NAME] in the config file, with the keys that are printed here; --set takes
    them as model.KEY=VALUE, as `harness run` does. Whether a key is set is said; the key never is.

    \b
    Examples:
      $ harness models gpt-5.2
      $ harness models my-model --base-url http://localhost:8000/v1 --probe
    """
    overrides = model_settings(given := parse_assignments(assignments))
    if given:
        raise UserError(f"--set {next(iter(given))} is no setting of a model", "for example: --set model.effort=low")
    if name is None:
        if asked or base_url is not None or assignments:
            raise UserError(
                "--probe, --base-url and --set need the NAME of a model", f"profiles: {', '.join(profile_names())}"
            )
        _list([load_profile(each) for each in profile_names()], as_json)
        return 0
    if name.partition(":")[0] == LOCAL:
        profile, found = _local(name, base_url, overrides, asked)
    elif not takes_settings(name):
        raise UserError(f"model '{name}' is no profile", "it is asked without an endpoint; there is nothing to set")
    else:
        profile = load_profile(name, base_url=base_url, overrides=overrides)
        found = _probe(profile) if asked else None
    if found is not None:
        return _print_probe(profile, found, as_json)
    if as_json:
        print_json(_as_dict(profile))
        return 0
    for key, value in settings(profile.as_dict()):
        click.echo(f"{key} = {value}")
    click.echo(f"# key: {_key(profile)}")
    return 0


def _list(profiles: list[Profile], as_json: bool) -> None:
    if as_json:
        print_json([_as_dict(profile) for profile in profiles])
        return
    header = ("model", "id", "api", "effort", "window", "price in", "cached", "out", "key", "endpoint")
    click.echo(table(header, [_row(profile) for profile in profiles], "    rrrr"))
    click.echo(f"\nnot profiles, and named to --model too: {', '.join(OTHERS)}")


# Imports wait until something is asked: they bring the openai SDK, half a second.
def _probe(profile: Profile) -> Probe:
    from harness.backbones.probe import probe  # noqa: PLC0415

    return probe(profile)


def _local(name: str, base_url: str | None, overrides: Mapping[str, Any], asked: bool) -> tuple[Profile, Probe | None]:
    """The profile of a model on this machine, whose server is started for it, and what it can do."""
    from harness.backbones.local import LocalBackbone  # noqa: PLC0415
    from harness.backbones.probe import probe_model  # noqa: PLC0415

    model, profile = make_backbone(name, base_url=base_url, overrides=overrides, notice=notice)
    assert isinstance(model, LocalBackbone)
    with closing(model):
        return profile, probe_model(model) if asked else None


def _print_probe(profile: Profile, found: Probe, as_json: bool) -> int:
    """Print what an endpoint can do; 3 where it failed."""
    if as_json:
        print_json({"model": profile.name, "endpoint": profile.endpoint, **found.as_dict()})
        return INFRASTRUCTURE if found.error else 0
    if found.error:
        hint = f"check --base-url and the model's name; `harness models {profile.name}` shows what is asked"
        raise BackboneError(f"model '{profile.name}': {found.error}", hint)
    rows = [
        ("endpoint", f"{profile.endpoint or 'this machine'} ({profile.api}), answered in {duration(found.seconds)}"),
        ("tool calls", _calls(found.tools, found.arguments)),
        ("reasoning", {True: "shown or counted", False: "none this time", None: "not told"}[found.reasoning]),
        ("usage", ", ".join(found.usage) or "not reported: costs and sizes are estimates"),
        ("cached tokens", "reported" if "cached" in found.usage else "not reported"),
        ("context window", f"{_window(found.window)} (profile: {_window(profile.window)})"),
        ("mended", ", ".join(found.repairs) or "nothing"),
    ]
    for what, text in rows:
        click.echo(f"{what:<16}{text}")
    return 0


def _calls(came: bool | None, fit: bool | None) -> str:
    if not came:
        return "none, though one was required"
    return "made when required" if fit else "made when required, with arguments that do not fit"


def _window(tokens: int | None) -> str:
    return "not told" if tokens is None else count_of(tokens, "token")


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
