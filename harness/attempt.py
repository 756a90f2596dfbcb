"""What an attempt is given and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.answer import Answer, Nodes, Parsed
from harness.ledger import StopReason
from harness.messages import AttemptKey, Backbone
from harness.modes import Mode
from harness.slot import NoSlot, SandboxSlot
from harness.tools import Toolbox


@dataclass(frozen=True)
class Task:
    """One attempt at one question, with all that it needs.

    `window` is the model's context window in tokens; `resolve` turns an answer's values into ids where it isn't given
    in ids.
    """

    key: AttemptKey
    query: str
    mode: Mode
    nodes: Nodes
    toolbox: Toolbox
    backbone: Backbone
    window: int | None
    slot: SandboxSlot | NoSlot
    resolve: Callable[[Parsed], Parsed] = lambda parsed: parsed


@dataclass
class Outcome:
    """How an attempt ended."""

    stop_reason: StopReason
    answer: Answer | None = None
    limit: str | None = None
    error: str | None = None
    failure: Exception | None = None  # what `error` says, for who must tell its kinds apart
    counts: dict[str, int] = field(default_factory=dict)
