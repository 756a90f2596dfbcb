"""The loopback endpoint that other tests rely on."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from tests.support.server import (
    ScriptedServer,
    ScriptRanOut,
    bash,
    by_query,
    by_turn,
    call,
    drop,
    garbled,
    half,
    rate_limited,
    say,
)


def post(url: str, *messages: dict) -> dict:
    body = json.dumps({"model": "m", "messages": list(messages)}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body), timeout=30) as response:
        return json.load(response)


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def test_a_list_is_answered_in_order_and_requests_are_recorded():
    with ScriptedServer([bash("ls"), say("done")]) as server:
        first = post(server.url, user("q"))["choices"][0]
        second = post(server.url, user("q"), {"role": "assistant"}, {"role": "tool", "content": "r"})["choices"][0]
    assert first["message"]["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "ls"}'}
    assert (first["finish_reason"], second["finish_reason"]) == ("tool_calls", "stop")
    assert [r.turn for r in server.requests] == [1, 2]
    assert server.requests[1].results == ["r"]
    assert server.count == 2


def test_running_out_is_told_to_client_and_test():
    with pytest.raises(ScriptRanOut, match="1 behaviours"), ScriptedServer([say("only")]) as server:
        post(server.url, user("q"))
        with pytest.raises(urllib.error.HTTPError, match="500"):
            post(server.url, user("q"))


def test_turns_by_query_do_not_depend_on_the_order_of_arrival():
    script = by_query({"alpha": [bash("a1"), say("A")], "": [bash("b1"), bash("b2"), say("B")]})
    with ScriptedServer(script) as server:
        answers = [
            post(server.url, user("beta"), {"role": "assistant"}, {"role": "assistant"}),
            post(server.url, user("alpha")),
            post(server.url, user("beta")),
            post(server.url, user("alpha"), {"role": "assistant"}),
        ]
    said = [a["choices"][0]["message"] for a in answers]
    assert [said[0]["content"], said[3]["content"]] == ["B", "A"]
    assert [json.loads(said[i]["tool_calls"][0]["function"]["arguments"])["command"] for i in (1, 2)] == ["a1", "b1"]


def test_attempts_at_one_turn():
    with ScriptedServer(by_turn([[rate_limited(7), say("then")]])) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(server.url, user("q"))
        assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "7")
        refused.value.close()
        assert post(server.url, user("q"))["choices"][0]["message"]["content"] == "then"


def test_connections_that_break():
    with ScriptedServer([drop(), half(), garbled()]) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            post(server.url, user("q"))
        with pytest.raises(http.client.IncompleteRead):
            post(server.url, user("q"))
        with pytest.raises(json.JSONDecodeError):
            post(server.url, user("q"))


def test_an_answer_held_back_until_it_is_let_go():
    gate = threading.Event()
    with ScriptedServer([say("late", hold=gate)]) as server:
        got: list[dict] = []
        asking = threading.Thread(target=lambda: got.append(post(server.url, user("q"))))
        asking.start()
        assert server.wait_for(1)
        assert not got
        gate.set()
        asking.join(30)
    assert got[0]["choices"][0]["message"]["content"] == "late"


def test_stopping_does_not_wait_for_slow_answers():
    server = ScriptedServer([say("never", delay=3600)]).start()
    failures: list[Exception] = []

    def ask() -> None:
        try:
            post(server.url, user("q"))
        except (OSError, http.client.HTTPException) as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert server.wait_for(1)
    server.stop()
    asking.join(60)
    assert len(failures) == 1


def test_ids_are_made_up_and_raw_arguments_kept():
    with ScriptedServer([say(calls=[call("bash", "{not json"), call("bash", {}, id="mine")])]) as server:
        calls = post(server.url, user("q"))["choices"][0]["message"]["tool_calls"]
    assert calls[0]["function"]["arguments"] == "{not json"
    assert calls[0]["id"] and calls[1]["id"] == "mine"


def test_as_a_program():
    command = [sys.executable, "-m", "tests.support.server", "--turns", "3", "--command", "echo hi"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        assert "tool_calls" in post(url, user("q"))["choices"][0]["message"]
        assert post(url, user("q"), {"role": "assistant"}, {"role": "assistant"})["choices"][0]["message"]["content"]
        rest, _ = process.communicate()
    assert rest.split() == ["2"]
