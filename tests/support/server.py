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
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.behaviour import (
    Behaviour,
    Received,
    Script,
    ScriptRanOut,
    Turn,
    bash,
    by_query,
    by_turn,
    call,
    drop,
    garbled,
    half,
    in_order,
    rate_limited,
    refuse,
    respond,
    say,
)

__all__ = [
    "Behaviour",
    "Received",
    "Script",
    "ScriptRanOut",
    "ScriptedServer",
    "Turn",
    "bash",
    "by_query",
    "by_turn",
    "call",
    "drop",
    "garbled",
    "half",
    "in_order",
    "rate_limited",
    "refuse",
    "respond",
    "say",
]


class ScriptedServer:
    """The server, running from `with` to the end of the block (or `start` to `stop`) on a free loopback port."""

    def __init__(
        self,
        script: Script | Sequence[Behaviour],
        *,
        port: int = 0,
        keep: bool = True,
        models: Sequence[Mapping[str, Any]] | None = None,
        pages: Mapping[str, Any] | None = None,
    ) -> None:
        """`keep=False` counts requests without keeping them (benchmarks). `models` is what GET /v1/models lists,
        `pages` are JSON documents by path; any other path is not found."""
        self.script: Script = script if callable(script) else in_order(script)
        self.requests: list[Received] = []
        self.faults: list[str] = []
        listing = {"object": "list", "data": models or [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
        self.pages = {"/v1/models": listing, **(pages or {})}
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
        page = self.server.owner.pages.get(self.path)
        self._send(refuse(404) if page is None else Behaviour(body=json.dumps(page).encode()))

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        if len(raw) < length:  # its sender died in the middle: never a request
            self.close_connection = True
            return
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
