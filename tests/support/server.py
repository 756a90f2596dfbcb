"""A loopback model endpoint that says what a script tells it to: Chat Completions over real HTTP.

In a test:

    with ScriptedServer([say(calls=[call("bash", {"command": "ls"})]), say("ANSWER: [1]")]) as server:
        ...  # base_url = server.url
    assert [r.turn for r in server.requests] == [1, 2]

A script is one of
- a list of behaviours, taken in the order in which requests arrive;
- `by_turn([...])`: the same turns for every conversation, however many run at once. The turn is the number of assistant
  messages in the request, plus one, so a question that is asked anew begins anew. An item that is a list is a
  series of attempts at that turn: `[rate_limited(), say("…")]`;
- `by_query({"part of the question": [...], ...})`: turns for the conversation whose first user message holds that text;
- any function from a `Received` to a `Behaviour`.

A script that runs out answers with status 500 and adds to `faults`, which leaving the `with` block raises.

As a program, for benchmarks and for crash tests that outlive a process (`--help` lists the flags):

    python -m tests.support.server --turns 10 --delay 0.5
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request as it arrived. `number` counts from 1 in order of arrival, `at` is time.monotonic()."""

    number: int
    path: str
    headers: dict[str, str]  # names in lower case
    raw: bytes
    at: float

    @property
    def body(self) -> dict[str, Any]:
        """The parsed request (parsed on demand, so that counting requests costs nothing)."""
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation sent: Chat Completions' messages, or Responses' input items."""
        body = self.body
        found: list[dict[str, Any]] = body["messages"] if "messages" in body else body["input"]
        return found

    @property
    def query(self) -> str:
        """Text of the first user message."""
        return next((m.get("content") or "" for m in self.messages if m.get("role") == "user"), "")

    @property
    def turn(self) -> int:
        """1 plus the number of replies already in the conversation."""
        messages = self.messages
        if "messages" in self.body:
            return 1 + len([m for m in messages if m.get("role") == "assistant"])
        said = [m.get("role") != "user" and m.get("type") != _OUTPUT for m in messages]  # one reply is many items
        return 1 + sum(now and not before for before, now in itertools.pairwise([False, *said]))

    @property
    def results(self) -> list[str]:
        """Tool results in the request, oldest first."""
        messages = self.messages
        found = [
            m.get("output", m.get("content")) for m in messages if m.get("type") == _OUTPUT or m.get("role") == "tool"
        ]
        return [text or "" for text in found]


_OUTPUT = "function_call_output"


@dataclass(frozen=True)
class Behaviour:
    """One answer. `body` bytes are sent as they are; `delay` comes before the status line.

    `cut`: close the connection after so many bytes of the body; -1 before any answer. `pieces`: send the body in so
    many parts with `pause` seconds between. `hold`: wait for this event before answering.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    pieces: int = 1
    pause: float = 0.0
    hold: threading.Event | None = None


_NUMBERS = itertools.count(1)

Script = Callable[[Received], Behaviour]
Turn = Behaviour | Sequence[Behaviour]


class ScriptRanOut(AssertionError):
    """More was asked than was scripted."""


