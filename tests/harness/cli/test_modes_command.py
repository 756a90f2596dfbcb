"""`harness modes`."""

from __future__ import annotations

import json

from harness.modes import load_mode, mode_names
from harness.settings import parse_assignments
from tests.support.cli import run_cli


def test_lists_every_mode() -> None:
    lines = run_cli("modes").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == mode_names()
    assert [mode["name"] for mode in json.loads(run_cli("modes", "--json").stdout)] == mode_names()


def test_prints_a_mode_so_that_set_takes_it_back() -> None:
    text, _, prompt = run_cli("modes", "files").stdout.partition("\nprompt:\n")
    mode = load_mode("files")
    assert prompt.strip() == mode.prompt.strip()
    lines = [line.replace(" = ", "=", 1) for line in text.splitlines() if not line.startswith("name = ")]
    assert load_mode("files", parse_assignments(lines)) == mode
    assert json.loads(run_cli("modes", "files", "--json").stdout) == json.loads(json.dumps(mode.as_dict()))
