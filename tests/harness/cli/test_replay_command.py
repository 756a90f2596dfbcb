"""`harness replay`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporter import Export
from harness.modes import load_mode
from sandbox import Backend
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export

HOSTILE = "\x1b]0;owned\x07\u202e"


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return make_export(tmp_path / "graph")


def test_a_match(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt([Step("echo a", "a"), Step("echo b", "b")])]})
    done = run_cli("replay", str(run), "--sandbox", "bwrap")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{run}: 1 attempt, 2 commands, bwrap", "2 matched byte for byte (100.0%)"]
    again = run_cli("replay", str(run), "--sandbox", "bwrap", "--json")
    content = json.loads(again.stdout)
    assert (content["commands"], content["matched"], content["differences"]) == (2, 2, [])
    assert "1 attempt replayed before" in again.stderr


def test_differences(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    steps = [Step("date +%T", "01:02:03"), Step("echo b", f"c{HOSTILE}"), Step("echo d", "d")]
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(steps)]})
    done = run_cli("replay", str(run), "--sandbox", "bwrap")
    assert done.code == 1
    assert not set(HOSTILE) & set(done.stdout) - set("]0;owned")
    rows = done.stdout.splitlines()
    assert rows[1:3] == [
        "1 matched byte for byte (33.3%)", "1 differs for a known cause (66.7% with the matched ones)",
    ]  # fmt: skip
    at = rows.index("trajectories/q1/0-0.jsonl:5, turn 2: unknown cause")
    assert rows[at + 1 : at + 4] == ["  bash: echo b", "  - c\\x1b]0;owned\\x07\\u202e", "  + b"]
    known = make_audited_run(tmp_path / "known", export, {"q1": [Attempt(steps[:1])]})
    assert run_cli("replay", str(known), "--sandbox", "bwrap").code == 0


def test_all_runs_of_a_folder(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    steps = [Step("echo a", "a")]
    mode = load_mode("tools").as_dict()
    make_audited_run(tmp_path / "runs" / "a", export, {"q1": [Attempt(steps)]}, created=1.0)
    make_audited_run(tmp_path / "runs" / "b", export, {"q1": [Attempt([Step("echo a", "b")])]}, created=2.0)
    make_audited_run(tmp_path / "runs" / "c", export, {"q1": [Attempt()]}, mode=mode, created=3.0)
    done = run_cli("replay", str(tmp_path / "runs"), "--sandbox", "bwrap", "--json")
    assert done.code == 1
    tables = json.loads(done.stdout)
    assert [(Path(table["run"]).name, table["matched"]) for table in tables] == [("a", 1), ("b", 0), ("c", 0)]
    assert (tables[2]["sandbox"], "c: nothing to replay" in done.stderr) == ("no sandbox", True)
    alone = run_cli("replay", str(tmp_path / "runs" / "c"), "--sandbox", "bwrap")
    assert (alone.code, alone.stdout) == (0, f"{tmp_path / 'runs' / 'c'}: 0 attempts, 0 commands, no sandbox\n")


def test_mistakes(tmp_path: Path, export: Export) -> None:
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt()]})
    mistake(run_cli("replay", str(tmp_path / "none")), "there is no folder")
    mistake(run_cli("replay", str(export.path)), "is not the manifest of a run")
    mistake(run_cli("replay", str(run), "--query", "q7"), "no attempt at question 'q7'", "lists them")
    mistake(run_cli("replay", str(run), "--sandbox", "none"), "--sandbox")
