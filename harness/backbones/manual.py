"""`manual`: a person, or a program at the other end of a pipe, is the model.

What the model would see since its last turn is written to standard error: the prompt and the tools at first, then each
result. The line `turn N>` asks for a turn, which is read from standard input as lines of UTF-8, in the forms that
`HELP` lists. Blank lines are passed over. When the input ends, so does the attempt. Commands may be sent ahead of the
results.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from harness.backbones.scripted import completion, say
from harness.errors import BackboneError
from harness.messages import Entry, Reply, Request

HELP: Final = """\
rg -c '"gene"' /graph/nodes     any other line: a command for the tool bash
<<END                           a command of many lines, up to a line that is END (any word will do)
!file PATH                      a command from a file on this machine
!timeout SECONDS                a time limit for the command that follows
read PATH [OFFSET [LIMIT]]      the tool read
!call NAME {"key": …}           any tool, with its arguments as JSON
# some words                    said along with the call or answer that follows
ANSWER: [12, 34]                the answer: ends the question
!help                           this list
"""
Call = tuple[str, dict[str, Any]]


class Mistyped(Exception):
    """A line that means nothing; the person is told and asked again."""


class ManualBackbone:
    """Reads turns from a descriptor, by default standard input."""

    name = "manual"
    interactive = True  # it has the terminal to itself: one question at a time, no progress bar

    def __init__(self, source: int | None = None, write: Callable[[str], object] | None = None) -> None:
        self._lines = _lines(sys.stdin.fileno() if source is None else source)
        self._write = write or _to_stderr
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Reply:
        """Show what is new and read a turn. Raises BackboneError when the input has ended."""
        with self._lock:
            self._show(request)
            began = time.monotonic()
            message = self._turn(request)
            return say(completion(message), request, latency=time.monotonic() - began)

    def _show(self, request: Request) -> None:
        since = max((i + 1 for i, entry in enumerate(request.entries) if entry.role == "assistant"), default=0)
        if since == 0:
            self._write(f"\n=== question {request.key.query_id}\n")
        for entry in request.entries[since:]:
            self._write(_shown(entry))
        if since == 0:
            self._write(f"--- tools: {', '.join(tool.name for tool in request.tools)} (!help: how to type a turn)\n")

    def _turn(self, request: Request) -> dict[str, Any]:
        """Read one turn as a Chat Completions message."""
        words: list[str] = []
        timeout: dict[str, Any] = {}
        while True:
            self._write(f"turn {request.turn}> ")
            line = self._line()
            try:
                if line.startswith("#"):
                    words.append(line[1:].strip())
                elif line.startswith("ANSWER:"):
                    return _message(request, [*words, line])
                elif line.startswith("!timeout"):
                    timeout = {"timeout": _number(line.removeprefix("!timeout"))}
                elif line.strip() == "!help":
                    self._write(HELP)
                elif line.strip():
                    name, arguments = self._call(line)
                    if name == "bash":
                        arguments |= timeout
                    return _message(request, words, (name, arguments))
            except Mistyped as mistyped:
                self._write(f"{mistyped}\n")

    def _call(self, line: str) -> Call:
        word, _, rest = line.strip().partition(" ")
        if word.startswith("<<") and len(word) > 2 and not rest:
            return "bash", {"command": "\n".join(iter(self._line, word[2:]))}
        if word == "!file":
            return "bash", {"command": _contents(rest.strip())}
        if word == "!call":
            return _any_call(rest)
        if word.startswith("!"):
            raise Mistyped(f"no such entry: {word}; !help lists them")
        if word == "read":
            return "read", _read_arguments(rest)
        return "bash", {"command": line}

    def _line(self) -> str:
        try:
            return next(self._lines)
        except StopIteration:
            raise BackboneError("the input of the manual model has ended") from None


def _message(request: Request, words: list[str], call: Call | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(words) or None}
    if call is not None:
        name, arguments = call
        known = [tool.name for tool in request.tools]
        if request.tool_choice == "none" or name not in known:
            usable = ", ".join(known) if known and request.tool_choice != "none" else "none"
            raise Mistyped(f"there is no tool '{name}' now; tools: {usable}")
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        message["tool_calls"] = [{"id": f"call_{request.turn}", "type": "function", "function": function}]
    return message


def _shown(entry: Entry) -> str:
    return f"--- {entry.call_id or 'message'}\n{entry.text}\n"


def _any_call(text: str) -> Call:
    name, _, arguments = text.strip().partition(" ")
    try:
        parsed = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError as error:
        raise Mistyped(f"arguments are not JSON: {error}") from None
    if not name or not isinstance(parsed, dict):
        raise Mistyped('!call NAME {"key": value}')
    return name, parsed


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        path, *numbers = shlex.split(text)
        given = dict(zip(("offset", "limit"), (int(number) for number in numbers), strict=False))
    except ValueError:
        raise Mistyped("read PATH [OFFSET [LIMIT]]; for bash's own read, use <<END") from None
    if len(numbers) > 2:
        raise Mistyped("read PATH [OFFSET [LIMIT]]; for bash's own read, use <<END")
    return {"path": path, **given}


def _contents(name: str) -> str:
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise Mistyped(f"can't read '{name}': {error}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Mistyped("!timeout SECONDS") from None


def _lines(source: int) -> Iterator[str]:
    """Lines of a descriptor. Not through sys.stdin, whose lock a reader left behind would hold at exit."""
    pending = b""
    while data := os.read(source, 65536):
        *whole, pending = (pending + data).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removesuffix("\r")
    if pending:
        yield pending.decode("utf-8", "replace")


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
