"""Runs recorded under every version of the trajectory format: today's commands read them all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exporter import Export
from harness.audit import audit_run
from harness.events import SCHEMA_VERSION, read_events
from harness.ledger import read_ledger
from harness.saved import SavedRun
from harness.schemas import check_run
from harness.score import score_run
from harness.view.api import Api, Parameters
from harness.view.runs import ViewedRun
from tests.support.cli import run_cli

RUNS = Path(__file__).resolve().parents[1] / "data" / "recorded"
VERSIONS = [f"v{number}" for number in range(1, SCHEMA_VERSION + 1)]
TYPES = {"start", "request", "reply", "result", "clear", "notice", "answer", "end"}


@pytest.fixture(params=VERSIONS)
def run(request: pytest.FixtureRequest, tmp_path: Path, biogo: Export) -> Path:
    """A copy of a recorded run that finds the sample graph where it is now."""
    path: Path = tmp_path / request.param
    shutil.copytree(RUNS / request.param, path)
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["export"] |= {"path": str(biogo.path), "digest": biogo.digest}
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def test_there_is_one_for_each_version() -> None:
    assert sorted(path.name for path in RUNS.iterdir() if path.is_dir()) == sorted(VERSIONS)
    for version in VERSIONS:
        events = [event for path in (RUNS / version).glob("trajectories/*/*.jsonl") for event in read_events(path)]
        assert {event["type"] for event in events} == TYPES
        assert {f"v{event['schema_version']}" for event in events} == {version}


def test_it_fits_the_schemas(run: Path) -> None:
    assert list(check_run(run)) == []


def test_score(run: Path) -> None:
    score = score_run(run)
    assert [question.question.id for question in score.questions] == ["bio01"]
    assert (score.failed_is_miss.n, score.turns, score.usage["input"]) == (1, 5, 10_000)


def test_audit(run: Path) -> None:
    audit = audit_run(run)
    assert [(line.query_id, line.calls, line.programs) for line in audit.part.attempts] == [("bio01", 4, 2)]
    assert audit.rows("rejected_ids")["duplicate"].count == 1
    assert audit.facts.unknown == []


def test_show(run: Path) -> None:
    text = run_cli("show", str(run), "bio01", "--full").stdout
    for expected in (
        "turn 5 ---", "Which terms are there?", "rg -N --no-filename 'repair'", "1 result cleared",
        "cut: 741 characters left out of the middle; the output is in the sandbox as outputs/001.txt, and saved as",
        "cleared from the conversation before turn 3", "the harness said: Note: 2 turns and 1799 seconds are left.",
        "rejected: 165 (duplicate)", "rejected: 99999999 (unknown)",
        "  1  101  LIG1  [first shown in turn 3, byte 15, named by the agent before]",
    ):  # fmt: skip
        assert expected in text, expected


def test_view(run: Path) -> None:
    api = Api([ViewedRun(0, run)])
    page = api.items(Parameters({"run": "0", "q": "bio01"}))
    assert {item["type"] for item in page["items"]} == TYPES
    assert page["next"] is None
    saved = SavedRun.open(run)
    found = api.origins(Parameters({"run": "0", "q": "bio01"}))
    assert found["class"] == saved.error_class(read_ledger(run)[0])


def test_a_later_version_is_refused(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    later = {"schema_version": SCHEMA_VERSION + 1, "seq": 0, "time": 0.0, "type": "start"}
    path.write_text(json.dumps(later) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"later\.jsonl:1: written by a later version of kgshell: schema_version 2"):
        list(read_events(path))
