"""Flags from the environment, and their defaults from the user's config.toml in the form that click takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from harness.config import config_path
from harness.errors import UserError
from harness.suggest import hint

# Keys that stand for one flag of several commands: key -> flag.
SHARED = {"default_model": "model", "data_dir": "data_dir"}
PROFILES = "models"  # the table of model profiles, which `harness.backbones.profiles` reads


def table_for(command: click.Command, name: str, config: Mapping[str, Any], commands: list[str]) -> dict[str, Any]:
    """Flag defaults of `command` from `config`, in the form of click's default_map. Raises UserError.

    `commands` are the names of all commands, which are the tables that a config may have.
    """
    tables = [other for other in commands if other != PROFILES]
    for key in config:
        if key not in SHARED and key not in commands:
            known = [*SHARED, *tables, f"{PROFILES}.NAME"]
            raise UserError(f"config file {config_path()}: unknown key '{key}'", hint(key, known, "known keys"))
    shared = {flag: config[key] for key, flag in SHARED.items() if key in config}
    return _defaults(command, {} if name == PROFILES else config.get(name, {}), shared, name)


def _defaults(command: click.Command, table: Any, shared: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise UserError(f"config file {config_path()}: {where} is a table, not {table!r}")
    options = {flag_key(p): p for p in command.params if isinstance(p, click.Option)}
    groups = dict(command.commands) if isinstance(command, click.Group) else {}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in options:
            defaults[_name(options[name])] = _value(options[name], value, f"{where}.{key}")
        elif key not in groups:
            known = [*options, *groups]
            raise UserError(f"config file {config_path()}: unknown key '{where}.{key}'", hint(key, known, "known keys"))
    for flag, value in shared.items():
        if flag in options:
            defaults.setdefault(_name(options[flag]), _value(options[flag], value, flag))
    for name, inner in groups.items():
        defaults[name] = _defaults(inner, table.get(name, {}), shared, f"{where}.{name}")
    return defaults


def name_variables(command: click.Command, prefix: str) -> None:
    """Give each flag the environment variable that is called as it is: `--base-url` of run is HARNESS_RUN_BASE_URL."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.envvar = f"{prefix}_{flag_key(option).upper()}"
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            name_variables(inner, f"{prefix}_{name.upper()}")


def check_variables(command: click.Command, prefix: str) -> None:
    """Raise UserError for a variable that begins as those of this command's flags do and is none of them."""
    known = list(_variables(command))
    for variable in sorted(os.environ):
        if variable.startswith(f"{prefix}_") and variable not in known:
            raise UserError(f"no flag has the variable {variable}", hint(variable, known, "variables"))


def _variables(command: click.Command) -> Iterator[str]:
    for option in command.params:
        if isinstance(option, click.Option) and isinstance(option.envvar, str):
            yield option.envvar
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _variables(inner)


def flag_key(option: click.Option) -> str:
    """The flag as a TOML key: `--base-url` is `base_url`."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def _name(option: click.Option) -> str:
    assert option.name is not None
    return option.name


def _value(option: click.Option, value: Any, where: str) -> Any:
    """A TOML value as what the command line would have given."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UserError(f"config file {config_path()}: {where} takes true or false, not {value!r}")
        return value
    if option.multiple:
        if isinstance(value, Mapping):
            return [f"{key}={json.dumps(item)}" for key, item in _flatten(value)]
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        pairs += _flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else [(prefix + key, value)]
    return pairs
