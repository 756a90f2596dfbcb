"""Runs over many questions: retries by policy, stops with the state saved, resumes without asking twice."""

from __future__ import annotations

import _thread
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from exporter import Export
from harness.backbones.http import HttpBackbone
from harness.budget import Budget
from harness.errors import BackboneError, ProbeFailed, QuotaExhausted, UserError
from harness.ledger import read_ledger
from harness.messages import Reply, Request, Usage
from harness.modes import load_mode
from harness.runfiles import read_manifest
from harness.runner import execute
from harness.schemas import check_run
from harness.settings import parse_assignments
from sandbox import Backend, Sandbox, ShellEnd, Spec
from tests.support.running import Make, Notes, run, stops
from tests.support.server import ScriptedServer, rate_limited
from tests.support.talk import profile
from tests.support.words import Words, bash, calls, says


def test_every_question_is_asked_and_the_folder_keeps_its_contract(make: Make) -> None:
    config = make([calls(bash("echo $RANDOM > mine; ls")), says("ANSWER: [1]")], count=8, workers=4)
    outcome, notes = run(config)
    assert (outcome.scored, outcome.failed, outcome.open, outcome.interrupted) == (8, 0, 0, False)
    assert (notes.total, notes.done, len(notes.records)) == (8, 0, 8)
    assert list(check_run(config.out)) == []
    for record in read_ledger(config.out):
        assert record.stop_reason == "answered"
        assert record.turns == 2
        parts = record.times
        total = parts.model + parts.waiting + parts.sandbox + parts.queue + parts.harness
        assert total == pytest.approx(parts.wall, abs=1e-6)


def test_gold_and_labels_never_enter_the_run_folder_or_the_sandbox(make: Make, biogo: Export) -> None:
    canary = biogo.manifest["canary"]
    look = f"""for folder in /*; do
        case $folder in /proc|/dev|/sys|/usr|/lib*|/bin|/sbin) ;; *) rg -uuu --no-messages {canary} $folder ;; esac
    done; ls -R /graph; ls /graph/.. /graph/../queries; env"""
    config = make([calls(bash(look)), says("ANSWER: [1]")], count=1)
    run(config)
    files = [path for path in config.out.rglob("*") if path.is_file() and "trajectories" in path.parts]
    assert files
    shown = b"".join(path.read_bytes() for path in files)
    assert shown.count(canary.encode()) == 2, "in the command as asked and as parsed, nowhere else"
    assert b"queries.jsonl" not in shown


def test_infrastructure_failures_are_retried_twice_and_all_attempts_kept(make: Make) -> None:
    failures = Counter[str]()

    def moody(request: Request) -> Reply:
        failures[request.query] += 1
        if failures[request.query] <= 2:
            raise BackboneError("500 again and again")
        return says("ANSWER: [1]")

    config = make(Words([moody]), count=2, workers=2)
    outcome, _ = run(config)
    assert (outcome.scored, outcome.failed) == (2, 0)
    first = config.questions.questions[0].id
    assert [stop for stop in stops(config.out) if stop[0] == first] == [
        (first, 0, "backbone_error"),
        (first, 1, "backbone_error"),
        (first, 2, "answered"),
    ]


def test_what_keeps_failing_is_reported_not_scored(make: Make) -> None:
    outcome, notes = run(make([BackboneError("down")], count=1))
    assert (outcome.scored, outcome.failed, outcome.open) == (0, 1, 0)
    assert [record.attempt for record in notes.records] == [0, 1, 2]
    assert all(record.error == "down" for record in notes.records)


@pytest.mark.parametrize(("policy", "attempts"), [("none", 1), ("infra", 1), ("timeout", 3)])
def test_time_limits_are_retried_by_their_own_policy(make: Make, policy: str, attempts: int) -> None:
    config = make(
        [calls(bash("sleep 9")), says("?")], 1, ("limits.seconds=0.3", "limits.last_turn=false"), retry=policy
    )
    _, notes = run(config)
    assert [record.stop_reason for record in notes.records] == ["time_limit"] * attempts


class Counted:
    """A sandbox that leaves a set when it's closed."""

    def __init__(self, sandbox: Sandbox, now_open: set[Any]) -> None:
        self._sandbox, self._now_open = sandbox, now_open

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def close(self) -> None:
        self._sandbox.close()
        self._now_open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Fragile:
    """A real backend whose sandboxes a test can kill from outside."""

    def __init__(self, backend: Backend) -> None:
        self.kind = backend.kind
        self.opened: list[Any] = []
        self.now_open: set[Any] = set()
        self.most_open = 0
        self._backend = backend

    def open(self, spec: Spec) -> Any:
        sandbox = Counted(self._backend.open(spec), self.now_open)
        self.opened.append(sandbox)
        self.now_open.add(sandbox)
        self.most_open = max(self.most_open, len(self.now_open))
        return sandbox

    def describe(self) -> dict[str, object]:
        return self._backend.describe()

    def shell(self, spec: Spec) -> ShellEnd:
        return self._backend.shell(spec)


