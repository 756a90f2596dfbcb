"""What an attempt is given and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.answer import Answer, Nodes, Parsed
from harness.ledger import StopReason
from harness.messages import AttemptKey, Backbone
from harness.modes import Mode
from harness.prompt import prompt_for
from harness.slot import NoSlot, SandboxSlot
from harness.tools import Toolbox
from harness.tools.ark import Selection


@dataclass(frozen=True)
class Task:
    """One attempt at one question, with all that it needs.

    `window` is the model's context window in tokens; `resolve` turns an answer's values into ids where it isn't given
    in ids; `selection` holds what has been chosen so far in modes that answer that way.
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
    system: str = ""
    selection: Selection | None = None

    @property
    def reads_messages(self) -> bool:
        """Whether an answer may stand in a message: not where it is what was selected."""
        return self.selection is None

    def opening(self) -> dict[str, Any]:
        """What the trajectory's first event says: the task as the model is given it."""
        specs = self.toolbox.specs
        tools = [{"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs]
        system = {"system": self.system} if self.system else {}
        prompt = prompt_for(self.mode, self.query)
        return {
            **self.key._asdict(),
            "query": self.query,
            "mode": self.mode.name,
            "prompt": prompt,
            "tools": tools,
            **system,
        }


@dataclass
class Outcome:
    """How an attempt ended."""

    stop_reason: StopReason
    answer: Answer | None = None
    limit: str | None = None
    error: str | None = None
    failure: Exception | None = None  # what `error` says, for who must tell its kinds apart
    counts: dict[str, int] = field(default_factory=dict)
