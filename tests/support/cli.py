"""Runs the command line in this process and says what came of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from harness.cli.root import root

# For tests that need a process of its own, in whatever folder: a command and the environment that it needs.
HARNESS = [sys.executable, "-m", "harness"]
# Flags of `harness run`: the isolation probe fills the writable folders up, which takes as long as they are large.
SMALL = ("--set", "sandbox.scratch=16", "--set", "sandbox.tmp=16", "--set", "sandbox.shm=16")
_ROOT = str(Path(__file__).resolve().parents[2])
HARNESS_ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([_ROOT, os.environ.get("PYTHONPATH", "")]).rstrip(":")}


@dataclass(frozen=True)
class Outcome:
    """What a command printed and the code it exited with."""

    code: int
    stdout: str
    stderr: str


def run_cli(*arguments: str, env: Mapping[str, str] | None = None, stdin: str | None = None) -> Outcome:
    """Run `harness ARGUMENTS`. Errors that aren't mapped to an exit code come through."""
    clean = {"HARNESS_CONFIG": None, "HARNESS_DATA": None, **(env or {})}
    done = CliRunner(catch_exceptions=False).invoke(root, list(arguments), input=stdin, env=clean, prog_name="harness")
    return Outcome(done.exit_code, done.stdout, done.stderr)


def mistake(outcome: Outcome, message: str, hint: str = "") -> None:
    """Assert that this is how a user's mistake looks: one line, a hint, exit 2, nothing on stdout."""
    lines = outcome.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    hints = [line for line in lines if line.startswith("hint: ")]
    assert outcome.code == 2, outcome
    assert outcome.stdout == "", outcome
    assert "Traceback" not in outcome.stderr
    assert len(errors) == 1, outcome
    assert message in errors[0], outcome
    assert len(hints) == 1, outcome
    assert hint in hints[0], outcome
    assert lines[-2:] == [errors[0], hints[0]], outcome
