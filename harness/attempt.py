"""What an attempt is given and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.answer import Answer, Nodes
from harness.ledger import StopReason
from harness.messages import AttemptKey, Backbone
from harness.modes import Mode
from harness.slot import SandboxSlot
from harness.tools import Toolbox


@dataclass(frozen=True)
class Task:
    """One attempt at one question, with all that it needs. `window` is the model's context window in tokens."""

    key: AttemptKey
    query: str
    mode: Mode
    nodes: Nodes
    toolbox: Toolbox
    backbone: Backbone
    window: int | None
    slot: SandboxSlot


@dataclass
class Outcome:
    """How an attempt ended."""

    stop_reason: StopReason
    answer: Answer | None = None
    limit: str | None = None
    error: str | None = None
    failure: Exception | None = None  # what `error` says, for who must tell its kinds apart
    counts: dict[str, int] = field(default_factory=dict)
