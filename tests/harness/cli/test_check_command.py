"""`harness check`."""

from __future__ import annotations

import fcntl
from pathlib import Path

from exporter import Export
from harness.events import trajectory_path
from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export, make_run, write_trajectory


def test_exports(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    good = run_cli("check", str(export.path))
    assert (good.code, good.stdout) == (0, "")
    path = export.files / "nodes" / "0000.jsonl"
    path.write_text(path.read_text("utf-8").replace('"node 7"', '"node 8"'), encoding="utf-8")
    bad = run_cli("check", str(export.path))
    assert bad.code == 1
    assert "files/nodes/0000.jsonl" in bad.stdout


def test_runs(run: Path) -> None:
    result = run_cli("check", str(run))
    assert result.code == 1
    assert "attempts.jsonl:2: its trajectory trajectories/q2/0-0.jsonl is missing" in result.stdout


def test_a_run_that_goes_on(tmp_path: Path, export: Export) -> None:
    run = make_run(tmp_path / "run", export, []).path
    write_trajectory(run)
    path = run / trajectory_path("q1", 0, 0)
    path.write_bytes(path.read_bytes()[:-3])
    with (run / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        going = run_cli("check", str(run))
    assert "a run is writing it" in going.stderr
    assert "in flight at a crash" not in going.stdout
    assert "torn" not in going.stdout
    stopped = run_cli("check", str(run))
    assert stopped.code == 1
    assert "a run is writing it" not in stopped.stderr
    assert "in flight at a crash" in stopped.stdout
    assert "torn" in stopped.stdout


def test_neither(tmp_path: Path) -> None:
    mistake(run_cli("check", str(tmp_path)), "is neither an export nor a run folder", "manifest.json")
