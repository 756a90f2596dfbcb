"""`scripted:FILE`: a model whose every word is in a file, for tests and demonstrations.

JSON Lines, one assistant message a line in Chat Completions form:

    {"role": "assistant", "content": "Looking.", "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}], "usage": {…}, "query_id": "q1"}

`usage`, `query_id` and `finish_reason` are optional. A question gets the lines with its `query_id`, or those without
one where it has none of its own. Arguments may be malformed on purpose. Running out is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson

from harness.backbones.chat import parse_reply
from harness.backbones.dialect import Asked
from harness.backbones.faults import Trouble
from harness.errors import BackboneError, HarnessError, UserError
from harness.messages import Reply, Request
from harness.text import count_of

_MESSAGE: Final = ("role", "content", "tool_calls", "refusal", "reasoning_content")
_BESIDE: Final = ("usage", "query_id", "finish_reason")


class ScriptedBackbone:
    """Says the file's turns, the same ones however often a question is asked."""

    def __init__(self, path: Path) -> None:
        """Raises UserError naming file and line for a file that is no script."""
        self.name = f"scripted:{path}"
        self._turns = _load(path)

    def complete(self, request: Request) -> Reply:
        """The next turn of this conversation. Raises BackboneError where the script has no more."""
        query_id = request.key.query_id
        turns = self._turns.get(query_id) or self._turns.get(None, [])
        done = sum(entry.role == "assistant" for entry in request.entries)
        if done >= len(turns):
            raise BackboneError(
                f"{self.name} holds {count_of(len(turns), 'turn')} for '{query_id}' and one more was asked for"
            )
        return say(turns[done], request)


def say(completion: bytes, request: Request, latency: float = 0.0) -> Reply:
    """A reply from a Chat Completions body that didn't come over a network."""
    try:
        parsed = parse_reply(completion, replace(Asked.by(request), tools=frozenset()))
    except (Trouble, HarnessError) as error:
        raise BackboneError(str(error)) from None
    return Reply(parsed.entry, parsed.finish, parsed.usage, latency=latency, notes=parsed.notes)


def completion(message: Mapping[str, Any], finish: str | None = None, usage: Mapping[str, Any] | None = None) -> bytes:
    """A Chat Completions body around one message."""
    reason = finish or ("tool_calls" if message.get("tool_calls") else "stop")
    return orjson.dumps({"choices": [{"message": message, "finish_reason": reason}], "usage": usage})


def _load(path: Path) -> dict[str | None, list[bytes]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(
            f"script {path} can't be read: {error.strerror}", "scripted:FILE names a JSON Lines file"
        ) from None
    turns: dict[str | None, list[bytes]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            query_id, body = _turn(line, f"script {path}, line {number}")
            turns.setdefault(query_id, []).append(body)
    if not turns:
        raise UserError(f"script {path} holds no turns", "one assistant message a line, as JSON")
    return turns


def _turn(line: bytes, where: str) -> tuple[str | None, bytes]:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON: {error}") from None
    if not isinstance(given, dict):
        raise UserError(f"{where}: not an object")
    if unknown := given.keys() - {*_MESSAGE, *_BESIDE}:
        raise UserError(f"{where}: unknown key '{min(unknown)}'", f"known keys: {', '.join((*_MESSAGE, *_BESIDE))}")
    if given.get("role") != "assistant":
        raise UserError(f"{where}: role is {given.get('role')!r}", "each line is an assistant message")
    for key, kinds in (
        ("content", str),
        ("usage", dict),
        ("query_id", str),
        ("finish_reason", str),
        ("tool_calls", list),
    ):
        if given.get(key) is not None and not isinstance(given[key], kinds):
            raise UserError(f"{where}: {key} is {type(given[key]).__name__}, not {kinds.__name__}")
    for call in given.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise UserError(
                f"{where}: a tool call without function.name", "see the Chat Completions form of tool_calls"
            )
        if not isinstance(function.get("arguments"), str):
            raise UserError(
                f"{where}: function.arguments of '{function['name']}' is not text", "it is JSON in a string"
            )
    message = {key: value for key, value in given.items() if key not in _BESIDE}
    return given.get("query_id"), completion(message, given.get("finish_reason"), given.get("usage"))
