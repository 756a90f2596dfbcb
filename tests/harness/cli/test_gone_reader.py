"""A reader of standard output that leaves early."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import HARNESS, HARNESS_ENV


@pytest.mark.parametrize("words", [("modes", "files"), ("graphs",), ("check", "RUN"), ("show", "RUN", "q1", "--full")])
def test_a_reader_that_has_had_enough_changes_no_exit_code(run: Path, words: tuple[str, ...]) -> None:
    command = [*HARNESS, *(str(run) if word == "RUN" else word for word in words)]
    usual = subprocess.run(command, env=HARNESS_ENV, capture_output=True, check=False)
    assert usual.stdout
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes) as pipe:
        closed = subprocess.run(command, env=HARNESS_ENV, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (usual.returncode, usual.stderr)
