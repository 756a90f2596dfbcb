"""What a run is given, who is told of it, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import sandbox
from exporter import Export
from harness.budget import Budget
from harness.ledger import AttemptRecord, RetryPolicy
from harness.messages import Backbone, Usage
from harness.modes import Mode
from harness.prompt import prompt_hashes
from harness.questions import Question, QuestionSet
from harness.rundir import versions
from harness.setup import sandbox_spec


class Listener(Protocol):
    """Who is told how a run goes on. Calls come from many threads, never two at once."""

    def started(self, total: int, done: int) -> None:
        """`total` attempts are due in all, `done` of them already ended in an earlier session."""
        ...

    def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
        """An attempt ended; `record` is its line in the ledger."""
        ...

    def notice(self, text: str) -> None:
        """Something the user should know."""
        ...

    def closed(self) -> None:
        """Nothing more will come."""
        ...


@dataclass(frozen=True)
class RunConfig:
    """All that a run needs. `profile` is the model's description for the manifest (no key in it).

    `sandboxes` may be None in modes whose tools need no sandbox. `window` is the context window in tokens, None if
    unknown; `cost_of` prices one request's usage;
    `names`: which of `servers.KEYS` the command sets itself, so that a resume may have them changed;
    `memory_cap` bounds the memory that open sandboxes really use together, bytes.
    """

    graph: str
    export: Export
    mode: Mode
    profile: dict[str, Any]
    backbone: Backbone
    sandboxes: sandbox.Backend | None
    questions: QuestionSet
    out: Path
    command: Sequence[str] = ()
    workers: int = 1
    retry: RetryPolicy = "infra"
    resume: bool = False
    window: int | None = None
    cost_of: Callable[[Usage], float | None] = lambda _: None
    budget: Budget = field(default_factory=Budget)
    memory_cap: int | None = None
    names: Collection[str] = ()

    @cached_property
    def served(self) -> dict[str, Any]:
        """What the model's server says of its weights, asked once; empty where it says nothing or there is none."""
        ask: Callable[[], dict[str, Any]] = getattr(self.backbone, "served", dict)
        return ask()

    def manifest(self) -> dict[str, Any]:
        """What the run folder records of this configuration."""
        return {
            "graph": self.graph,
            "export": {
                "path": str(self.export.path.resolve()),
                "digest": self.export.digest,
                "nodes": self.export.node_count,
                "edges": self.export.schema["edges"],
                "source": self.export.manifest["source"],
                "queries": self.export.manifest["queries"],
            },
            "mode": self.mode.as_dict(),
            "prompts": prompt_hashes(self.mode, self.export.schema),
            "model": self.profile,
            "served": self.served,
            "questions": {
                "source": self.questions.source,
                "sha256": self.questions.sha256,
                "ids": [question.id for question in self.questions.questions],
            },
            "workers": self.workers,
            "retry": self.retry,
            "budget": vars(self.budget),
            "sandbox": self.sandboxes.describe() if self.sandboxes else {"kind": "none"},
            "command": list(self.command),
            "versions": versions(),
        }

    def spec(self, labels: Mapping[str, str], mounts: Mapping[str, Path] | None = None) -> sandbox.Spec:
        """The sandbox that an attempt of this run gets; `mounts` are shown besides the graph."""
        return sandbox_spec(self.export, self.mode.view, self.mode.sandbox, labels, mounts)


@dataclass(frozen=True)
class RunOutcome:
    """What `execute` leaves behind: per (query, agent) how many are scored, failed for infrastructure, still open."""

    scored: int
    failed: int
    open: int
    interrupted: bool
    limit: str | None = None  # of the run, in words, where it kept attempts from starting
