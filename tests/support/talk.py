"""Short ways to make requests and profiles for backbone tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backbones.profiles import Profile
from harness.messages import AttemptKey, Entry, Reply, Request, ToolSpec

TOOLS = (
    ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}),
    ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
)


def profile(url: str, **values: Any) -> Profile:
    """A profile for a scripted server: no key, waits too short to notice."""
    return Profile(
        **{"name": "scripted", "model": "m", "endpoint": url, "key_variable": None, "backoff": 0.001} | values
    )


def user(text: str = "question") -> Entry:
    """The prompt."""
    return Entry("user", text)


def result(call_id: str, text: str = "output") -> Entry:
    """A tool's result."""
    return Entry("tool", text, call_id=call_id)


def request(
    *entries: Entry, turn: int = 1, query_id: str = "q1", agent: int = 0, attempt: int = 0, **values: Any
) -> Request:
    """A request with two tools."""
    given: dict[str, Any] = {"query": "question", "tools": TOOLS} | values
    return Request(AttemptKey(query_id, agent, attempt), turn, entries=entries or (user(),), **given)


def answer_calls(reply: Reply, texts: Sequence[str] = ()) -> list[Entry]:
    """The reply and a result for each of its calls."""
    texts = texts or ["output"] * len(reply.entry.calls)
    return [reply.entry, *(result(call.id, text) for call, text in zip(reply.entry.calls, texts, strict=True))]
