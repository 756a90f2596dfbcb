"""Models: one protocol (`harness.messages.Backbone`), whoever answers.

`http` speaks to any OpenAI-compatible endpoint, in the dialect of `chat` or `responses`; `scripted`, `replay` and
`manual` take a model's words from a file, a saved run or a person. `make_backbone` turns what a user names into one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporter import Export
from harness.backbones.profiles import (
    DEFAULT_MODEL,
    UNKNOWN_WINDOW,
    Profile,
    bare_profile,
    load_profile,
    profile_names,
)
from harness.errors import UserError
from harness.messages import Backbone
from harness.text import count_of

if TYPE_CHECKING:
    from harness.backbones.http import HttpBackbone

__all__ = [
    "DEFAULT_MODEL",
    "LOCAL",
    "OTHERS",
    "Profile",
    "load_profile",
    "make_backbone",
    "maker_of_own",
    "profile_names",
    "takes_settings",
]

_Notice = Callable[[str], None]
_Overrides = Mapping[str, Any] | None

LOCAL: Final = "local"
OTHERS: Final = ("scripted:FILE", "replay:RUN", "manual", "demo", LOCAL, f"{LOCAL}:FILE")

# Imports wait until a model is named: the openai SDK takes half a second, which `demo` and `--help` need not pay.
# ruff: noqa: PLC0415


def make_backbone(
    name: str,
    *,
    base_url: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    notice: _Notice = lambda _: None,
) -> tuple[Backbone, Profile]:
    """The model that `name` stands for, a profile or one of OTHERS. `overrides` are the `model.` keys of `--set`.

    Raises UserError for an unknown name or setting, a missing key, or a script or run that can't be read.
    """
    kind, sign, argument = name.partition(":")
    make = _WITH_ARGUMENT.get(kind) if sign else _PLAIN.get(name)
    if make is None:
        return _endpoint(load_profile(name, base_url=base_url, overrides=overrides, others=OTHERS), notice)
    if sign and not argument:
        raise UserError(f"model '{name}' lacks what comes behind the colon", _EXAMPLES[kind])
    if base_url is not None:
        raise UserError(f"model '{name}' has no endpoint, so --base-url means nothing to it", "leave out --base-url")
    return make(argument if sign else "", overrides, notice)


def takes_settings(name: str) -> bool:
    """Whether the model of this name is asked over HTTP, so that a mode's own settings (temperature) mean something."""
    return name not in _PLAIN and name.partition(":")[0] not in _WITH_ARGUMENT


def maker_of_own(name: str) -> Callable[[Export, int, _Notice], Backbone]:
    """What makes a mode's own model: `bm25`, given a graph and how many nodes it ranks.

    Raises UserError for another name.
    """
    from harness.backbones.bm25 import Bm25Backbone

    if name != Bm25Backbone.name:
        raise UserError(f"unknown backbone '{name}' of a mode", f"there is {Bm25Backbone.name}")
    return Bm25Backbone


def _endpoint(profile: Profile, notice: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.http import HttpBackbone

    if profile.endpoint is None:
        raise UserError(f"model '{profile.name}' has no endpoint", "--base-url URL, or endpoint in its profile")
    model = HttpBackbone(profile, notice)
    return model, profile if profile.window else replace(profile, window=_window(model, notice))


def _window(model: HttpBackbone, notice: _Notice) -> int:
    """The context window as the server says, else a guess that is told."""
    if (found := model.window()) is not None:
        notice(f"{model.name}: context window of {count_of(found, 'token')}, as its server says")
        return found
    notice(f"{model.name}: context window unknown, taken as {UNKNOWN_WINDOW:,} tokens; --set model.window=N sets it")
    return UNKNOWN_WINDOW


def _scripted(argument: str, overrides: _Overrides, _: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.scripted import ScriptedBackbone

    backbone = ScriptedBackbone(Path(argument))
    return backbone, bare_profile(backbone.name, overrides)


def _replay(argument: str, overrides: _Overrides, notice: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.replay import ReplayBackbone, recordings_of_run, window_of_run

    run = Path(argument)
    backbone = ReplayBackbone(f"replay:{argument}", recordings_of_run(run), notice)
    window = window_of_run(run)
    return backbone, bare_profile(backbone.name, overrides, **({"window": window} if window else {}))


def _demo(_: str, overrides: _Overrides, notice: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.replay import Needs, ReplayBackbone, recordings_of_demo

    notice("demo: recorded turns, no model is asked; their commands run live in the sandbox")
    needs = Needs(graph="biogo", mode="files", usual="harness run --graph biogo --mode files --model demo")
    return ReplayBackbone("demo", recordings_of_demo(), needs=needs), bare_profile("demo", overrides)


def _manual(_: str, overrides: _Overrides, __: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.manual import ManualBackbone

    return ManualBackbone(), bare_profile("manual", overrides)


def _local(argument: str, overrides: _Overrides, notice: _Notice) -> tuple[Backbone, Profile]:
    from harness.backbones.local import LocalBackbone, model_file

    name = f"{LOCAL}:{argument}" if argument else LOCAL
    file = model_file(argument)
    values = {
        "model": "local",
        "api": "prompted",
        "window": "none",
        "temperature": 0.0,
        "max_output": 2_000,
        "tries": 3,
    }
    profile = bare_profile(name, overrides, **values)
    model = LocalBackbone(profile, file, notice)
    return model, replace(profile, model=file.stem, window=model.window() or profile.window)


_Maker = Callable[[str, _Overrides, _Notice], tuple[Backbone, Profile]]
_WITH_ARGUMENT: Final[Mapping[str, _Maker]] = {"scripted": _scripted, "replay": _replay, LOCAL: _local}
_PLAIN: Final[Mapping[str, _Maker]] = {"manual": _manual, "demo": _demo, LOCAL: _local}
_EXAMPLES: Final = {
    "scripted": "for example scripted:turns.jsonl",
    "replay": "for example replay:runs/mine",
    "local": "for example local:model.gguf",
}
