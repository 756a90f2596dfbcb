"""No space left: one line that names the folder, and a run that goes on once there is some."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from harness.cli.errors import explain
from tests.support.cli import HARNESS, HARNESS_ENV
from tests.support.runs import jsonl, make_export


def test_an_error_that_names_no_file() -> None:
    with pytest.raises(OSError, match="No space left") as caught, Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")
    assert caught.value.errno == errno.ENOSPC
    problem = explain(caught.value)
    assert problem is not None
    assert (problem.message, problem.code) == ("the disk: no space left on device", 2)
    assert "free some space" in problem.hint


def test_under_a_run(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the end of the disk: neither says which file it was."""
    graph = make_export(tmp_path)
    script = jsonl(tmp_path / "long.jsonl", [{"role": "assistant", "content": "x" * 100_000}])
    words = [*HARNESS, "run", "--graph", str(graph.path), "--mode", "closed-book-ids", "--out", "run"]
    words += ["--model", f"scripted:{script}"]
    limited = ["bash", "-c", 'ulimit -f 40; exec "$@"', "bash", *words]
    done = subprocess.run(limited, cwd=tmp_path, env=HARNESS_ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    *_, again, error, hint = done.stderr.splitlines()
    assert again.startswith("to go on: harness run ")
    assert error == "error: run: file too large"
    assert hint == "hint: free some space, or choose a folder on another disk"
    words.append("--resume")
    done = subprocess.run(words, cwd=tmp_path, env=HARNESS_ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
