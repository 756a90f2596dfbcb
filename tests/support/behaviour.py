"""What a scripted endpoint does with a request, and scripts of such behaviours."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        said = [bool(m.get("role") != "user" and m.get("type") != _OUTPUT) for m in messages]  # one reply is many items
        return 1 + sum(now and not before for before, now in itertools.pairwise([False, *said]))

    @property
    def results(self) -> list[str]:
        """Tool results in the request, oldest first."""
        found = []
        for message in self.messages:
            text = message.get("output", message.get("content")) or ""
            if message.get("type") == _OUTPUT or message.get("role") == "tool":
                found.append(text)
            elif message.get("role") == "user" and text.startswith("Result of "):  # where tools are in the prompt
                found.append(text.partition("\n")[2])
        return found


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
