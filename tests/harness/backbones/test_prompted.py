"""Models that were not taught tools: described in the prompt, replies held to a schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from harness.backbones.http import HttpBackbone
from harness.backbones.prompted import LONGEST_TEXT, reply_schema
from harness.messages import Reply, Request
from harness.tools.kit import make_toolbox
from tests.support.server import ScriptedServer, say
from tests.support.talk import TOOLS, answer_calls, profile, request, user

REAL = make_toolbox(("bash", "read")).specs
CALL = {"name": "bash", "arguments": {"command": "ls"}}


def ask(text: str, made: Request, **values: Any) -> tuple[Reply, dict[str, Any]]:
    with ScriptedServer([say(text, **values)]) as server:
        model = HttpBackbone(profile(server.url, api="prompted"))
        reply = model.complete(made)
        model.close()
    return reply, server.requests[0].body


def test_a_call_is_a_call_and_goes_back_as_it_was_said() -> None:
    said = json.dumps(CALL, indent=1)
    reply, body = ask(said, request(tools=REAL))
    (call,) = reply.entry.calls
    assert (call.name, json.loads(call.arguments)) == ("bash", {"command": "ls"})
    assert (reply.finish, reply.notes) == ("tool_calls", ())
    assert not {"tools", "tool_choice"} & body.keys()
    described = body["messages"][0]
    assert described["role"] == "system"
    assert all(tool.description in described["content"] for tool in REAL)
    _, body = ask('{"answer": []}', request(user(), *answer_calls(reply, ["a b"]), turn=2, tools=REAL))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"] == said
    assert body["messages"][3]["content"].endswith(":\na b")


def test_an_answer_is_an_answer_line() -> None:
    reply, _ = ask('{"answer": [12, 34]}', request())
    assert (reply.entry.text, reply.finish, reply.entry.calls) == ("ANSWER: [12,34]", "stop", ())


@pytest.mark.parametrize("text", ['{"name": "bash", "argum', "no JSON", "[1]", '{"other": 1}', ""])
def test_what_was_cut_off_stays_text(text: str) -> None:
    reply, _ = ask(text, request(), finish="length")
    assert (reply.entry.text, reply.finish, reply.entry.calls) == (text, "length", ())


def test_in_the_last_turn_no_call_can_be_made() -> None:
    made = request(tool_choice="none")
    reply, body = ask(json.dumps(CALL), made)
    assert reply.entry.calls == ()
    assert body["response_format"]["json_schema"]["schema"] == reply_schema(TOOLS, "none")


@pytest.mark.parametrize(
    ("value", "choices"),
    [
        (CALL, {"auto", "required"}),
        ({"name": "bash", "arguments": {"command": "ls", "timeout": 3}}, {"auto", "required"}),
        ({"name": "read", "arguments": {"path": "a", "offset": 3}}, {"auto", "required"}),
        ({"answer": [1, 2]}, {"auto", "none"}),
        ({"answer": []}, {"auto", "none"}),
        ({"answer": ["a"]}, set()),
        ({"answer": list(range(21))}, set()),
        ({"name": "bash", "arguments": {}}, set()),
        ({"name": "bash", "arguments": {"command": "x" * (LONGEST_TEXT + 1)}}, set()),
        ({"name": "write", "arguments": {}}, set()),
        ({"name": "bash", "arguments": {"command": "ls"}, "answer": [1]}, set()),
    ],
)
def test_the_schema_allows_well_formed_replies_alone(value: Any, choices: set[str]) -> None:
    allowed = {
        choice
        for choice in ("auto", "required", "none")
        if jsonschema.Draft202012Validator(reply_schema(REAL, choice)).is_valid(value)
    }
    assert allowed == choices


def test_without_tools_an_answer_may_be_names() -> None:
    validator = jsonschema.Draft202012Validator(reply_schema((), "auto"))
    assert validator.is_valid({"answer": ["TP53", 7]})
    reply, _ = ask('{"answer": ["TP53"]}', request(tools=()))
    assert reply.entry.text == 'ANSWER: ["TP53"]'
