"""Every bench runs, on a graph or a run of next to no size: what it measures there means nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Backend

ROOT = Path(__file__).resolve().parents[1]
SMALL = (
    *("audit --trajectories 4", "audit_programs", "backbone --turns 3 --characters 500"),
    *("export --edges 20000 --nodes 500", "hub --neighbors 100", "index --nodes 2000 --edges 8000 --scan 500"),
    *("stark --shape prime --scale 0.001", "stark --shape mag --scale 0.001", "stark --shape amazon --scale 0.001"),
    *("streaming --nodes 300 --edges 3000 --source tables", "view --trajectories 8"),
)
SMALL_WITH_SANDBOX = (
    *("client --calls 5", "kernel --edges 20000 --programs 1 --calls 2 --kind bwrap", "sandbox --calls 3 --opens 1"),
    *("loop cpu --attempts 1", "loop memory --questions 5", "loop throughput --questions 6"),
)


def run_bench(words: str, temporary: Path) -> str:
    """What a bench prints. What it leaves behind is a fault too."""
    temporary.mkdir()
    command = [sys.executable, "-m", *f"bench.{words}".split()]
    environ = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == []
    return done.stdout


@pytest.mark.parametrize("words", SMALL)
def test_a_bench(tmp_path: Path, words: str) -> None:
    assert re.search(r"\d", run_bench(words, tmp_path / "tmp"))


@pytest.mark.parametrize("words", SMALL_WITH_SANDBOX)
def test_a_bench_of_sandboxes(tmp_path: Path, bwrap: Backend, words: str) -> None:
    assert bwrap.kind in run_bench(words, tmp_path / "tmp")


def test_none_is_left_out() -> None:
    """Every module in bench/ that can be run, but bench.context, which tests/harness/test_context_economics.py runs."""
    runnable = {path.stem for path in (ROOT / "bench").glob("*.py") if "__main__" in path.read_text("utf-8")}
    assert {words.split()[0] for words in (*SMALL, *SMALL_WITH_SANDBOX)} == runnable - {"context"}
