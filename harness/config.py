"""The user's config.toml: a default for every flag, in a table named after its command, and model profiles.

    default_model = "my-model"
    data_dir = "/data/graphs"

    [run]
    workers = 8
    set = {limits.turns = 100}

    [models.my-model]
    endpoint = "http://localhost:8000/v1"

A flag on the command line or in the environment goes before it. Unknown keys are errors that name the known ones.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import platformdirs

from harness.errors import UserError

APP = "kgshell"
VARIABLE = "HARNESS_CONFIG"


def config_path() -> Path:
    """Where the config is read from: `HARNESS_CONFIG`, else the platform's folder for user settings."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else platformdirs.user_config_path(APP) / "config.toml"


def load_config() -> dict[str, Any]:
    """The config's table; empty where there is no file. Raises UserError for a file that can't be read."""
    path = config_path()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if os.environ.get(VARIABLE):
            raise UserError(f"there is no config file {path}", f"{VARIABLE} names it: correct or unset it") from None
        return {}
    except OSError as error:
        raise UserError(f"config file {path}: {(error.strerror or 'unreadable').lower()}") from None
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = f"correct the file, or name another with {VARIABLE}"
        raise UserError(f"config file {path}: {error}", hint) from None
