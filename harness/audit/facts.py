"""What an audit knows of one attempt after one pass over its trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from harness.audit.programs import Program
from harness.audit.tally import Place
from harness.ledger import AttemptRecord

# What a call is. Kinds of bash calls by the strongest thing in them: Python, then search, then reading.
Kind = Literal["python", "search", "read", "other", "graph_search", "graph_neighbours", "graph_record", "answer"]

# Where an id was shown by the time of the answer: in an output that is still there; only in outputs that had become
# placeholders; only in a part of an output that was cut away (the agent never saw it); nowhere.
SightingState = Literal["shown", "cleared", "cut", "never"]


@dataclass(frozen=True)
class CallFacts:
    """One tool call. `line` is its result's in the trajectory; `failed`: non-zero exit, a limit, or a traceback."""

    line: int
    turn: int
    tool: str
    kind: Kind
    bash: bool
    python: bool
    failed: bool
    error: str | None
    termination: str | None
    programs: tuple[Program, ...]
    reruns: int
    suspicions: frozenset[str]
    sandbox_failures: frozenset[str]
    repeated: bool
    cut: bool


class GraphCall(NamedTuple):
    """A call of one of the graph's tools, by the model or by a program of its attempt. `line` is where it stands."""

    line: int
    kind: Kind
    program: bool
    failed: bool


@dataclass(frozen=True)
class Sighting:
    """A node id and where it first appeared in what the agent saw: turn, line, byte in that text (UTF-8).

    Of one that stood only in parts that were cut away, turn and line are those of the result that was cut.
    `named_before`: the agent had written the id itself before any output showed it.
    """

    node: int
    state: SightingState
    turn: int = 0
    line: int = 0
    offset: int = 0
    named_before: bool = False

    @property
    def seen(self) -> bool:
        """Whether the agent saw it at all."""
        return self.state in ("shown", "cleared")


@dataclass
class AttemptFacts:
    """One attempt. `counted`: the last one of its question and agent, which its score is about.

    `gold` is None where it isn't known. Lists of (line, …) point into the trajectory. `read_later` and `read_again`
    say of each spilled or cleared result whether the agent came back to it.
    """

    file: str
    query_id: str
    agent: int
    attempt: int
    counted: bool
    record: AttemptRecord | None
    gold: tuple[int, ...] | None
    hit: bool = False
    unreadable: bool = False  # not read to its end
    lines: int = 0
    bytes: int = 0
    mode: str = ""
    prompt: str = ""  # digest of the prompt without the question
    tools: str = ""  # digest of the tools' definitions
    calls: list[CallFacts] = field(default_factory=list)
    graph_calls: list[GraphCall] = field(default_factory=list)
    answer_line: int = 0
    answer: tuple[Sighting, ...] = ()
    gold_sightings: tuple[Sighting, ...] = ()
    canaries: list[int] = field(default_factory=list)
    answer_keys: list[int] = field(default_factory=list)
    gold_lists: list[int] = field(default_factory=list)
    loops: list[int] = field(default_factory=list)
    programs_asked: list[tuple[int, bool]] = field(default_factory=list)  # in a mode that allows one: whether it ran
    read_later: list[tuple[int, bool]] = field(default_factory=list)
    read_again: list[tuple[int, bool]] = field(default_factory=list)
    requests_with_cache: int = 0
    cache_resets: list[int] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)  # lines that hold no event, and why

    @property
    def is_partial(self) -> bool:
        """Whether there is more in the trajectory than could be read: then what was not seen may have been there."""
        return self.unreadable or bool(self.damaged)

    @property
    def programs(self) -> list[tuple[CallFacts, Program]]:
        """Every program with the call that first ran it, in order."""
        return [(call, program) for call in self.calls for program in call.programs]

    @property
    def program_calls(self) -> list[GraphCall]:
        """The calls of the graph's tools that programs made."""
        return [call for call in self.graph_calls if call.program]

    @property
    def failed(self) -> bool:
        """Whether the attempt failed for reasons that are neither the agent's nor the model's, or was cut short."""
        return self.record is None or self.record.is_infrastructure

    def places(self, lines: list[int], what: str = "") -> list[Place]:
        """Pointers to lines of this trajectory."""
        return [Place(self.file, line, what) for line in lines]
