"""Retries, waits and failures over real connections."""

from __future__ import annotations

import logging
import re
import socket
import threading
import traceback
from contextlib import closing, suppress

import pytest

from harness.backbones.http import HttpBackbone
from harness.errors import (
    BackboneError,
    ContextOverflow,
    HarnessError,
    KeyRejected,
    QuotaExhausted,
    RequestRejected,
    UserError,
)
from tests.support.server import Behaviour, ScriptedServer, by_query, drop, garbled, half, rate_limited, refuse, say
from tests.support.talk import profile, request, user

KEY = "canary-key-0815"


def complete(server, notices=None, time_left=None, **values):
    notice = notices.append if notices is not None else lambda _: None
    with closing(HttpBackbone(profile(server.url, **values), notice)) as model:
        return model.complete(request(time_left=time_left))


def fail(*behaviours, kind=HarnessError, **values):
    with ScriptedServer(list(behaviours)) as server, pytest.raises(kind) as error:
        complete(server, **values)
    return error.value, server


@pytest.mark.parametrize(
    "trouble",
    [
        refuse(500),
        refuse(503, headers={"Retry-After": "0.01"}),
        refuse(408),
        refuse(409),
        rate_limited(),
        rate_limited(0.01),
        drop(),
        half(),
        garbled(),
        Behaviour(body=b""),
        Behaviour(body=b"[]"),
        Behaviour(body=b'{"choices": []}'),
        Behaviour(body=b'{"choices": [{"finish_reason": "stop"}]}'),
        Behaviour(body=b'{"error": {"code": 502, "message": "upstream"}}'),
        Behaviour(body=b'{"choices": [{"error": {"code": 429, "message": "slow down"}, "message": {"content": ""}}]}'),
        Behaviour(body=b"[" * 100_000),
    ],
)
def test_trouble_is_followed_by_another_try(trouble):
    with ScriptedServer([trouble, trouble, say("at last")]) as server:
        reply = complete(server)
    assert (reply.entry.text, reply.tries) == ("at last", 3)
    assert reply.waited > 0


def test_tries_are_bounded_and_counted():
    error, server = fail(*[refuse(500, "broken")] * 4, kind=BackboneError, tries=4)
    assert server.count == 4
    assert "status 500: broken (4 tries)" in str(error)
    assert error.waited > 0


def test_retry_after_is_waited_out_and_is_not_latency():
    with ScriptedServer([rate_limited(0.5), say("ok")]) as server:
        reply = complete(server)
    first, second = (r.at for r in server.requests)
    assert second - first >= 0.5
    assert reply.waited >= 0.5 > reply.latency


def test_what_one_worker_is_told_binds_the_others():
    told = threading.Event()

    def script(received):
        if received.query == "first" and not told.is_set():
            told.set()
            return rate_limited(0.6)
        return say("ok")

    with ScriptedServer(script) as server, closing(HttpBackbone(profile(server.url))) as model:
        first = threading.Thread(target=model.complete, args=(request(user("first")),))
        first.start()
        assert told.wait(60)
        other = model.complete(request(user("other")))
        while other.waited < 0.01:  # it overtook the refusal on its way
            other = model.complete(request(user("other")))
        first.join()
    again = [r.at for r in server.requests if r.query == "first"]
    assert again[1] - again[0] >= 0.6
    assert [r.at for r in server.requests if r.query == "other"][-1] - again[0] >= 0.6


def test_a_wait_of_a_day_is_not_waited_for():
    error, server = fail(rate_limited(86_400), kind=QuotaExhausted)
    assert re.search(
        r"it asks to wait until 20\d\d-\d\d-\d\d \d\d:\d\d \(24:00:00\), longer than model.max_wait", str(error)
    )
    assert "--resume" in error.hint
    assert server.count == 1


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (refuse(401, "bad key"), KeyRejected),
        (refuse(403, "not yours"), KeyRejected),
        (refuse(429, "no money", code="insufficient_quota"), QuotaExhausted),
        (refuse(400, "maximum context length is 10"), ContextOverflow),
        (refuse(400, "no such parameter"), RequestRejected),
        (refuse(404, "no such model"), RequestRejected),
        (Behaviour(status=307, headers={"Location": "http://127.0.0.1:9/v1"}), RequestRejected),
        (Behaviour(body=b'{"error": {"code": "context_length_exceeded", "message": "m"}}'), ContextOverflow),
    ],
)
def test_what_can_not_be_mended_is_not_tried_again(behaviour, kind):
    error, server = fail(behaviour)
    assert type(error) is kind
    assert server.count == 1


def test_waiting_before_a_final_refusal_is_known():
    error, _ = fail(rate_limited(0.2), refuse(400, "prompt is too long"), kind=ContextOverflow)
    assert error.waited >= 0.2


def test_nobody_listens():
    with socket.socket() as held:  # bound, not listening: refused, and taken by nobody else
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with (
            closing(HttpBackbone(profile(url, tries=2))) as model,
            pytest.raises(BackboneError, match=r"127\.0\.0\.1:\d+: connection failed: .*refused.*\(2 tries\)"),
        ):
            model.complete(request())


