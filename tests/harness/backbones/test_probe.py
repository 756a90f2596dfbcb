from __future__ import annotations

import json

from harness.backbones.probe import probe
from tests.support.server import ScriptedServer, call, refuse, say
from tests.support.talk import profile
from tests.support.voices import Responses


def ask(*behaviours, models=None, **values):
    with ScriptedServer(list(behaviours), models=models) as server:
        return probe(profile(server.url, **values)), server


def test_an_endpoint_that_can_do_everything():
    usage = {
        "prompt_tokens": 60,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 9},
    }
    found, server = ask(
        say(None, [call("report", {"number": 7}, id="a")], usage=usage), models=[{"id": "m", "max_model_len": 32768}]
    )
    assert (found.error, found.tools, found.arguments, found.reasoning) == (None, True, True, True)
    assert found.usage == ("input", "cached", "output", "reasoning")
    assert (found.window, found.repairs) == (32768, ())
    assert found.seconds is not None and found.seconds > 0
    assert (server.count, server.requests[0].body["tool_choice"]) == (1, "required")
    json.dumps(found.as_dict())


def test_either_api_is_probed_in_its_own_form():
    usage = {"input_tokens": 60, "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 9}}
    reply = Responses().calls(("a", "report", '{"number": 7}'), usage=usage)
    found, server = ask(reply, api="responses", effort="low")
    assert (found.tools, found.arguments, found.reasoning) == (True, True, True)
    assert found.usage == ("input", "output", "reasoning")
    assert (server.requests[0].path, server.requests[0].body["reasoning"]) == ("/v1/responses", {"effort": "low"})
    found, server = ask(Responses().says("The number is 7."), api="responses")
    assert (found.tools, found.reasoning, server.requests[0].body["tool_choice"]) == (False, True, "required")
    found, server = ask(say('{"name": "report", "arguments": {"number": 7}}'), api="prompted")
    assert (found.tools, found.arguments) == (True, True)
    assert "response_format" in server.requests[0].body


def test_an_endpoint_that_can_do_little():
    found, _ = ask(say("The number is 7.", no_usage=True))
    assert (found.tools, found.arguments, found.reasoning, found.usage, found.window) == (False, None, None, (), None)
    found, _ = ask(say(None, [call("report", '{"number": "seven"')]), models=[{"id": "other", "n_ctx": 5}])
    assert (found.tools, found.arguments, found.window) == (True, False, None)


def test_what_had_to_be_mended_is_reported():
    found, _ = ask(say('<tool_call>{"name": "report", "arguments": {"number": 7}}</tool_call>'))
    assert (found.tools, found.repairs) == (True, ("calls_in_text",))


def test_a_refusal_is_reported_after_one_request():
    found, server = ask(refuse(500, "out of order"), tries=10)
    assert found.error is not None and "out of order" in found.error
    assert server.count == 1
