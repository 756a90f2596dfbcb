"""Serves the graph tools over a Unix socket to the programs of one attempt.

One JSON object a line each way: {"tool", "arguments", "program"} -> {"text"} or {"error"}. Whatever comes in is
hostile: lines are bounded, connections are few, and a bad request is answered and costs the connection, no more.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from harness.text import beginning

FOLDER = "/attempt"  # where the sandbox shows the folder with the client's module and the socket
SOCKET, MODULE = "kb.sock", "kbtools.py"
LONGEST_REQUEST = 1024 * 1024
MOST_CONNECTIONS = 32
_LONGEST_NAME = 200  # characters of a tool's or a program's name that are told
_LONGEST_ARGUMENTS = 4_000  # bytes of a call's arguments that are told as they are; a program can make many calls
_MOST_ARGUMENTS, _LONGEST_VALUE = 8, 400


@dataclass(frozen=True)
class ClientCall:
    """One call from the sandbox: `program` is what the caller says it is, `characters` the size of the answer.

    Of very long arguments the first are there, and the beginnings of their values as texts.
    """

    tool: str
    arguments: dict[str, Any]
    program: str
    characters: int
    seconds: float
    error: bool


class KbServer:
    """A folder to show in the sandbox, served until `close`. `answer` runs a tool, `told` hears of each call.

    Both are called from the server's threads, `answer` several at once; it raises ValueError for the caller's mistakes.
    """

    def __init__(
        self, answer: Callable[[str, dict[str, Any]], str], told: Callable[[ClientCall], None] = lambda _: None
    ) -> None:
        self._answer, self._told = answer, told
        self.folder = Path(tempfile.mkdtemp(prefix="kgshell-kb-"))
        self.folder.chmod(0o755)  # the sandbox's user is another
        module = self.folder / MODULE
        module.write_bytes((resources.files("harness.kb") / MODULE).read_bytes())
        module.chmod(0o644)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.folder / SOCKET))
        (self.folder / SOCKET).chmod(0o666)
        self._listener.listen(MOST_CONNECTIONS)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, name="kb-accept", daemon=True).start()

    def stop(self) -> None:
        """End every connection; nothing is told any more, not even of calls that are being answered. Idempotent."""
        with self._lock:
            self._closed = True
            connections = [self._listener, *self._open]
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def close(self) -> None:
        """Stop, and remove the folder. Idempotent."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                refused = self._closed or len(self._open) >= MOST_CONNECTIONS
                if not refused:
                    self._open.add(connection)
            if refused:
                connection.close()
            else:
                threading.Thread(target=self._serve, args=(connection,), name="kb", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(LONGEST_REQUEST + 1):
                    reply, goes_on = self._reply(line)
                    connection.sendall(orjson.dumps(reply, option=orjson.OPT_APPEND_NEWLINE))
                    if not goes_on:
                        return
        except OSError:
            pass  # the program is gone, or the attempt is over
        finally:
            with self._lock:
                self._open.discard(connection)

    def _reply(self, line: bytes) -> tuple[dict[str, str], bool]:
        if not line.endswith(b"\n"):
            return {"error": f"a request has at most {LONGEST_REQUEST:,} bytes and ends with a line feed"}, False
        try:
            request = orjson.loads(line)
            tool, arguments, program = request["tool"], request["arguments"], request.get("program", "")
            size = len(orjson.dumps(arguments))  # refuses, with TypeError, what is nested very deeply
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return {"error": 'a request is {"tool": …, "arguments": {…}}'}, False
        if not (isinstance(tool, str) and isinstance(arguments, dict) and isinstance(program, str)):
            return {"error": 'a request is {"tool": …, "arguments": {…}}'}, False
        start = time.monotonic()
        try:
            text, failed = self._answer(tool, arguments), False
        except ValueError as error:
            text, failed = str(error), True
        seconds = time.monotonic() - start
        told = arguments if size <= _LONGEST_ARGUMENTS else _beginnings(arguments)
        call = ClientCall(tool[:_LONGEST_NAME], told, program[:_LONGEST_NAME], len(text), seconds, failed)
        with self._lock:
            if not self._closed:
                self._told(call)
        return {"error" if failed else "text": text}, True


def _beginnings(arguments: dict[str, Any]) -> dict[str, Any]:
    texts = (
        (key, value if isinstance(value, str) else orjson.dumps(value).decode()) for key, value in arguments.items()
    )
    return {key[:_LONGEST_NAME]: beginning(text, _LONGEST_VALUE) for key, text in islice(texts, _MOST_ARGUMENTS)}
