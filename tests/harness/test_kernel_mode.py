"""The mode with a Python that stays: a run from end to end, and all that reads what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from exporter import Export
from harness.audit.run import audit_run, context_of
from harness.audit.walk import Job, walk
from harness.errors import UserError
from harness.events import read_events
from harness.ledger import read_ledger
from harness.messages import ToolCall
from harness.modes import load_mode
from harness.replay_run import plan_replay, replay_run
from harness.runfiles import read_manifest
from harness.schemas import check_run
from harness.settings import parse_assignments
from harness.view.trajectory import Items, read_index
from sandbox import Backend
from tests.support.cli import run_cli
from tests.support.running import maker, run
from tests.support.words import bash, call, calls, says

LOAD = """import json
nodes = [json.loads(line) for line in open("/graph/nodes/0000.jsonl")]
names = {node["node_id"]: node["name"] for node in nodes}
len(names)"""
SEARCH = """def named(words):
    return sorted(node for node, name in names.items() if words in name)
named("mismatch repair")"""


def python(code: str, **more: Any) -> ToolCall:
    return call("python", orjson.dumps({"code": code, **more}).decode())


TURNS = [
    calls(python(LOAD)),
    calls(python(SEARCH)),
    calls(python("print(names[851]); open('found.txt', 'w').write(names[851])"), bash("cat found.txt")),
    calls(python("for node in nodes: print(node)")),
    calls(bash("wc -l outputs/001.txt; cut -c1-20 outputs/001.txt | head -n 1")),
    calls(python("print('slow'); import time; time.sleep(1000)", timeout=0.5), python("len(names)")),
    calls(python("import os; os._exit(7)"), python("names")),
    calls(python("1 / 0"), python("x = 1", timeot=3), python("x = 1")),
    says("ANSWER: [851]"),
]
RESULTS = [
    "[exit code 0]\n2522",
    "[exit code 0]\n[851",
    "[exit code 0]\nmismatch repair\n15",
    "[exit code 0]\nmismatch repair",
    "[exit code 0]\n{'node_id': 0, ",
    "[exit code 0]\n2522 outputs/001.txt\n{'node_id': 0, ",
    "[ended by the time limit of 0.5 s; it was interrupted, and what is defined stays]\nslow\nTraceback",
    "[exit code 0]\n2522",
    "[exit code 7] [Python has ended: the next call starts it anew, without what was defined so far.] no output",
    "[exit code 1] [Python was started anew for this call: what earlier calls had defined was gone.]\nTraceback",
    '[exit code 1]\nTraceback (most recent call last):\n  File "<call 2>", line 1, in <module>',
    "[error: the arguments of 'python' do not fit: Additional properties are not allowed ('timeot' was unexpected)]",
    "[exit code 0] no output",
]


@pytest.fixture(params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def done(kind: Backend, biogo: Export, tmp_path: Path) -> Path:
    """A run of one question."""
    config = maker(biogo, kind, tmp_path / "run")(TURNS, 1, mode=load_mode("files-kernel"))
    outcome, notes = run(config)
    assert outcome.scored == 1, notes.records
    assert [spec.name for spec in config.backbone.requests[0].tools] == ["bash", "read", "python"]  # type: ignore[attr-defined]
    return config.out


def test_what_python_defines_stays_and_everything_tells_of_it(done: Path, kind: Backend) -> None:
    (path,) = done.glob("trajectories/*/*.jsonl")
    results = [event for event in read_events(path) if event["type"] == "result"]
    starts = [event["text"][: len(start)] for event, start in zip(results, RESULTS, strict=True)]
    assert starts == RESULTS
    long = results[4]
    assert long["cut"]["spill"] == long["spill"] == "outputs/001.txt"
    assert (done / "blobs" / long["blob"]).read_bytes().count(b"\n") == 2522
    assert long["text"].endswith("the whole output is in outputs/001.txt]")
    assert results[6]["exec"]["termination"] == "timeout"
    assert list(check_run(done)) == []

    (record,) = read_ledger(done)
    shown = run_cli("show", str(done), record.query_id).stdout
    assert f"{LOAD}\n" in shown
    assert "Python has ended: the next call starts it anew" in shown
    index = read_index(path)
    items = [Items(index, 2522, 2000).item(number) for number in range(len(index.lines))]
    code = next(item for item in items if item["type"] == "result")["arguments"][0]
    assert code[0] == "code" and "code" in code[2]

    (line,) = audit_run(done).part.attempts
    assert line.programs == 10, "each call's code is a program, but those that could not be run and reruns"
    facts = walk(Job(record.trajectory, record, True, (851,)), context_of(done, read_manifest(done), None))
    assert {call.kind for call in facts.calls if call.tool == "python"} == {"python"}
    assert "node_scan" in facts.calls[0].programs[0].classes
    assert facts.hit

    replayed = replay_run(plan_replay(done, kind.kind), kind)
    assert (replayed.commands, replayed.matched) == (len(RESULTS) - 1, len(RESULTS) - 1), replayed.differences


def test_every_attempt_has_an_interpreter_of_its_own(make: Any) -> None:
    config = make([calls(python("'kept' in globals()"), python("kept = 1")), says("ANSWER: [851]")], 3,
                  mode=load_mode("files-kernel"), workers=2)  # fmt: skip
    run(config)
    texts = [
        event["text"]
        for path in config.out.glob("trajectories/*/*.jsonl")
        for event in read_events(path)
        if event["type"] == "result"
    ]
    assert sorted(texts) == ["[exit code 0]\nFalse"] * 3 + ["[exit code 0] no output"] * 3


def test_it_needs_python_in_the_sandbox() -> None:
    with pytest.raises(UserError, match="the tool python needs"):
        load_mode("files-kernel", parse_assignments(["view.programs=shell"]))
