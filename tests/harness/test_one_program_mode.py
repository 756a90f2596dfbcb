"""The mode whose shell can run one Python program: a run from end to end, and all that reads what it leaves behind."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.audit.run import audit_run
from harness.errors import UserError
from harness.events import read_events
from harness.ledger import read_ledger
from harness.modes import load_mode
from harness.replay_run import plan_replay, replay_run
from harness.runfiles import read_manifest
from harness.schemas import check_run
from harness.settings import parse_assignments
from harness.view.trajectory import Items, read_index
from sandbox import Backend
from tests.support.cli import run_cli
from tests.support.running import maker, run
from tests.support.words import bash, calls, says

PROGRAM = """cat > find.py <<'END'
import json
for line in open("/graph/nodes/0000.jsonl"):
    node = json.loads(line)
    if "mismatch repair" in node["name"]:
        print(node["node_id"], node["name"])
END
python3 find.py | sort -n"""
TURNS = [
    calls(bash("type python3 perl; rg -c mismatch /graph/nodes/0000.jsonl")),
    calls(bash("python3 -c 'raise SystemExit(4)'; python3 --version")),
    calls(bash(PROGRAM)),
    says("ANSWER: [851]"),
]


@pytest.fixture(params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def done(kind: Backend, biogo: Export, tmp_path: Path) -> Path:
    """A run of one question: its first program fails, two more are refused."""
    config = maker(biogo, kind, tmp_path / "run")(TURNS, 1, mode=load_mode("one-program"))
    outcome, _ = run(config)
    assert outcome.scored == 1
    return config.out


def events(out: Path, wanted: str) -> list[dict[str, Any]]:
    (path,) = out.glob("trajectories/*/*.jsonl")
    return [event for event in read_events(path) if event["type"] == wanted]


def test_one_program_is_run_and_everything_tells_of_it(done: Path, kind: Backend) -> None:
    refused = "python3: one Python program can be run here per question, and it has been run"
    first, second, third = (event["text"] for event in events(done, "result"))
    assert "python3 is /sandbox/bin/python3\n" in first and "perl: not found" in first
    assert second == f"[exit code 1]\n{refused}"
    assert third == f"[exit code 0]\n{refused}"

    ran, *others = events(done, "program_run")
    code = b"raise SystemExit(4)"
    assert (ran["turn"], ran["arguments"], ran["cwd"]) == (2, ["-c", code.decode()], "/scratch")
    assert (ran["refused"], ran["exit_code"], ran["termination"]) == (False, 4, "exit")
    assert ran["blob"] == hashlib.sha256(code).hexdigest()
    assert (done / "blobs" / ran["blob"]).read_bytes() == code
    assert ran["wall"] > 0 and ran["memory"] > 0
    assert [(event["arguments"], event["refused"], event["blob"]) for event in others] == [
        (["--version"], True, None),
        (["find.py"], True, None),
    ]
    (record,) = read_ledger(done)
    assert (record.counts["programs"], record.counts["refused_programs"]) == (1, 2)
    assert list(check_run(done)) == []
    probed = {result["name"]: result for result in read_manifest(done)["probe"]}
    assert probed["programs"]["passed"]

    shown = run_cli("show", str(done), record.query_id).stdout
    assert "python3 -c 'raise SystemExit(4)' in /scratch: exit, exit code 4, " in shown
    assert "python3 find.py in /scratch: refused, one had been run" in shown

    (path,) = done.glob("trajectories/*/*.jsonl")
    index = read_index(path)
    items = [Items(index, 2522, 2000).item(number) for number in range(len(index.lines))]
    runs = [item for item in items if item["type"] == "program_run"]
    assert [(item["arguments"], item["refused"], item["turn"]) for item in runs] == [
        ("-c 'raise SystemExit(4)'", False, 2),
        ("--version", True, 2),
        ("find.py", True, 3),
    ]

    audit = audit_run(done)
    (asked,) = audit.rows("refused_programs").values()
    assert (asked.count, asked.of) == (2, 3)
    assert [line.programs for line in audit.part.attempts] == [1], "what was refused is no program"

    replayed = replay_run(plan_replay(done, kind.kind), kind)
    assert (replayed.commands, replayed.matched) == (3, 3), replayed.differences


def test_every_attempt_has_a_program_of_its_own(make: Any) -> None:
    config = make([calls(bash(PROGRAM)), says("ANSWER: [851]")], 2, mode=load_mode("one-program"))
    run(config)
    texts = [
        event["text"]
        for path in config.out.glob("trajectories/*/*.jsonl")
        for event in read_events(path)
        if event["type"] == "result"
    ]
    assert len(texts) == 2
    assert all("851 mismatch repair" in text for text in texts)


def test_a_loop_that_asks_for_python_fills_no_disk(make: Any) -> None:
    loop = 'for i in {1..120}; do python3 x $(printf %5000s | tr " " x) 2>/dev/null; done; echo done'
    config = make([calls(bash(loop)), says("ANSWER: [851]")], 1, mode=load_mode("one-program"))
    run(config)
    (record,) = read_ledger(config.out)
    assert record.counts["refused_programs"] == 119
    asked = events(config.out, "program_run")
    assert len(asked) == 101
    assert max(len("".join(event["arguments"])) for event in asked) < 2100


def test_it_needs_a_shell_without_interpreters() -> None:
    with pytest.raises(UserError, match=r"view\.one_program"):
        load_mode("files", parse_assignments(["view.one_program=true"]))
