"""A model whose words are scripted in the test, and short ways to write them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import orjson

from harness.messages import Entry, FinishReason, Reply, Request, ToolCall, Usage

Turn = Reply | Exception | Callable[[Request], Reply]
_ids = itertools.count(1)


def bash(command: str, timeout: float | None = None) -> ToolCall:
    """A call of the tool bash."""
    arguments: dict[str, object] = {"command": command} | ({"timeout": timeout} if timeout else {})
    return ToolCall(f"call_{next(_ids)}", "bash", orjson.dumps(arguments).decode())


def call(name: str, arguments: str) -> ToolCall:
    """A call of any tool with arguments of any kind."""
    return ToolCall(f"call_{next(_ids)}", name, arguments)


def calls(*wanted: ToolCall, text: str = "", finish: FinishReason = "tool_calls", usage: Usage | None = None) -> Reply:
    """A reply that calls tools."""
    return Reply(Entry("assistant", text, wanted), finish, usage or Usage(100, 0, 10, 0))


def says(text: str, finish: FinishReason = "stop", usage: Usage | None = None) -> Reply:
    """A reply without calls."""
    return Reply(Entry("assistant", text), finish, usage or Usage(100, 0, 10, 0))


class Words:
    """A backbone that says its turns in order, for every attempt anew; remembers the requests it was sent."""

    name = "words"

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            number = sum(one.key == request.key for one in self.requests)
        turn = self.turns[number - 1]
        if isinstance(turn, Exception):
            raise turn
        return turn if isinstance(turn, Reply) else turn(request)
