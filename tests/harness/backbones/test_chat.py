"""Chat Completions against a loopback server: what is sent, and how replies are read."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backbones.chat import CHAT, parse_reply
from harness.backbones.dialect import Asked, stand_in
from harness.backbones.http import HttpBackbone
from harness.messages import Entry, Reply, ToolCall, Usage
from tests.support.server import ScriptedServer, bash, by_query, call, half, say
from tests.support.talk import answer_calls, profile, request, result, user


def ask(*behaviours, entries=(), **values: Any) -> tuple[Reply, ScriptedServer]:
    with ScriptedServer(list(behaviours)) as server, closing(HttpBackbone(profile(server.url, **values))) as model:
        return model.complete(request(*entries)), server


def kinds(reply: Reply) -> list[str]:
    return [note["kind"] for note in reply.notes]


def test_a_call_comes_back_as_it_was_said():
    reply, server = ask(bash("ls /graph", "looking", usage={"prompt_tokens": 7, "completion_tokens": 3}))
    assert reply.entry.text == "looking"
    assert [(c.name, json.loads(c.arguments)) for c in reply.entry.calls] == [("bash", {"command": "ls /graph"})]
    assert (reply.finish, reply.usage, reply.tries, reply.notes) == ("tool_calls", Usage(7, None, 3, None), 1, ())
    assert reply.latency > 0
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.body["messages"] == [{"role": "user", "content": "question"}]
    assert [t["function"]["name"] for t in sent.body["tools"]] == ["bash", "read"]
    assert "authorization" not in sent.headers


def test_parameters_are_sent_only_where_the_profile_has_them():
    _, server = ask(say("a"), say("b"))
    assert set(server.requests[0].body) == {"model", "tools", "messages"}
    _, server = ask(
        say("a"),
        effort="high",
        temperature=0.5,
        seed=3,
        max_output=100,
        parallel_tool_calls=False,
        extra_body={"top_k": 5, "reasoning_effort": "none"},
    )
    body = server.requests[0].body
    assert (body["reasoning_effort"], body["temperature"], body["seed"], body["top_k"]) == ("none", 0.5, 3, 5)
    assert (body["max_completion_tokens"], body["parallel_tool_calls"]) == (100, False)


def test_tool_choice_and_no_tools():
    with ScriptedServer([say("a"), say("b")]) as server, closing(HttpBackbone(profile(server.url))) as model:
        model.complete(request(tool_choice="none"))
        model.complete(request(tools=()))
    assert server.requests[0].body["tool_choice"] == "none"
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.requests[1].body.keys()


def test_messages_are_resent_as_they_came():
    extra = {"reasoning_content": "hm", "provider_specific": {"signature": "AbC=="}, "refusal": None}
    with (
        ScriptedServer([bash("ls", message=extra), say("done")]) as server,
        closing(HttpBackbone(profile(server.url))) as model,
    ):
        first = model.complete(request())
        model.complete(request(user(), *answer_calls(first, ["a\tb"]), turn=2))
    resent = server.requests[1].body["messages"]
    assert {key: resent[1][key] for key in extra} == extra
    assert resent[1]["tool_calls"] == first.entry.raw["tool_calls"]
    assert resent[2] == {"role": "tool", "tool_call_id": first.entry.calls[0].id, "content": "a\tb"}


def test_one_request_is_the_beginning_of_the_next():
    script = [bash(f"echo {i}") for i in range(5)] + [say("done")]
    with ScriptedServer(script) as server, closing(HttpBackbone(profile(server.url))) as model:
        entries = [user()]
        for turn in range(6):
            choice = "auto" if turn < 5 else "none"
            entries += answer_calls(model.complete(request(*entries, turn=turn + 1, tool_choice=choice)))
    bodies = [r.raw for r in server.requests]
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}") + b",")


def test_entries_are_encoded_once():
    with ScriptedServer([bash("ls"), say("done")]) as server, closing(HttpBackbone(profile(server.url))) as model:
        entries = [user(), *answer_calls(model.complete(request()))]
        model.complete(request(*entries, turn=2))
        kept = [entry.wire["chat"] for entry in entries]
        assert all(CHAT.wire(entry) is before for entry, before in zip(entries, kept, strict=True))


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"', "null", '{"command": "x"', "NaN", "{" * 5000])
def test_malformed_arguments_are_kept_and_a_stand_in_is_sent(arguments):
    with (
        ScriptedServer([say(calls=[call("bash", arguments)]), say("x")]) as server,
        closing(HttpBackbone(profile(server.url))) as model,
    ):
        reply = model.complete(request())
        model.complete(request(user(), *answer_calls(reply), turn=2))
    assert reply.entry.calls[0].arguments == arguments
    assert reply.entry.raw["tool_calls"][0]["function"]["arguments"] == arguments
    sent = json.loads(server.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"])
    assert sent == {"malformed_arguments": arguments[:2000]}


def test_arguments_that_came_as_an_object_or_not_at_all():
    calls = [
        {"id": "a", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}},
        {"id": "b", "type": "function", "function": {"name": "done"}},
        {"id": "c", "type": "function", "function": {"name": "done", "arguments": ""}},
    ]
    reply, _ = ask(say(calls=calls))
    assert [c.arguments for c in reply.entry.calls] == ['{"command":"ls"}', "{}", "{}"]
    assert kinds(reply) == ["arguments_not_text", "arguments_not_text", "arguments_empty", "arguments_empty"]
    sent = json.loads(CHAT.wire(reply.entry))["tool_calls"]
    assert [c["function"]["arguments"] for c in sent] == ['{"command":"ls"}', "{}", "{}"]


def test_ids_that_are_missing_or_used_before_are_replaced_in_order():
    calls = [call("a", {}, id="same"), call("b", {}, id="same"), call("c", {}, id=""), call("d", {}, id="old")]
    before = Entry("assistant", "", (ToolCall("old", "bash", "{}"),))
    reply, _ = ask(say(calls=calls), entries=[user(), before, result("old")])
    ids = [c.id for c in reply.entry.calls]
    assert [c.name for c in reply.entry.calls] == ["a", "b", "c", "d"]
    assert ids[0] == "same" and len({*ids, "old"}) == 5 and all(ids)
    assert kinds(reply) == ["call_id_repeated", "call_id_missing", "call_id_repeated"]
    assert [c["id"] for c in json.loads(CHAT.wire(reply.entry))["tool_calls"]] == ids
    assert [c["id"] for c in reply.entry.raw["tool_calls"]] == ["same", "same", "", "old"]


@pytest.mark.parametrize(
    ("behaviour", "finish", "text"),
    [
        (say("fine"), "stop", "fine"),
        (say("cut", finish="length"), "length", "cut"),
        (say(None, finish="length", message={"reasoning_content": "long"}), "length", ""),
        (say("", finish="content_filter"), "content_filter", ""),
        (say(None, message={"refusal": "I can't"}), "refusal", "I can't"),
        (bash("ls", finish="stop"), "tool_calls", ""),
        (bash("ls", finish="length"), "length", ""),
        (say("end", finish="end_turn"), "stop", "end"),
        (say("odd", finish="eternity"), "stop", "odd"),
        (say("none", finish="tool_calls"), "stop", "none"),
        (say([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]), "stop", "in parts"),
        (say("<think>\nhm [1]\n</think>\n\nANSWER: [2]"), "stop", "ANSWER: [2]"),
        (say("hm [1]</think>ANSWER: [2]"), "stop", "ANSWER: [2]"),
        (say("the tag <think> ends with </think> here"), "stop", "the tag <think> ends with </think> here"),
    ],
)
def test_finish_reasons_and_text(behaviour, finish, text):
    reply, _ = ask(behaviour)
    assert (reply.finish, reply.entry.text) == (finish, text)


def test_an_empty_reply_is_noted_and_can_be_sent_back():
    reply, _ = ask(say(None, message={"tool_calls": []}))
    assert kinds(reply) == ["empty_reply"]
    assert json.loads(CHAT.wire(reply.entry)) == {"role": "assistant", "content": ""}


def test_text_that_is_not_unicode_is_mended_both_ways():
    reply, server = ask(say("half \ud83d of it"), entries=[user("a lone \udc80 here")])
    assert reply.entry.text == "half \ufffd of it"
    assert kinds(reply) == ["reply_repaired"]
    assert server.requests[0].body["messages"][0]["content"] == "a lone \ufffd here"
    assert b"half" in CHAT.wire(reply.entry)


def test_no_usage_is_none_and_not_zero():
    reply, _ = ask(say("x", no_usage=True))
    assert reply.usage == Usage(None, None, None, None)


def test_a_reply_broken_off_is_asked_for_again_and_counted_once():
    reply, server = ask(half(), say("whole", usage={"prompt_tokens": 5, "completion_tokens": 1}))
    assert (reply.entry.text, reply.tries, reply.usage.input, server.count) == ("whole", 2, 5, 2)
    assert server.requests[0].raw == server.requests[1].raw


def test_many_conversations_at_once():
    names = [f"question {i:02d}" for i in range(16)]
    script = by_query({name: [bash(f"echo {name}"), say(f"answer to {name}")] for name in names})
    answers: dict[str, str] = {}

    def converse(model: HttpBackbone, name: str) -> None:
        first = model.complete(request(user(name), query_id=name))
        last = model.complete(request(user(name), *answer_calls(first), turn=2, query_id=name))
        answers[name] = last.entry.text

    with ScriptedServer(script) as server, closing(HttpBackbone(profile(server.url))) as model:
        threads = [threading.Thread(target=converse, args=(model, name)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {name: f"answer to {name}" for name in names}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
odd_calls = st.lists(
    st.one_of(
        json_values,
        st.fixed_dictionaries(
            {},
            optional={
                "id": json_values,
                "type": json_values,
                "function": st.fixed_dictionaries({}, optional={"name": json_values, "arguments": json_values}),
            },
        ),
    ),
    max_size=4,
)


@given(message=st.dictionaries(st.sampled_from(["content", "refusal", "role", "x"]), json_values), calls=odd_calls)
def test_whatever_a_message_holds_it_is_read_and_can_be_sent_back(message, calls):
    reply = {"choices": [{"message": {**message, "tool_calls": calls}, "finish_reason": "stop"}]}
    parsed = parse_reply(json.dumps(reply).encode(), Asked(1, {"taken"}))
    ids = [c.id for c in parsed.entry.calls]
    assert len(set(ids)) == len(ids) and "taken" not in ids
    sent = json.loads(CHAT.wire(parsed.entry))
    assert sent["role"] == "assistant"
    assert [c["id"] for c in sent.get("tool_calls", [])] == ids
    for encoded in sent.get("tool_calls", []):
        assert isinstance(json.loads(encoded["function"]["arguments"]), dict)


@given(st.text())
def test_a_stand_in_is_always_an_object(text):
    assert isinstance(json.loads(stand_in(text)), dict)
