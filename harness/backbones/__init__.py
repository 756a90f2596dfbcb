"""Models: one protocol (`harness.messages.Backbone`), whoever answers.

`http` speaks to any OpenAI-compatible endpoint, in the dialect of `chat` or `responses`; `scripted`, `replay` and
`manual` take a model's words from a file, a saved run or a person. `make_backbone` turns what a user names into one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.backbones.profiles import DEFAULT_MODEL, Profile, bare_profile, load_profile, profile_names
from harness.errors import UserError
from harness.messages import Backbone

__all__ = ["DEFAULT_MODEL", "OTHERS", "Profile", "load_profile", "make_backbone", "profile_names"]

OTHERS: Final = ("scripted:FILE", "replay:RUN", "manual", "demo")

# Imports wait until a model is named: the openai SDK takes half a second, which `demo` and `--help` need not pay.
# ruff: noqa: PLC0415


def make_backbone(
    name: str,
    *,
    base_url: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> tuple[Backbone, Profile]:
    """The model that `name` stands for, a profile or one of OTHERS. `overrides` are the `model.` keys of `--set`.

    Raises UserError for an unknown name or setting, a missing key, or a script or run that can't be read.
    """
    kind, sign, argument = name.partition(":")
    make = _WITH_ARGUMENT.get(kind) if sign else _PLAIN.get(name)
    if make is None:
        return _endpoint(load_profile(name, base_url=base_url, overrides=overrides, others=OTHERS), notice)
    if base_url is not None:
        raise UserError(f"model '{name}' has no endpoint, so --base-url means nothing to it", "leave out --base-url")
    return make(argument, overrides)


def _endpoint(profile: Profile, notice: Callable[[str], None]) -> tuple[Backbone, Profile]:
    from harness.backbones.http import HttpBackbone

    if profile.endpoint is None:
        raise UserError(f"model '{profile.name}' has no endpoint", "--base-url URL, or endpoint in its profile")
    return HttpBackbone(profile, notice), profile


def _scripted(argument: str, overrides: Mapping[str, Any] | None) -> tuple[Backbone, Profile]:
    from harness.backbones.scripted import ScriptedBackbone

    backbone = ScriptedBackbone(Path(argument))
    return backbone, bare_profile(backbone.name, overrides)


def _replay(argument: str, overrides: Mapping[str, Any] | None) -> tuple[Backbone, Profile]:
    from harness.backbones.replay import ReplayBackbone, recordings_of_run, window_of_run

    run = Path(argument)
    backbone = ReplayBackbone(f"replay:{argument}", recordings_of_run(run))
    window = window_of_run(run)
    return backbone, bare_profile(backbone.name, overrides, **({"window": window} if window else {}))


def _demo(_: str, overrides: Mapping[str, Any] | None) -> tuple[Backbone, Profile]:
    from harness.backbones.replay import ReplayBackbone, recordings_of_demo

    return ReplayBackbone("demo", recordings_of_demo()), bare_profile("demo", overrides)


def _manual(_: str, overrides: Mapping[str, Any] | None) -> tuple[Backbone, Profile]:
    from harness.backbones.manual import ManualBackbone

    return ManualBackbone(), bare_profile("manual", overrides)


_Maker = Callable[[str, Mapping[str, Any] | None], tuple[Backbone, Profile]]
_WITH_ARGUMENT: Final[Mapping[str, _Maker]] = {"scripted": _scripted, "replay": _replay}
_PLAIN: Final[Mapping[str, _Maker]] = {"manual": _manual, "demo": _demo}
