"""How endpoints behave, and what becomes of an attempt: the whole loop against a scripted server, in both APIs.

Each behaviour has one defined outcome: its stop reason, the number of requests sent, and no turn lost or counted twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.accounting import Account
from harness.agent import Outcome, Task, run_attempt
from harness.backbones.http import HttpBackbone
from harness.errors import KeyRejected, QuotaExhausted, RequestRejected
from harness.events import read_events
from harness.messages import AttemptKey
from harness.modes import load_mode
from harness.slot import SandboxPool
from harness.tools.kit import make_toolbox
from harness.trajectory import TrajectoryWriter
from sandbox import Backend, Spec
from tests.support.server import (
    Behaviour,
    ScriptedServer,
    Turn,
    by_turn,
    drop,
    garbled,
    half,
    in_order,
    rate_limited,
    refuse,
)
from tests.support.talk import profile
from tests.support.voices import Chat, Prompted, Responses, Voice
from tests.support.wordings import OVERFLOWS

GATE = threading.Event()  # never set: a server that doesn't answer until it is stopped
LS = '{"command": "echo one"}'
KEY = "canary-key-2342"


@dataclass
class Trail:
    """What an attempt left: its outcome, its events by type, and the server that it talked to."""

    outcome: Outcome
    server: ScriptedServer
    events: list[dict[str, Any]] = field(repr=False)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def notes(self) -> list[str]:
        return [note["kind"] for reply in self.of("reply") for note in reply["notes"]]


Attempt = Callable[..., Trail]


@pytest.fixture(params=[Chat(), Responses(), Prompted()], ids=["chat", "responses", "prompted"])
def voice(request: pytest.FixtureRequest) -> Voice:
    made: Voice = request.param
    return made


# Several calls, ids, reasoning and malformed arguments can't be said where a call is an object in the text.
native = pytest.mark.parametrize("voice", [Chat(), Responses()], ids=["chat", "responses"], indirect=True)


@pytest.fixture
def attempt(voice: Voice, biogo: Export, bwrap: Backend, tmp_path: Path) -> Iterator[Attempt]:
    pool = SandboxPool()

    def run(
        *turns: Turn, script: Callable[[Sequence[Any]], Any] = by_turn, settings: Any = None, **values: Any
    ) -> Trail:
        mode = load_mode("files", settings)
        account = Account(threading.Event(), lambda _: None)
        slot = pool.slot(bwrap, Spec(biogo.files, mode.sandbox.limits()), account.queued)
        path = tmp_path / "trajectory.jsonl"
        with ScriptedServer(script(turns)) as server:
            asked = profile(server.url, **{"api": voice.api, "tries": 3, **values})
            with closing(HttpBackbone(asked)) as model, TrajectoryWriter(path, tmp_path / "blobs") as log:
                task = Task(AttemptKey("q", 0, 0), "which?", mode, biogo, make_toolbox(mode.tools), model, 99_000, slot)
                outcome = run_attempt(task, log, account)
        pool.give_back(slot)
        return Trail(outcome, server, list(read_events(path)))

    yield run
    pool.close()


def answer(voice: Voice) -> Behaviour:
    return voice.says("ANSWER: [1]")


def answered(trail: Trail, *, requests: int, turns: int) -> Trail:
    """The attempt was answered, each turn is in its trajectory once, each request at the server once."""
    assert trail.outcome.stop_reason == "answered"
    assert trail.outcome.answer is not None and trail.outcome.answer.ids == (1,)
    assert trail.server.count == requests
    assert len(trail.of("reply")) == turns
    assert [reply["usage"]["input"] for reply in trail.of("reply")] == [100] * turns
    return trail


TROUBLE = {
    "429": rate_limited(),
    "429 with Retry-After": rate_limited("0.05"),
    "429 with retry-after-ms": rate_limited(None, retry_after_ms="50"),
    "500": refuse(500),
    "502 with a page": Behaviour(b"<html>bad gateway</html>", 502),
    "503 with Retry-After": refuse(503, headers={"Retry-After": "0.05"}),
    "529": refuse(529, "Overloaded"),
    "408": refuse(408),
    "409": refuse(409),
    "no answer in time": Behaviour(hold=GATE),
    "connection dropped": drop(),
    "half a reply": half(),
    "a reply that is not JSON": garbled(),
    "an empty reply body": Behaviour(b""),
    "a list": Behaviour(b"[1]"),
    "an error with status 200": Behaviour(b'{"error": {"message": "try again", "code": "server_error"}}'),
    "garbage for an event stream": Behaviour(b"data: {broken\n\n"),
    "an event stream without an end": Behaviour(b'data: {"choices": []}\n\n'),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_that_passes_costs_a_request_and_no_turn(attempt: Attempt, voice: Voice, trouble: str) -> None:
    trail = attempt([TROUBLE[trouble], answer(voice)], timeout=0.5)
    answered(trail, requests=2, turns=1)
    assert trail.of("reply")[0]["tries"] == 2


@pytest.mark.parametrize("trouble", ["500", "429", "connection dropped", "a reply that is not JSON"])
def test_trouble_that_lasts_is_an_infrastructure_error(attempt: Attempt, voice: Voice, trouble: str) -> None:
    trail = attempt([TROUBLE[trouble]])
    assert (trail.outcome.stop_reason, trail.server.count) == ("backbone_error", 3)
    assert trail.outcome.error is not None and "(3 tries)" in trail.outcome.error


def test_hollow_replies_are_asked_for_again(attempt: Attempt, voice: Voice) -> None:
    answered(attempt([voice.hollow(), answer(voice)]), requests=2, turns=1)


def test_rate_limits_told_with_status_200_are_waited_for(attempt: Attempt, voice: Voice) -> None:
    answered(attempt([voice.fails_inside("rate_limit_exceeded", "slow down"), answer(voice)]), requests=2, turns=1)


FINAL = {
    "rejected key": (refuse(401, f"Incorrect API key provided: {KEY}"), "backbone_error", KeyRejected),
    "forbidden": (refuse(403, "no access"), "backbone_error", KeyRejected),
    "no credit": (refuse(429, "quota", code="insufficient_quota"), "backbone_error", QuotaExhausted),
    "no credit, 402": (refuse(402, "Insufficient Balance"), "backbone_error", QuotaExhausted),
    "Retry-After of a day": (rate_limited(86_400), "backbone_error", QuotaExhausted),
    "no such model": (refuse(404, "no such model"), "backbone_error", RequestRejected),
    "bad parameter": (refuse(400, "Unknown parameter"), "backbone_error", RequestRejected),
    "redirect": (Behaviour(status=308, headers={"Location": "http://127.0.0.1:9/"}), "backbone_error", RequestRejected),
    "overflow by code": (refuse(400, "no", code="context_length_exceeded"), "context_overflow", None),
    "overflow, vLLM": (refuse(400, "maximum context length is 4096 tokens"), "context_overflow", None),
    "overflow, llama.cpp": (refuse(400, "exceeds the available context size"), "context_overflow", None),
    "overflow, Anthropic": (refuse(400, "prompt is too long: 9 tokens > 8 maximum"), "context_overflow", None),
    "overflow, Gemini": (refuse(400, "token count (9) exceeds the maximum number of tokens"), "context_overflow", None),
    "overflow, Ollama": (refuse(400, "the input length exceeds the context length"), "context_overflow", None),
    "overflow of a rate": (refuse(429, "Request too large for m on tokens per min"), "context_overflow", None),
    "vLLM without a tool parser": (
        refuse(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        "backbone_error", None,
    ),
    "policy, by the endpoint": (refuse(400, "filtered", code="content_filter"), "refused", None),
}  # fmt: skip


@pytest.mark.parametrize("case", FINAL)
def test_what_no_retry_mends_ends_the_attempt_at_once(
    attempt: Attempt, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", KEY)
    behaviour, stop, kind = FINAL[case]
    trail = attempt(behaviour, key_variable="CANARY")
    assert (trail.outcome.stop_reason, trail.server.count, trail.outcome.answer) == (stop, 1, None)
    assert kind is None or type(trail.outcome.failure) is kind
    assert KEY not in json.dumps(trail.events) + str(trail.outcome)


@pytest.mark.parametrize("wording", range(len(OVERFLOWS)))
def test_an_overflow_in_each_providers_words_is_met_by_one_clearing_and_one_retry(
    attempt: Attempt, voice: Voice, wording: int
) -> None:
    status, body = OVERFLOWS[wording]
    overflow = Behaviour(json.dumps(body).encode(), status)
    trail = attempt(voice.calls(("a", "bash", '{"command": "seq 3000"}')), [overflow, answer(voice)])
    answered(trail, requests=3, turns=2)
    (clear,) = trail.of("clear")
    assert clear["call_ids"] == [result["call_id"] for result in trail.of("result")]
    assert trail.server.requests[2].results[0].startswith("[result cleared")


def test_an_overflow_with_nothing_to_clear_ends_the_attempt(attempt: Attempt, voice: Voice) -> None:
    status, body = OVERFLOWS[0]
    overflow = Behaviour(json.dumps(body).encode(), status)
    trail = attempt(voice.calls(("a", "bash", LS)), overflow)
    assert (trail.outcome.stop_reason, trail.outcome.answer, trail.server.count) == ("context_overflow", None, 2)


def test_a_server_that_cuts_requests_without_a_word_is_found_out(attempt: Attempt, voice: Voice) -> None:
    usage = {"prompt_tokens": 4096, "completion_tokens": 5, "input_tokens": 4096, "output_tokens": 5}
    prints = [voice.calls((f"c{n}", "bash", '{"command": "seq 3000"}'), usage=usage) for n in range(3)]
    trail = attempt(*prints, voice.says("ANSWER: [1]", usage=usage))
    assert trail.outcome.stop_reason == "answered"
    assert trail.outcome.counts["input_cut"] == 3


def test_a_server_that_grows_with_what_is_sent_is_not_suspected(attempt: Attempt, voice: Voice) -> None:
    def usage(n: int) -> dict[str, int]:
        return {"prompt_tokens": 900 + 5_000 * n, "completion_tokens": 5}

    prints = [voice.calls((f"c{n}", "bash", '{"command": "seq 3000"}'), usage=usage(n)) for n in range(3)]
    trail = attempt(*prints, voice.says("ANSWER: [1]", usage=usage(3)))
    assert "input_cut" not in trail.outcome.counts


def test_refusals_are_not_answers(attempt: Attempt, voice: Voice) -> None:
    trail = attempt(voice.refuses("I can't. ANSWER: [1]"))
    assert (trail.outcome.stop_reason, trail.outcome.answer, trail.server.count) == ("refused", None, 1)


def test_filtered_replies_are_not_answers(attempt: Attempt, voice: Voice) -> None:
    trail = attempt(voice.filtered())
    assert (trail.outcome.stop_reason, trail.outcome.answer, trail.server.count) == ("refused", None, 1)


def test_a_reply_cut_off_is_not_an_answer(attempt: Attempt, voice: Voice) -> None:
    trail = answered(attempt(voice.cut("ANSWER: [1]"), answer(voice)), requests=2, turns=2)
    assert [reply["finish"] for reply in trail.of("reply")] == ["length", "stop"]


def test_reasoning_to_the_limit_is_not_an_answer(attempt: Attempt, voice: Voice) -> None:
    trail = answered(attempt(voice.thinks_only(), answer(voice), script=in_order), requests=2, turns=2)
    assert "secret-1" in json.dumps(trail.of("reply")[0]["raw"])


@pytest.mark.parametrize("text", ["", None])
def test_an_empty_reply_is_not_an_answer(attempt: Attempt, voice: Voice, text: str | None) -> None:
    trail = answered(attempt(voice.says(text), answer(voice)), requests=2, turns=2)
    assert "empty_reply" in trail.notes


@pytest.mark.parametrize("text", ["", None])
def test_nothing_but_empty_replies_is_no_answer(attempt: Attempt, voice: Voice, text: str | None) -> None:
    trail = attempt(*[voice.says(text)] * 5)
    assert (trail.outcome.stop_reason, trail.outcome.answer, trail.server.count) == ("no_answer", None, 5)


def test_usage_that_is_missing_is_unknown(attempt: Attempt, voice: Voice) -> None:
    trail = attempt(voice.without_usage("ANSWER: [1]"))
    assert trail.outcome.stop_reason == "answered"
    assert set(trail.of("reply")[0]["usage"].values()) == {None}


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}},
        {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}},
        {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 60},
        {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 60},
        {"input_tokens": 40, "output_tokens": 5, "cache_read_input_tokens": 60},
    ],
)
def test_cached_tokens_in_each_name(attempt: Attempt, voice: Voice, reported: dict[str, Any]) -> None:
    trail = answered(attempt(voice.says("ANSWER: [1]", usage=reported)), requests=1, turns=1)
    assert trail.of("reply")[0]["usage"]["cached"] == 60


@native
def test_reasoning_goes_back_with_its_call(attempt: Attempt, voice: Voice) -> None:
    trail = answered(attempt(voice.calls(("a", "bash", LS)), answer(voice)), requests=2, turns=2)
    assert b"secret-1" in trail.server.requests[1].raw
    assert "one" in trail.server.requests[1].results[0]


@native
def test_parallel_calls_each_get_their_result_though_one_fails(attempt: Attempt, voice: Voice) -> None:
    calls = voice.calls(("a", "bash", LS), ("b", "bash", '{"command": "exit 3"}'), ("c", "read", '{"path": "/none"}'))
    trail = answered(attempt(calls, answer(voice)), requests=2, turns=2)
    first, second, third = trail.server.requests[1].results
    assert "one" in first and "exit code 3" in second and "error" in third


@native
def test_calls_with_one_id_are_told_apart(attempt: Attempt, voice: Voice) -> None:
    calls = voice.calls(("x", "bash", LS), ("x", "bash", '{"command": "echo two"}'), (None, "bash", LS))
    trail = answered(attempt(calls, answer(voice)), requests=2, turns=2)
    assert len({result["call_id"] for result in trail.of("result")}) == 3
    assert "two" in trail.server.requests[1].results[1]
    assert {"call_id_repeated", "call_id_missing"} <= set(trail.notes)


def test_calls_under_another_finish_reason_are_run(attempt: Attempt, voice: Voice) -> None:
    answered(attempt(voice.calls(("a", "bash", LS), finish="stop"), answer(voice)), requests=2, turns=2)


@native
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"command": "echo one"}, None),
        (json.dumps({"command": "true " + "x" * 1_000_000}), None),
        ("", "invalid_arguments"),
        (None, "invalid_arguments"),
        ("{}", "invalid_arguments"),
        ('{"command": 3}', "invalid_arguments"),
        ('{"command": "ls"', "malformed_arguments"),
        ("ls", "malformed_arguments"),
        ('["ls"]', "malformed_arguments"),
        ('{"command": "ls"}}', "malformed_arguments"),
    ],
    ids=["object", "huge", "empty", "null", "lacking", "mistyped", "unclosed", "bare", "list", "overclosed"],
)
def test_arguments_of_all_kinds(attempt: Attempt, voice: Voice, arguments: Any, error: str | None) -> None:
    trail = answered(attempt(voice.calls(("a", "bash", arguments)), answer(voice)), requests=2, turns=2)
    assert [result["error"] for result in trail.of("result")] == [error]
    sent = trail.server.requests[1].messages
    call = next(m for m in sent if m.get("type") == "function_call" or m.get("tool_calls"))
    upstream = call["arguments"] if "arguments" in call else call["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(upstream), dict)


def test_a_required_call_that_is_not_made_is_asked_for(attempt: Attempt, voice: Voice) -> None:
    call = voice.calls(("a", "answer", '{"node_ids": [1]}'))
    settings = {"tool_choice": "required", "tools": ["bash", "answer"], "answer": {"source": "tool"}}
    answered(attempt(voice.says("It is node 1."), call, settings=settings), requests=2, turns=2)


def test_an_unknown_tool_is_a_mistake_that_is_told(attempt: Attempt, voice: Voice) -> None:
    trail = answered(attempt(voice.calls(("a", "browse", "{}")), answer(voice)), requests=2, turns=2)
    assert trail.of("result")[0]["error"] == "unknown_tool"


@pytest.mark.parametrize(
    "text",
    [
        'Let me see.\n<tool_call>\n{"name": "bash", "arguments": {"command": "echo one"}}\n</tool_call>',
        "<tool_call><function=bash>\n<parameter=command>\necho one\n</parameter>\n</function></tool_call>",
        '[TOOL_CALLS][{"name": "bash", "arguments": {"command": "echo one"}}]',
        '[TOOL_CALLS]bash[ARGS]{"command": "echo one"}',
        '{"name": "bash", "parameters": {"command": "echo one"}}',
    ],
)
def test_calls_left_in_the_text_are_run(attempt: Attempt, voice: Voice, text: str) -> None:
    trail = answered(attempt(voice.says(text), answer(voice)), requests=2, turns=2)
    assert "calls_in_text" in trail.notes
    assert "one" in trail.server.requests[1].results[0]


def test_reasoning_left_in_the_text_is_not_searched_for_the_answer(attempt: Attempt, voice: Voice) -> None:
    answered(attempt(voice.says("<think>ANSWER: [2]? No.</think>\nANSWER: [1]")), requests=1, turns=1)


def test_half_an_emoji_breaks_nothing(attempt: Attempt, voice: Voice) -> None:
    trail = answered(attempt(voice.says("\ud83d and so on"), answer(voice)), requests=2, turns=2)
    assert "reply_repaired" in trail.notes


@native
def test_streamed_replies_are_like_whole_ones(attempt: Attempt, voice: Voice) -> None:
    turns = [voice.calls(("a", "bash", LS), ("b", "bash", '{"command": "echo two"}')), answer(voice)]
    trail = answered(attempt(*[voice.streamed(turn) for turn in turns], stream=True), requests=2, turns=2)
    assert trail.server.requests[0].body["stream"] is True
    assert [result["arguments"]["command"] for result in trail.of("result")] == ["echo one", "echo two"]
    assert b"secret-1" in trail.server.requests[1].raw


def test_slow_tokens_are_waited_for(attempt: Attempt, voice: Voice) -> None:
    slow = voice.streamed(answer(voice), pieces=8, pause=0.1)
    answered(attempt(slow, stream=True, idle_timeout=5.0), requests=1, turns=1)


def test_a_stream_that_falls_silent_is_asked_for_again(attempt: Attempt, voice: Voice) -> None:
    silent = voice.streamed(answer(voice), pieces=2, pause=3600)
    trail = attempt([silent, voice.streamed(answer(voice))], stream=True, idle_timeout=0.3)
    answered(trail, requests=2, turns=1)


@pytest.mark.parametrize("cut", [1, 2])
def test_a_stream_that_breaks_off_is_billed_once(attempt: Attempt, voice: Voice, cut: int) -> None:
    whole = voice.streamed(answer(voice))
    broken = Behaviour(whole.body[: len(whole.body) // 2], headers=whole.headers) if cut == 1 else half(whole)
    answered(attempt([broken, whole], stream=True), requests=2, turns=1)


def test_an_error_in_the_middle_of_a_stream(attempt: Attempt, voice: Voice) -> None:
    error = {"type": "error", "error": {"code": "server_error", "message": "overloaded"}}
    broken = Behaviour(f"data: {json.dumps(error)}\n\n".encode())
    answered(attempt([broken, voice.streamed(answer(voice))], stream=True), requests=2, turns=1)
