"""SIGKILL at many points of a run: the folder stays readable, and resuming asks nothing finished again.

The harness runs as a process of its own against a real HTTP endpoint; the test kills it when a given request arrives,
so the kill hits it somewhere around the writing of that turn.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from exporter import Export
from harness.events import read_events
from harness.ledger import fold, read_ledger
from harness.questions import load_questions
from harness.schemas import check_run
from sandbox import Backend
from tests.support.cli import SMALL
from tests.support.server import Received, ScriptedServer, bash, by_turn, say

QUESTIONS, TURNS = 6, 3
ROOT = Path(__file__).parents[2]


def start(export: Export, out: Path, url: str, *more: str) -> subprocess.Popen[bytes]:
    """The run as a user starts it."""
    command = ["env", "--default-signal=INT,TERM,HUP"]  # whoever started the tests may have had them ignored
    command += [sys.executable, "-m", "harness", "run", "--graph", str(export.path), "--mode", "files"]
    command += ["--model", "scripted-model", "--base-url", url, "--sandbox", "bwrap", "--workers", "2"]
    command += ["--limit", str(QUESTIONS), "--out", str(out), *SMALL, *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize("kills", [(1,), (2, 5), (4, 9, 11), (7,), (3, 8, 13, 16), (17,)])
def test_killed_runs_are_finished_by_resuming(
    biogo: Export, bwrap: Backend, tmp_path: Path, kills: tuple[int, ...]
) -> None:
    out = tmp_path / "run"
    script = by_turn([bash("echo $RANDOM > note; cat note"), bash("cat note"), say("ANSWER: [1]")])
    asked: Counter[str] = Counter()
    with ScriptedServer(script) as server:
        for kill_at in kills:
            process = start(biogo, out, server.url, *(["--resume"] if (out / "manifest.json").exists() else []))
            try:
                assert server.wait_for(kill_at, timeout=60), process.poll()
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
            finished = {record.query_id for record in read_ledger(out) if record.stop_reason == "answered"}
            asked = count(server.requests, biogo)
            for path in (out / "trajectories").glob("*/*.jsonl"):
                events = list(read_events(path))
                assert [event["seq"] for event in events] == list(range(len(events))), "readable up to the kill"
        before = {query: asked[query] for query in finished}
        process = start(biogo, out, server.url, "--resume")
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr.decode()
        after = count(server.requests, biogo)
    assert {query: after[query] for query in before} == before, "no finished question is asked again"
    states = fold(read_ledger(out))
    assert len(states) == QUESTIONS
    for state in states.values():
        assert state.last is not None
        assert state.last.stop_reason == "answered"
        assert [record.stop_reason for record in state.records[:-1]] == ["interrupted"] * (len(state.records) - 1)
        assert [record.attempt for record in state.records] == list(range(len(state.records)))
    told = sum(record.turns for state in states.values() for record in state.records)
    in_flight = sum(record.stop_reason == "interrupted" for state in states.values() for record in state.records)
    assert sum(after.values()) - in_flight <= told <= sum(after.values()), (
        "a request unanswered at a kill is all that's lost"
    )
    assert list(check_run(out)) == []


def count(requests: list[Received], export: Export) -> Counter[str]:
    """Requests per question id."""
    texts = {question.text: question.id for question in load_questions(export, splits=["all"]).questions}
    return Counter(texts[request.query.rsplit("Question: ", 1)[1].strip()] for request in requests)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_stop_cleanly_and_name_the_command_that_resumes(
    biogo: Export, bwrap: Backend, tmp_path: Path, end: signal.Signals
) -> None:
    out = tmp_path / "run"
    with ScriptedServer(by_turn([bash("sleep 30"), say("ANSWER: [1]")])) as server:
        process = start(biogo, out, server.url)
        assert server.wait_for(2, timeout=60)
        process.send_signal(end)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert b"error:" not in stderr
    last = stderr.decode().splitlines()[-1]
    assert last.startswith("stopped; to go on: harness run ")
    assert last.endswith(f"--out {out} {' '.join(SMALL)} --resume")
    assert {record.stop_reason for record in read_ledger(out)} == {"interrupted"}
    assert list(check_run(out)) == []