def test_a_lost_sandbox_is_no_observation_and_is_retried_once(make: Make, bwrap: Backend) -> None:
    fragile = Fragile(bwrap)

    def kill(_: Request) -> Reply:
        fragile.opened[-1].close()
        return calls(bash("echo never seen"))

    config = make(Words([calls(bash("true")), kill]), count=1, sandboxes=fragile)
    outcome, notes = run(config)
    assert outcome.failed == 1
    assert [record.stop_reason for record in notes.records] == ["sandbox_lost"] * 2
    assert all(record.counts["lost_in_call"] == 1 for record in notes.records)
    text = b"".join(path.read_bytes() for path in config.out.rglob("*.jsonl"))
    assert b"never seen" in text
    assert text.count(b'"type":"result"') == 2, "one result for the command before, none for the lost call"


def test_an_exhausted_quota_stops_the_run_at_once_and_resume_goes_on(make: Make) -> None:
    asked: list[str] = []

    def poor(request: Request) -> Reply:
        asked.append(request.query)
        if len(asked) == 2:
            raise QuotaExhausted("insufficient_quota")
        return says("ANSWER: [1]")

    config = make(Words([poor]), count=5)
    notes = Notes()
    with pytest.raises(QuotaExhausted):
        execute(config, notes)
    assert [record.stop_reason for record in notes.records] == ["answered", "backbone_error"]
    outcome, again = run(replace(config, resume=True, backbone=Words([says("ANSWER: [1]")])))
    assert outcome.scored == 5
    assert (again.total, again.done) == (5, 1)
    assert config.questions.questions[0].id not in {record.query_id for record in again.records}


def test_a_bug_is_not_swallowed_and_leaves_a_readable_run(make: Make) -> None:
    config = make([ZeroDivisionError("a bug")], count=3)
    with pytest.raises(ZeroDivisionError):
        execute(config, Notes())
    assert {stop for _, _, stop in stops(config.out)} == {"interrupted"}
    outcome, _ = run(replace(config, resume=True, backbone=Words([says("ANSWER: [1]")])))
    assert outcome.scored == 3


def test_ctrl_c_records_what_was_in_flight_and_resume_finishes(make: Make) -> None:
    gate = threading.Event()

    def hang(request: Request) -> Reply:
        if request.query == last.text:
            _thread.interrupt_main()
            gate.wait(60)
        return says("ANSWER: [1]")

    config = make(Words([hang]), count=3)
    last = config.questions.questions[1]
    outcome, _ = run(config)
    gate.set()
    assert outcome.interrupted
    assert (outcome.scored, outcome.open) == (1, 2)
    assert [stop for stop in stops(config.out) if stop[0] == last.id] == [(last.id, 0, "interrupted")]
    backbone = Words([says("ANSWER: [1]")])
    outcome, _ = run(replace(config, resume=True, backbone=backbone))
    assert (outcome.scored, outcome.open) == (3, 0)
    assert len(backbone.requests) == 2
    assert list(check_run(config.out)) == []


def test_ctrl_c_ends_a_wait_for_a_rate_limit(make: Make) -> None:
    def stop_once_told(text: str) -> None:
        if "all requests wait" in text:
            _thread.interrupt_main()

    with ScriptedServer(lambda _: rate_limited("3600")) as server:
        model = HttpBackbone(profile(server.url, max_wait=7200.0), stop_once_told)
        outcome, _ = run(config := make([], count=2, workers=2, backbone=model))
    assert (outcome.interrupted, outcome.open) == (True, 2)
    ended = {(record.stop_reason, record.error) for record in read_ledger(config.out)}
    assert ended == {("interrupted", "stopped while waiting for the model's endpoint")}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(tokens=300), "run.tokens is reached, 330 of 300"),
        (Budget(cost=0.25), "run.cost is reached, $0.3000 of $0.2500"),
    ],
)
def test_at_a_limit_of_the_run_no_attempt_starts_and_a_resume_with_a_higher_one_goes_on(
    make: Make, budget: Budget, said: str
) -> None:
    config = make([says("ANSWER: [1]")], count=5, budget=budget, cost_of=lambda _: 0.1)  # 110 tokens each
    outcome, notes = run(config)
    assert (outcome.scored, outcome.open, outcome.failed, outcome.interrupted) == (3, 2, 0, False)
    assert outcome.limit is not None and outcome.limit.startswith(said)
    assert [text for text in notes.texts if "reached" in text] == [
        f"{outcome.limit}: no attempt starts any more, those in flight finish"
    ]
    again, notes = run(replace(config, resume=True))
    assert (again.scored, again.open, len(notes.records)) == (3, 2, 0), "what earlier sessions took counts"
    higher = Budget(tokens=10_000, cost=10.0, seconds=3600.0)
    last, notes = run(replace(config, resume=True, budget=higher))
    assert (last.scored, last.open, last.limit, len(notes.records)) == (5, 0, None, 2)
    assert list(check_run(config.out)) == []
    assert read_manifest(config.out)["budget"] == vars(higher)