def call(name: str, arguments: Mapping[str, Any] | str, id: str | None = None) -> dict[str, Any]:
    """A tool call for `say`. A text as arguments is sent as it is, well formed or not."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    made = {"type": "function", "function": {"name": name, "arguments": text}}
    return {"id": id, **made} if id is not None else made


def say(
    text: str | None = None,
    calls: Sequence[Mapping[str, Any]] = (),
    *,
    finish: str | None = None,
    usage: Mapping[str, Any] | None = None,
    no_usage: bool = False,
    message: Mapping[str, Any] | None = None,
    top: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Behaviour:
    """A completion. Calls without an id get one. `message` and `top` add fields; `rest` goes to Behaviour.

    Usage defaults to 100 input and 10 output tokens.
    """
    numbered = [{"id": f"call_{next(_NUMBERS)}", **c} for c in calls]
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if numbered:
        said["tool_calls"] = numbered
    said.update(message or {})
    reply: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": [{"index": 0, "message": said, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
    }
    if not no_usage:
        reply["usage"] = usage or {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    reply.update(top or {})
    return Behaviour(body=json.dumps(reply).encode(), **rest)


def respond(*items: Mapping[str, Any], top: Mapping[str, Any] | None = None, **rest: Any) -> Behaviour:
    """A reply of the Responses API with these output items. `top` adds fields or replaces them."""
    reply: dict[str, Any] = {
        "id": "resp_scripted",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": items,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
    }
    return Behaviour(body=json.dumps(reply | dict(top or {}), indent=2).encode(), **rest)


def bash(command: str, text: str | None = None, **rest: Any) -> Behaviour:
    """A completion with one call of `bash`."""
    return say(text, [call("bash", {"command": command})], **rest)


def refuse(
    status: int, message: str = "", *, code: str | None = None, kind: str | None = None, **rest: Any
) -> Behaviour:
    """An error in the form most providers use."""
    body = {"error": {"message": message or f"scripted status {status}", "type": kind, "code": code, "param": None}}
    return Behaviour(body=json.dumps(body).encode(), status=status, **rest)


def rate_limited(retry_after: str | float | None = None, **headers: str) -> Behaviour:
    """Status 429, with Retry-After where given. Underscores in names of further headers become hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        named["Retry-After"] = str(retry_after)
    return refuse(429, "Rate limit reached", code="rate_limit_exceeded", headers=named)


def drop() -> Behaviour:
    """Close the connection without an answer."""
    return Behaviour(cut=-1)


