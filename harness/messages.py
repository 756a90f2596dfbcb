"""What passes between the loop and a backbone: entries of a conversation, requests, replies, usage.

A conversation is a tuple of entries in order. An entry is immutable and provider-neutral; a backbone turns each
into its wire form once and keeps it in `Entry.wire`, so a request costs no more at turn 200 than at turn 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]


@dataclass(frozen=True)
class ToolCall:
    """One call the model asked for. `arguments` is the model's own text, whatever it is."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, eq=False)
class Entry:
    """One item of the conversation.

    role "system" or "user": `text`. role "assistant": `text`, `calls`, and `raw`, the provider's own message (or list
    of items), re-sent as it came. role "tool": the result `text` of the call `call_id`.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    raw: Any = None
    call_id: str = ""
    wire: dict[str, bytes] = field(default_factory=dict, repr=False)  # wire format -> bytes, filled by backbones


@dataclass(frozen=True)
class Usage:
    """Tokens of one request as the provider reports them; None where it says nothing.

    `input` includes `cached`; `output` includes `reasoning`.
    """

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None


class AttemptKey(NamedTuple):
    """Which attempt a request belongs to. `agent` and `attempt` count from 0."""

    query_id: str
    agent: int
    attempt: int


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One question to the model. `turn` counts from 1. `time_left` is seconds of working time, for timeouts."""

    key: AttemptKey
    turn: int
    query: str
    entries: Sequence[Entry]
    tools: tuple[ToolSpec, ...]
    tool_choice: Literal["auto", "required", "none"] = "auto"
    time_left: float | None = None


@dataclass(frozen=True)
class Reply:
    """The model's answer to one request.

    `entry` is what joins the conversation. `waited` is seconds spent on rate limits, back-off and queues (not
    working time), `latency` the seconds of the successful request, `tries` how many requests were sent.
    `notes` are facts for the trajectory (repairs, replay differences), each with a "kind".
    """

    entry: Entry
    finish: FinishReason
    usage: Usage = Usage()
    waited: float = 0.0
    latency: float = 0.0
    tries: int = 1
    notes: tuple[Mapping[str, Any], ...] = ()


class Backbone(Protocol):
    """A model. Stateless between calls as far as the loop can tell; called from many threads at once."""

    name: str

    def complete(self, request: Request) -> Reply:
        """Ask the model. Raises BackboneError (and its kinds) or ContextOverflow; nothing else is handled."""
        ...