def test_attempts_in_flight_count_and_finish_when_the_run_reaches_its_limit(make: Make) -> None:
    """The second worker looks for work while the first is in its second turn, over the limit by then."""
    other_asked, over, looked = threading.Event(), threading.Event(), threading.Event()

    def turns(request: Request) -> Reply:
        if request.query == first.text:
            if request.turn == 1:
                other_asked.wait(60)
                return calls(bash("true"), usage=Usage(1_000, 0, 10, 0))
            over.set()
            looked.wait(60)
        else:
            other_asked.set()
            over.wait(60)
        return says("ANSWER: [1]")

    class Watch(Notes):
        def notice(self, text: str) -> None:
            super().notice(text)
            if "run.tokens is reached" in text:
                looked.set()

    config = make(Words([turns, turns]), count=3, workers=2, budget=Budget(tokens=1_000))
    first = config.questions.questions[0]
    notes = Watch()
    outcome = execute(config, notes)
    assert looked.is_set()
    assert (outcome.scored, outcome.open) == (2, 1)
    assert {record.stop_reason for record in notes.records} == {"answered"}


def test_resuming_a_finished_run_asks_nothing(make: Make) -> None:
    config = make([says("ANSWER: [1]")])
    run(config)
    silent = Words([])
    outcome, notes = run(replace(config, resume=True, backbone=silent))
    assert outcome.scored == 3
    assert (silent.requests, notes.records) == ([], [])
    with pytest.raises(UserError, match=r"mode\.limits\.turns"):
        run(replace(config, resume=True, mode=load_mode("files", parse_assignments(["limits.turns=9"]))))


def test_a_failed_probe_stops_the_run_before_the_first_question(make: Make, biogo: Export, tmp_path: Path) -> None:
    """An export whose agent-visible files hold the labels' canary: the hole that the probe is there to find."""
    from exporter import biogo_sources, export_tables

    sources = biogo_sources()
    leaky = export_tables(sources.nodes, sources.edges, tmp_path / "leaky", queries=sources.queries, name="leaky")
    leaky.files.chmod(0o755)
    (leaky.files / "notes.txt").write_text(f"gold: {leaky.manifest['canary']}")
    words = Words([says("ANSWER: [1]")])
    config = make(words, export=leaky)
    with pytest.raises(ProbeFailed, match="canar"):
        execute(config, Notes())
    assert words.requests == []


def test_several_agents_are_several_attempts_at_each_question(make: Make) -> None:
    config = make([says("ANSWER: [1]")], 2, ("agents.count=3",), workers=3)
    outcome, _ = run(config)
    assert outcome.scored == 6
    assert Counter(record.query_id for record in read_ledger(config.out)) == {
        question.id: 3 for question in config.questions.questions
    }
    assert list(check_run(config.out)) == []


def test_memory_in_use_bounds_how_many_sandboxes_are_open(make: Make, bwrap: Backend) -> None:
    """With a cap that one sandbox fills, attempts wait for each other, and the wait is not their working time."""
    fragile = Fragile(bwrap)
    turns = [calls(bash("head -c 40000000 /dev/zero > big; sleep 0.2")), says("ANSWER: [1]")]
    config = make(turns, count=4, workers=4, sandboxes=fragile, memory_cap=1_000_000)
    outcome, notes = run(config)
    assert outcome.scored == 4
    assert fragile.most_open == 1
    waits = sorted(record.times.queue for record in notes.records)
    assert waits[0] < 0.2 < waits[-1]
    assert all(record.times.working < record.times.wall for record in notes.records if record.times.queue > 0.2)