def half(whole: Behaviour | None = None) -> Behaviour:
    """Promise the whole body, send half of it, close."""
    whole = whole or say("cut in the middle of it")
    return replace(whole, cut=len(whole.body) // 2)


def garbled(body: bytes = b'{"choices": [{"message": {"role": "assi') -> Behaviour:
    """Status 200 and a body that is not JSON."""
    return Behaviour(body=body)


def in_order(turns: Sequence[Behaviour]) -> Script:
    """Behaviours in the order in which requests arrive."""
    left = list(turns)
    lock = threading.Lock()

    def script(received: Received) -> Behaviour:
        with lock:
            if not left:
                raise ScriptRanOut(f"request {received.number}: the script holds {len(turns)} behaviours")
            return left.pop(0)

    return script


def by_turn(turns: Sequence[Turn]) -> Script:
    """The same turns for every conversation."""
    return by_query({"": turns})


def by_query(scripts: Mapping[str, Sequence[Turn]]) -> Script:
    """Turns by a text that the first user message holds; the first that fits."""
    tries: dict[tuple[str, int], int] = {}
    lock = threading.Lock()

    def script(received: Received) -> Behaviour:
        query, turn = received.query, received.turn
        key = next((key for key in scripts if key in query), None)
        if key is None:
            raise ScriptRanOut(f"request {received.number}: nothing scripted for {query[:200]!r}")
        turns = scripts[key]
        if turn > len(turns):
            raise ScriptRanOut(f"request {received.number}: turn {turn} of {key!r}, scripted are {len(turns)}")
        item = turns[turn - 1]
        if isinstance(item, Behaviour):
            return item
        with lock:
            nth = tries.get((query, turn), 0)
            tries[query, turn] = nth + 1
        return item[min(nth, len(item) - 1)]

    return script


class ScriptedServer:
    """The server, running from `with` to the end of the block (or `start` to `stop`) on a free loopback port."""

    def __init__(
        self,
        script: Script | Sequence[Behaviour],
        *,
        port: int = 0,
        keep: bool = True,
        models: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """`keep=False` counts requests without keeping them (benchmarks). `models` is what GET /models lists."""
        self.script: Script = script if callable(script) else in_order(script)
        self.requests: list[Received] = []
        self.faults: list[str] = []
        self.models = models or [{"id": "scripted", "object": "model", "owned_by": "tests"}]
        self.stopping = threading.Event()
        self._count = 0
        self._keep = keep
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._open: set[socket.socket] = set()
        self._http = _Listener(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def count(self) -> int:
        """Requests that arrived so far."""
        with self._lock:
            return self._count

    def wait_for(self, count: int, timeout: float = 60.0) -> bool:
        """Block until so many requests have arrived."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count >= count, timeout)

    def start(self) -> ScriptedServer:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop answering and close every connection."""
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        with self._lock:
            held = list(self._open)
        for connection in held:
            _close(connection)

    def __enter__(self) -> ScriptedServer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.stop()
        if kind is None and self.faults:
            raise ScriptRanOut("; ".join(self.faults))

    def received(self, path: str, headers: Mapping[str, str], raw: bytes) -> Received:
        """Record a request."""
        names = {name.lower(): value for name, value in headers.items()}
        with self._changed:
            self._count += 1
            made = Received(self._count, path, names, raw, time.monotonic())
            if self._keep:
                self.requests.append(made)
            self._changed.notify_all()
        return made

    def answer(self, received: Received) -> Behaviour:
        """What the script says to a request."""
        try:
            return self.script(received)
        except Exception as error:  # noqa: BLE001 - the client must get an answer; the test is told when the block ends
            with self._lock:
                self.faults.append(str(error))
            return refuse(500, f"{type(error).__name__}: {error}")

    def track(self, connection: socket.socket, is_open: bool) -> None:
        """Know the open connections, to close them at the end."""
        with self._lock:
            (self._open.add if is_open else self._open.discard)(connection)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], owner: ScriptedServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a client that hangs up is part of the tests
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.server.owner.track(self.connection, True)

    def finish(self) -> None:
        self.server.owner.track(self.connection, False)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        listing = {"object": "list", "data": self.server.owner.models}
        self._send(Behaviour(body=json.dumps(listing).encode()))

    def do_POST(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = owner.answer(owner.received(self.path, dict(self.headers.items()), raw))
        if answer.hold:
            while not answer.hold.wait(0.05) and not owner.stopping.is_set():
                pass
        if answer.delay:
            owner.stopping.wait(answer.delay)
        self._send(drop() if owner.stopping.is_set() else answer)

    def _send(self, answer: Behaviour) -> None:
        if answer.cut == -1:
            self.close_connection = True
            _close(self.connection)
            return
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        body = answer.body if answer.cut is None else answer.body[: answer.cut]
        size = max(1, -(-len(body) // answer.pieces))
        for start in range(0, len(body), size):
            if start:
                self.server.owner.stopping.wait(answer.pause)
            self.wfile.write(body[start : start + size])
            self.wfile.flush()
        self.wfile.flush()
        if answer.cut is not None:
            self.close_connection = True
            _close(self.connection)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        connection.shutdown(socket.SHUT_RDWR)


def from_file(path: Path, delay: float) -> Script:
    """A script from a file in the form of `scripted:FILE`, one assistant message a line, by turn."""
    turns = []
    for line in path.read_text("utf-8").splitlines():
        said = json.loads(line)
        turns.append(say(said.get("content"), said.get("tool_calls") or (), usage=said.get("usage"), delay=delay))
    return by_turn(turns)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until standard input closes; print the base URL first and the number of requests last."""
    parser = argparse.ArgumentParser(description="A loopback model endpoint that follows a script.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--turns", type=int, default=2, help="turns of each question, the last of them the answer")
    parser.add_argument("--command", default="true", help="what each turn runs")
    parser.add_argument("--answer", default="ANSWER: [0]")
    parser.add_argument("--script", type=Path, help="turns from a scripted:FILE file instead")
    options = parser.parse_args(argv)
    steps = [bash(options.command, delay=options.delay) for _ in range(options.turns - 1)]
    script = (
        from_file(options.script, options.delay)
        if options.script
        else by_turn([*steps, say(options.answer, delay=options.delay)])
    )
    server = ScriptedServer(script, port=options.port, keep=False).start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()
    print(server.count, flush=True)


if __name__ == "__main__":
    main()
