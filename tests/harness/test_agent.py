"""The loop, in a real sandbox over the sample graph; only the model's words are scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from exporter import Export
from harness.accounting import Account
from harness.agent import run_attempt
from harness.attempt import Outcome, Task
from harness.errors import BackboneError, ContextOverflow
from harness.events import read_events
from harness.messages import AttemptKey, Reply, Request, Usage
from harness.modes import load_mode
from harness.schemas import validator
from harness.settings import parse_assignments
from harness.slot import SandboxPool
from harness.tools.kit import make_toolbox
from harness.trajectory import TrajectoryWriter
from sandbox import Backend, SandboxLost, Spec
from tests.support.words import Turn, Words, bash, call, calls, says

Events = list[dict[str, Any]]
Run = Callable[..., tuple[Outcome, Events, Words]]


@pytest.fixture
def run(biogo: Export, bwrap: Backend, tmp_path: Path) -> Iterator[Run]:
    """Runs one attempt with these turns; returns its outcome, its events and the model that was asked."""
    pool = SandboxPool()
    numbers = iter(range(1000))

    def attempt(turns: Sequence[Turn], *settings: str, window: int | None = None) -> tuple[Outcome, Events, Words]:
        mode = load_mode("files", parse_assignments(settings))
        words = Words(turns)
        account = Account(threading.Event(), lambda _: 0.01)
        slot = pool.slot(bwrap, Spec(biogo.files, mode.sandbox.limits()), account.queued)
        path = tmp_path / f"{next(numbers)}.jsonl"
        with TrajectoryWriter(path, tmp_path / "blobs") as log:
            key = AttemptKey("q", 0, 0)
            task = Task(key, "which?", mode, biogo, make_toolbox(mode.tools), words, window, slot)
            outcome = run_attempt(task, log, account)
        pool.give_back(slot)
        events = list(read_events(path))
        for event in events:
            validator("event").validate(event)
        return outcome, events, words

    yield attempt
    pool.close()


def results(events: Events) -> Events:
    return [event for event in events if event["type"] == "result"]


def test_from_question_to_answer(run: Run, biogo: Export) -> None:
    find = "rg -o -N '\"node_id\":[0-9]+' /graph/nodes | sort | head -3; test ! -w /graph && echo read-only"
    outcome, events, words = run([calls(bash(find)), says("Found it.\nANSWER: [3, 5, 3]")])
    assert outcome.stop_reason == "answered"
    assert outcome.answer is not None
    assert outcome.answer.ids == (3, 5)
    assert outcome.answer.rejected == ({"value": 3, "why": "duplicate"},)
    assert [event["type"] for event in events] == ["start", "request", "reply", "result", "request", "reply"]
    (result,) = results(events)
    assert result["text"].startswith('[exit code 0]\n/graph/nodes/0000.jsonl:"node_id":')
    assert result["text"].endswith("read-only")
    prompt = words.requests[0].entries[0].text
    assert "Question: which?" in prompt
    assert "/graph/DATA_FORMAT.txt" in prompt
    assert [entry.role for entry in words.requests[1].entries] == ["user", "assistant", "tool"]


def test_parallel_calls_run_in_order_and_each_gets_its_result(run: Run) -> None:
    wanted = (
        bash("echo one > f; echo first"),
        call("search", "{}"),
        call("bash", '{"command": '),
        call("bash", '{"comand": "ls"}'),
        call("bash", '["ls"]'),
        call("read", '{"path": "nowhere"}'),
        bash("cat f; exit 3"),
    )
    outcome, events, words = run([calls(*wanted), says("ANSWER: [1]")])
    shown = results(events)
    assert [event["call_id"] for event in shown] == [one.id for one in wanted]
    assert [event["error"] for event in shown] == [
        None, "unknown_tool", "malformed_arguments", "invalid_arguments", "malformed_arguments", "file_error", None,
    ]  # fmt: skip
    assert shown[0]["text"] == "[exit code 0]\nfirst"
    assert "tools: bash, read" in shown[1]["text"]
    assert "comand" in shown[3]["text"]
    assert shown[6]["text"] == "[exit code 3]\none"
    assert [entry.call_id for entry in words.requests[1].entries if entry.role == "tool"] == [one.id for one in wanted]
    assert outcome.counts["calls"] == 7
    assert outcome.stop_reason == "answered"


def test_a_command_that_fails_is_data(run: Run) -> None:
    outcome, events, _ = run([calls(bash("cat /none; kill -9 $$")), says("ANSWER: [1]")])
    (result,) = results(events)
    assert result["exec"]["termination"] == "killed"
    assert result["error"] is None
    assert outcome.stop_reason == "answered"


@pytest.mark.parametrize(
    ("turns", "stop"),
    [
        ([says("I give up")] * 5, "no_answer"),
        ([says("")] * 5, "no_answer"),
        ([says("ANSWER: [1", "length")] * 5, "no_answer"),
        ([calls(call("nope", "{}"))] * 5, "format_errors"),
        ([calls(call("bash", "{"))] * 5, "format_errors"),
        ([says("I can't. ANSWER: [1]", "refusal")], "refused"),
        ([says("ANSWER: [1]", "content_filter")], "refused"),
        ([BackboneError("500 for good")], "backbone_error"),
        ([ContextOverflow("too long")], "context_overflow"),
    ],
)
def test_what_is_not_an_answer_is_never_taken_for_one(run: Run, turns: list[Turn], stop: str) -> None:
    outcome, _, _ = run(turns)
    assert outcome.stop_reason == stop
    assert outcome.answer is None


def test_a_model_that_forgets_its_answer_line_is_reminded(run: Run) -> None:
    outcome, _, words = run([says("It is node 5, I think"), says("ANSWER: [5]")])
    assert outcome.stop_reason == "answered"
    assert "ANSWER: [id" in words.requests[1].entries[-1].text


def test_mistakes_in_between_do_not_add_up(run: Run) -> None:
    turns: list[Turn] = []
    for _ in range(4):
        turns += [calls(call("nope", "{}"))] * 4 + [calls(bash("true"))]
    outcome, _, _ = run([*turns, says("ANSWER: [1]")])
    assert outcome.stop_reason == "answered"


def test_near_the_limit_the_agent_is_told_once_and_gets_a_last_turn(run: Run) -> None:
    turns = [calls(bash("true"))] * 3 + [says("ANSWER: [7]")]
    outcome, events, words = run(turns, "limits.turns=3", "limits.warn_turns=2")
    notices = [event["text"] for event in events if event["type"] == "notice"]
    assert len(notices) == 2
    assert "2 turns" in notices[0]
    assert "turn limit is reached" in notices[1]
    assert [request.tool_choice for request in words.requests] == ["auto", "auto", "auto", "none"]
    assert (outcome.stop_reason, outcome.limit) == ("answered", "turn_limit")


def test_a_call_in_the_last_turn_is_refused_and_the_limit_stands(run: Run) -> None:
    outcome, events, _ = run([calls(bash("true")), calls(bash("echo late"))], "limits.turns=1")
    assert outcome.stop_reason == "turn_limit"
    assert results(events)[-1]["error"] == "not_executed"


def test_without_a_last_turn_the_limit_ends_it(run: Run) -> None:
    outcome, _, words = run([calls(bash("true"))] * 2, "limits.turns=2", "limits.last_turn=false", "limits.warn=false")
    assert outcome.stop_reason == "turn_limit"
    assert len(words.requests) == 2
    assert all(entry.role != "user" for entry in words.requests[1].entries[1:])


@pytest.mark.parametrize("limit", ["limits.seconds", "limits.wall_seconds"])
def test_the_time_limit_cuts_a_command_short(run: Run, limit: str) -> None:
    outcome, events, _ = run([calls(bash("sleep 60")), says("ANSWER: [1]")], f"{limit}=1")
    assert results(events)[0]["exec"]["termination"] == "timeout"
    assert (outcome.stop_reason, outcome.limit) == ("answered", "time_limit")


def test_waits_count_as_wall_time_alone(run: Run) -> None:
    def after_a_wait(request: Request) -> Reply:
        return replace(calls(bash("sleep 1.2")), waited=1_000.0)

    turns = [after_a_wait, says("ANSWER: [1]")]
    outcome, _, words = run(turns, "limits.seconds=1.0")
    assert (outcome.limit, len(words.requests)) == (None, 2)
    outcome, _, words = run(turns, "limits.wall_seconds=1.0")
    assert (outcome.limit, len(words.requests)) == ("time_limit", 2)


@pytest.mark.parametrize(
    ("setting", "stop"), [("limits.tokens=300", "token_limit"), ("limits.cost=0.025", "cost_limit")]
)
def test_tokens_and_cost_are_limits_too(run: Run, setting: str, stop: str) -> None:
    outcome, _, words = run([calls(bash("true"))] * 3 + [says("ANSWER: [1]")], setting)
    assert (outcome.stop_reason, outcome.limit) == ("answered", stop)
    assert len(words.requests) == 4


def test_the_turn_granted_at_the_time_limit_has_time_to_answer(run: Run) -> None:
    _, _, words = run([calls(bash("sleep 9")), says("ANSWER: [1]")], "limits.seconds=0.5")
    assert words.requests[0].time_left is not None
    assert words.requests[0].time_left <= 0.5
    assert words.requests[1].time_left == 120.0


def test_a_request_that_time_runs_out_on_is_followed_by_the_last_turn(run: Run) -> None:
    def cut_short(request: Request) -> Reply:
        assert request.time_left is not None
        threading.Event().wait(request.time_left + 0.01)
        raise BackboneError("no reply in the time that was left")

    outcome, events, words = run([calls(bash("true")), cut_short, says("ANSWER: [1]")], "limits.seconds=2")
    assert (outcome.stop_reason, outcome.limit, outcome.error) == ("answered", "time_limit", None)
    assert outcome.answer is not None and outcome.answer.ids == (1,)
    assert words.requests[2].tool_choice == "none"
    assert [event["turn"] for event in events if event["type"] == "request"] == [1, 2, 2], "no turn lost, none twice"
    outcome, _, words = run([cut_short], "limits.seconds=0.05", "limits.last_turn=false")
    assert (outcome.stop_reason, len(words.requests)) == ("time_limit", 1)
    outcome, _, words = run([cut_short, BackboneError("gone")], "limits.seconds=0.05")
    assert (outcome.stop_reason, outcome.error, len(words.requests)) == ("time_limit", "gone", 2)


def test_what_a_record_waits_for_is_no_time_of_the_attempt() -> None:
    account = Account(threading.Event(), lambda _: None)
    before = account.times().wall
    assert account.times().wall > before
    account.stop()
    assert account.times() == account.times()
    assert account.finished is not None and account.finished >= account.started


def test_waits_before_a_failure_are_not_working_time(biogo: Export, bwrap: Backend, tmp_path: Path) -> None:
    account = Account(threading.Event(), lambda _: None)
    error = BackboneError("gave up")
    error.waited = 100.0
    mode, pool = load_mode("files"), SandboxPool()
    slot = pool.slot(bwrap, Spec(biogo.files, mode.sandbox.limits()), account.queued)
    with TrajectoryWriter(tmp_path / "t.jsonl", tmp_path) as log:
        task = Task(AttemptKey("q", 0, 0), "?", mode, biogo, make_toolbox(mode.tools), Words([error]), None, slot)
        run_attempt(task, log, account)
    pool.close()
    assert account.times().waiting == 100.0
    assert account.times().working <= account.times().wall - 99.9


def test_a_cut_output_lies_whole_in_the_file_the_notice_names(run: Run) -> None:
    wanted = [
        calls(bash("seq 1 100000")),
        calls(bash("wc -c outputs/001.txt; sed -n 50000p outputs/001.txt")),
        calls(bash("python3 -c 'print(\"é\" * 5000)'")),
        calls(bash("wc -c outputs/002.txt")),
        says("ANSWER: [1]"),
    ]
    _, events, _ = run(wanted)
    seq, found, line, size = results(events)
    assert seq["cut"]["spill"] == "outputs/001.txt"
    assert "588,895 bytes, 100,000 lines in all; the whole output is in outputs/001.txt]" in seq["text"]
    assert len(seq["text"]) < 20_300
    assert found["text"] == "[exit code 0]\n588895 outputs/001.txt\n50000"
    assert line["cut"]["lines"] == 1
    assert "outputs/002.txt" in line["text"]
    assert size["text"].endswith("10001 outputs/002.txt")


def test_what_is_shown_in_part_is_kept_whole_in_the_run_folder(run: Run, tmp_path: Path) -> None:
    _, events, _ = run([calls(bash("seq 1 20000")), says("ANSWER: [1]")])
    blob = tmp_path / "blobs" / results(events)[0]["blob"]
    assert blob.read_text() == "".join(f"{n}\n" for n in range(1, 20001))


def test_read_pages_through_a_long_line(run: Run) -> None:
    make = bash("python3 -c 'print(\"abcé\" * 20000)' > long")
    pages = [call("read", f'{{"path": "long", "offset": {offset}}}') for offset in (0, 19_999, 99_990)]
    _, events, _ = run([calls(make, *pages), says("ANSWER: [1]")])
    first, second, last = results(events)[1:]
    assert first["text"].startswith("[bytes 0-20000 of 100001]\nabcéabcé")
    assert first["text"].endswith("[80,001 bytes more: read on with offset 20000]")
    assert second["text"].count("\N{REPLACEMENT CHARACTER}") == 1, "only where the agent's own offset cuts a character"
    assert last["text"].endswith("abcé\n")


def test_old_results_give_way_and_can_be_found_again(run: Run) -> None:
    def look(request: Request) -> Any:
        cleared = [entry.text for entry in request.entries if "cleared" in entry.text]
        assert cleared
        assert "outputs/001.txt" in cleared[0]
        return calls(bash("wc -c < outputs/001.txt"), usage=Usage())

    def big(request: Request) -> Reply:
        return calls(bash("seq 1000 1999"), usage=Usage(sum(len(entry.text) for entry in request.entries) // 3))

    outcome, events, _ = run([*[big] * 5, look, says("ANSWER: [1]")], "context.keep_turns=1", window=9_000)
    clears = [event for event in events if event["type"] == "clear"]
    assert len(clears) == 1
    assert results(events)[-1]["text"] == "[exit code 0]\n5000"
    assert outcome.counts["clearings"] == 1
    requests = [event for event in events if event["type"] == "request"]
    assert requests[-1]["cleared"] == clears[0]["call_ids"]


def test_an_overflow_is_met_by_clearing_and_asking_once_more(run: Run) -> None:
    big = [calls(bash("printf '%05000d' 1"))] * 3
    outcome, events, _ = run([*big, ContextOverflow("too long"), says("ANSWER: [1]")])
    assert outcome.stop_reason == "answered"
    assert sum(event["type"] == "clear" for event in events) == 1
    assert [event["turn"] for event in events if event["type"] == "request"] == [1, 2, 3, 4, 4]


def test_an_answer_tool_ends_the_attempt_where_the_mode_has_one(run: Run) -> None:
    outcome, _, _ = run(
        [calls(call("answer", '{"node_ids": [9, 9, 8]}'), bash("echo also run"))],
        'tools=["bash", "answer"]',
        "answer.source=tool",
    )
    assert outcome.stop_reason == "answered"
    assert outcome.answer is not None
    assert outcome.answer.ids == (9, 8)


def test_answers_printed_by_a_command_are_not_taken(run: Run) -> None:
    outcome, _, _ = run([calls(bash("echo 'ANSWER: [1]'")), *[says("done")] * 5])
    assert outcome.stop_reason == "no_answer"


@pytest.mark.parametrize(("stopped", "reason"), [(True, "interrupted"), (False, "sandbox_lost")])
def test_a_sandbox_that_goes_as_the_run_is_stopped_is_no_loss(
    biogo: Export, tmp_path: Path, stopped: bool, reason: str
) -> None:
    """Ctrl-C at a terminal may reach a sandbox that is just being opened."""
    cancel = threading.Event()

    asked = threading.Event()

    class Asked(Words):
        def complete(self, request: Request) -> Reply:
            asked.set()
            return super().complete(request)

    class Fails:
        kind = "bwrap"

        def open(self, _spec: Spec) -> Any:
            asked.wait()
            if stopped:
                cancel.set()
            raise SandboxLost("it is gone")

    mode, account, pool = load_mode("files", {}), Account(cancel, lambda _: None), SandboxPool()
    slot = pool.slot(cast(Backend, Fails()), Spec(biogo.files, mode.sandbox.limits()), account.queued)
    with TrajectoryWriter(tmp_path / "t.jsonl", tmp_path / "blobs") as log:
        words = Asked([calls(bash("true"))])
        task = Task(AttemptKey("q", 0, 0), "which?", mode, biogo, make_toolbox(mode.tools), words, None, slot)
        outcome = run_attempt(task, log, account)
    pool.close()
    assert outcome.stop_reason == reason