@pytest.mark.parametrize(("tries", "sent"), [(10, 3), (3, 3), (1, 1)])
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.localhost"])
def test_an_endpoint_that_never_was_there_is_given_up_soon(host, tries, sent):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://{host}:{held.getsockname()[1]}/v1"
        with closing(HttpBackbone(profile(url, tries=tries))) as model:
            for _ in range(2):
                with pytest.raises(BackboneError, match=rf"connection failed: .*\({sent} tr(y|ies)\)") as error:
                    model.complete(request())
                assert "--base-url" in error.value.hint


@pytest.mark.parametrize("before", [[say("hello")], [refuse(404)], [refuse(401)], [drop(), say("hello")]])
def test_an_endpoint_that_was_there_is_waited_for(before):
    with closing(HttpBackbone(profile((server := ScriptedServer(before)).url, tries=7))) as model:
        with server, suppress(HarnessError):
            model.complete(request())
        with pytest.raises(BackboneError, match=r"connection failed: .*\(7 tries\)"):
            model.complete(request())


def test_a_silent_server_times_out_and_is_asked_again():
    gate = threading.Event()
    with ScriptedServer([say("late", hold=gate), say("prompt")]) as server:
        reply = complete(server, timeout=0.3)
        gate.set()
    assert (reply.entry.text, reply.tries) == ("prompt", 2)
    assert reply.waited >= 0.3


def test_a_reply_that_trickles_in_is_given_up_at_the_deadline():
    slow = say("x" * 1000, pieces=1000, pause=0.05)
    with ScriptedServer([slow, say("prompt")]) as server:
        assert complete(server, timeout=0.5).entry.text == "prompt"


def test_working_time_that_runs_out_ends_the_request_for_good():
    gate = threading.Event()
    with ScriptedServer([say("late", hold=gate)]) as server, pytest.raises(BackboneError, match="that were left"):
        complete(server, time_left=0.3)
    gate.set()
    assert server.count == 1


def test_a_reply_without_end_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr("harness.backbones.endpoint.LARGEST", 1_000_000)
    error, server = fail(say("x" * 2_000_000), kind=BackboneError)
    assert "more than 1000000 bytes" in str(error)
    assert server.count == 1


def test_a_long_wait_is_announced_and_ends_when_the_backbone_is_closed():
    notices: list[str] = []
    announced = threading.Event()
    failures: list[BackboneError] = []

    def notice(text: str) -> None:
        notices.append(text)
        announced.set()

    def work(model: HttpBackbone) -> None:
        try:
            model.complete(request())
        except BackboneError as error:
            failures.append(error)

    with ScriptedServer([rate_limited(3600)]) as server:
        model = HttpBackbone(profile(server.url), notice)
        worker = threading.Thread(target=work, args=(model,))
        worker.start()
        assert announced.wait(60)
        model.close()
        worker.join(60)
    assert len(failures) == 1
    assert "429" in notices[0] and "all requests wait until" in notices[0]


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    monkeypatch.setenv("CANARY", KEY)
    caplog.set_level(logging.DEBUG)
    echo = f"you sent Bearer {KEY}"
    with ScriptedServer(
        by_query(
            {
                "rejected": [refuse(401, echo)],
                "broken": [refuse(500, echo)],
                "garbled": [garbled(echo.encode())],
                "answered": [say(echo, message={"headers": {"authorization": KEY}})],
            }
        )
    ) as server:
        with closing(HttpBackbone(profile(server.url, key_variable="CANARY", tries=2))) as model:
            seen = [repr(model), repr(vars(model))]
            for query in ("rejected", "broken", "garbled"):
                with pytest.raises(BackboneError) as error:
                    model.complete(request(user(query)))
                seen += [*traceback.format_exception(error.value), error.value.hint]
            reply = model.complete(request(user("answered")))
            seen += [repr(reply), repr(reply.entry.wire), repr(reply.entry.raw)]
        assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in "".join(seen) + caplog.text


def test_a_missing_key_is_found_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("CANARY", raising=False)
    with pytest.raises(UserError, match="CANARY is not set"):
        HttpBackbone(profile("https://models.example/v1", key_variable="CANARY"))


def test_a_proxy_in_the_environment_is_not_used_for_loopback(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with ScriptedServer([say("direct")]) as server:
        assert complete(server, tries=1).entry.text == "direct"


def test_a_connection_is_kept_for_the_next_request():
    with ScriptedServer([say("a"), say("b")]) as server, closing(HttpBackbone(profile(server.url))) as model:
        model.complete(request())
        model.complete(request())
        assert len(server._open) == 1


def test_workers_adapt_to_an_endpoint_that_takes_few_at_a_time():
    under_way, refused = 0, 0
    lock = threading.Lock()
    replies = []

    def script(received):
        nonlocal under_way, refused
        with lock:
            if under_way >= 3:
                refused += 1
                return rate_limited()
            under_way += 1
        threading.Event().wait(0.01)
        with lock:
            under_way -= 1
        return say("ok")

    with (
        ScriptedServer(script) as server,
        closing(HttpBackbone(profile(server.url, backoff=0.02, backoff_max=0.1, tries=100))) as model,
    ):

        def work():
            replies.extend(model.complete(request()) for _ in range(5))

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(replies) == 80
    assert refused < 80  # 15 to 26 with the number of requests adapted, 110 to 130 with back-off alone
