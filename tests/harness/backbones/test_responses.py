"""The Responses API against a loopback server."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backbones.dialect import Asked
from harness.backbones.http import HttpBackbone
from harness.backbones.responses import RESPONSES, parse_reply
from harness.errors import BackboneError, UserError
from harness.messages import Entry, Reply, ToolCall, Usage
from tests.support.server import ScriptedServer, by_turn, respond
from tests.support.talk import answer_calls, profile, request, result, user


def think(number: int) -> dict[str, Any]:
    return {"id": f"rs_{number}", "type": "reasoning", "summary": [], "encrypted_content": f"gAAAA/+{number}=="}


def call(call_id: Any, arguments: Any = '{"command": "ls"}', name: str = "bash") -> dict[str, Any]:
    return {
        "id": f"fc_{call_id}", "type": "function_call", "status": "completed",
        "call_id": call_id, "name": name, "arguments": arguments,
    }  # fmt: skip


def message(*texts: str, kind: str = "output_text") -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    parts = [{"type": kind, key: text, **({} if kind == "refusal" else {"annotations": []})} for text in texts]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts}


def make(server: ScriptedServer, **values: Any) -> HttpBackbone:
    return HttpBackbone(profile(server.url, api="responses", **values))


def ask(*behaviours, entries=(), **values: Any) -> tuple[Reply, ScriptedServer]:
    with ScriptedServer(list(behaviours)) as server, closing(make(server, **values)) as model:
        return model.complete(request(*entries)), server


def test_the_request():
    _, server = ask(respond(message("hi")), effort="high", max_output=500, parallel_tool_calls=True)
    sent = server.requests[0]
    assert sent.path == "/v1/responses"
    body = sent.body
    assert body["input"] == [{"role": "user", "content": "question"}]
    assert (body["reasoning"], body["max_output_tokens"], body["store"]) == ({"effort": "high"}, 500, False)
    assert body["include"] == ["reasoning.encrypted_content"]
    assert [(t["name"], t["strict"], t["type"]) for t in body["tools"]] == [
        ("bash", False, "function"),
        ("read", False, "function"),
    ]
    assert "previous_response_id" not in body


def test_items_are_resent_as_they_came_each_reasoning_before_its_call():
    items = [think(1), message("I look."), call("a"), think(2), call("b", '{"command":  "caf\\u00e9"}')]
    with (
        ScriptedServer(by_turn([respond(*items), respond(message("ANSWER: [1]"))])) as server,
        closing(make(server)) as model,
    ):
        first = model.complete(request())
        last = model.complete(request(user(), *answer_calls(first, ["ra", "rb"]), turn=2))
    assert first.entry.text == "I look."
    assert [c.id for c in first.entry.calls] == ["a", "b"]
    assert (first.finish, first.usage, last.finish) == ("tool_calls", Usage(100, None, 10, None), "stop")
    sent = server.requests[1].body["input"]
    assert sent[1:6] == items
    assert [list(item) for item in sent[1:6]] == [list(item) for item in items]
    assert sent[6:] == [
        {"type": "function_call_output", "call_id": "a", "output": "ra"},
        {"type": "function_call_output", "call_id": "b", "output": "rb"},
    ]
    assert b'"gAAAA/+1=="' in server.requests[1].raw


def test_one_request_is_the_beginning_of_the_next():
    script = [respond(think(i), call(f"c{i}")) for i in range(4)] + [respond(message("done"))]
    with ScriptedServer(by_turn(script)) as server, closing(make(server)) as model:
        entries = [user()]
        for turn in range(5):
            entries += answer_calls(model.complete(request(*entries, turn=turn + 1)))
    bodies = [r.raw for r in server.requests]
    assert len(bodies) == 5
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}") + b",")


@pytest.mark.parametrize(
    ("behaviour", "finish", "text", "kinds"),
    [
        (respond(message("a", "b")), "stop", "ab", []),
        (respond(think(1), message("x")), "stop", "x", []),
        (respond(message("no", kind="refusal")), "refusal", "no", []),
        (respond(message("part"), top={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
         "length", "part", []),
        (respond(think(1), top={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
         "length", "", ["empty_reply", "reasoning_dropped"]),
        (respond(top={"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
         "content_filter", "", ["empty_reply"]),
        (respond(message("x"), top={"status": "incomplete"}), "length", "x", ["finish_reason"]),
        (respond(), "stop", "", ["empty_reply"]),
    ],
)  # fmt: skip
def test_finish_and_text(behaviour, finish, text, kinds):
    reply, _ = ask(behaviour)
    assert (reply.finish, reply.entry.text) == (finish, text)
    assert [note["kind"] for note in reply.notes] == kinds


def test_reasoning_that_led_to_nothing_is_kept_but_not_resent():
    reply, _ = ask(respond(think(1), call("a"), think(2)))
    assert [item["type"] for item in reply.entry.raw] == ["reasoning", "function_call", "reasoning"]
    assert json.loads(b"[" + RESPONSES.wire(reply.entry) + b"]") == reply.entry.raw[:2]


def test_a_reply_of_nothing_leaves_no_gap_in_the_next_request():
    with ScriptedServer(by_turn([[respond(), respond(message("now"))]])) as server, closing(make(server)) as model:
        first = model.complete(request())
        model.complete(request(user(), first.entry, user("go on"), turn=2))
    assert [m["content"] for m in server.requests[1].body["input"]] == ["question", "go on"]


def test_ids_and_arguments_are_mended_upstream_and_kept_as_said():
    before = Entry("assistant", "", (ToolCall("old", "bash", "{}"),))
    items = [call("old"), call(None), call("new", "{broken"), call("d", {"command": "x"})]
    reply, _ = ask(respond(*items), entries=[user(), before, result("old")])
    ids = [c.id for c in reply.entry.calls]
    assert len({*ids, "old"}) == 5
    assert [c.arguments for c in reply.entry.calls][2:] == ["{broken", '{"command":"x"}']
    sent = json.loads(b"[" + RESPONSES.wire(reply.entry) + b"]")
    assert [item["call_id"] for item in sent] == ids
    assert json.loads(sent[2]["arguments"]) == {"malformed_arguments": "{broken"}
    assert reply.entry.raw == items


@pytest.mark.parametrize("code", ["server_error", "rate_limit_exceeded"])
def test_a_failed_response_is_asked_again(code):
    failed = respond(top={"status": "failed", "error": {"code": code, "message": "oops"}})
    reply, server = ask(failed, respond(message("ok")))
    assert (reply.entry.text, reply.tries, server.count) == ("ok", 2, 2)


def test_a_response_that_failed_by_policy_is_a_refusal():
    failed = respond(top={"status": "failed", "error": {"code": "invalid_prompt", "message": "flagged"}})
    reply, server = ask(failed)
    assert (reply.finish, reply.entry.text, server.count) == ("content_filter", "", 1)


def test_no_output_at_all_is_no_reply():
    with pytest.raises(BackboneError, match="holds no output"):
        ask(respond(top={"output": None}), respond(top={"output": None}), tries=2)


def test_seed_is_refused():
    with pytest.raises((UserError, ValueError), match="seed"):
        profile("http://localhost/v1", api="responses", seed=1)


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "function_call", "reasoning", "web_search_call"]) | values},
    optional={"call_id": values, "name": values, "arguments": values, "content": values},
)


@given(st.lists(items | values, max_size=6))
def test_whatever_the_output_holds_it_is_read_and_calls_keep_their_ids(output):
    parsed = parse_reply(json.dumps({"status": "completed", "output": output}).encode(), Asked(1, {"taken"}))
    ids = [c.id for c in parsed.entry.calls]
    assert len({*ids, "taken"}) == len(ids) + 1
    sent = json.loads(b"[" + RESPONSES.wire(parsed.entry) + b"]")
    assert [item["call_id"] for item in sent if item.get("type") == "function_call"] == ids
