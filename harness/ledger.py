"""attempts.jsonl: an append-only ledger with one line per attempt; what a run has done is a fold over it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from harness.errors import EndpointUnreached, RequestRejected
from harness.files import append_whole
from harness.text import shorten

SCHEMA_VERSION = 1
LEDGER = "attempts.jsonl"

StopReason = Literal[
    "answered",
    "no_answer",
    "refused",
    "turn_limit",
    "token_limit",
    "cost_limit",
    "context_overflow",
    "format_errors",
    "time_limit",
    "backbone_error",
    "sandbox_lost",
    "interrupted",
]
STOP_REASONS: tuple[StopReason, ...] = get_args(StopReason)
INFRASTRUCTURE: frozenset[StopReason] = frozenset({"backbone_error", "sandbox_lost", "interrupted"})

RetryPolicy = Literal["infra", "timeout", "none"]
_RETRIED: dict[RetryPolicy, frozenset[StopReason]] = {
    "infra": frozenset({"backbone_error", "sandbox_lost"}),
    "timeout": frozenset({"backbone_error", "sandbox_lost", "time_limit"}),
    "none": frozenset(),
}
_MOST_RETRIES = 2
# In a record's counts: the endpoint did not take a request as it was, or was not there.
_NEVER_ASKED = frozenset({RequestRejected.counted_as, EndpointUnreached.counted_as})
_MOST_LOST_IN_CALL = 2  # attempts whose sandbox died under a command of the agent's: the first and one retry


@dataclass(frozen=True)
class Times:
    """Seconds. wall = model + waiting + sandbox + queue + harness; working = wall - waiting - queue."""

    wall: float = 0.0
    working: float = 0.0
    model: float = 0.0
    waiting: float = 0.0  # rate limits and back-off
    sandbox: float = 0.0  # commands, and waiting for the sandbox to be ready
    queue: float = 0.0  # waiting for memory to open a sandbox
    harness: float = 0.0


@dataclass(frozen=True)
class AttemptRecord:
    """One line of the ledger. `ids` is the validated answer (possibly of a stop that isn't `answered`).

    `limit` names a limit that was reached although the attempt answered in its last turn. `usage` has the four
    token classes, null where the provider didn't say. `cost` is null where prices are unknown.
    """

    query_id: str
    agent: int
    attempt: int
    stop_reason: StopReason
    ids: tuple[int, ...] = ()
    limit: str | None = None
    error: str | None = None
    turns: int = 0
    usage: dict[str, int | None] = field(default_factory=dict)
    cost: float | None = None
    times: Times = field(default_factory=Times)
    started: float = 0.0
    finished: float = 0.0
    trajectory: str = ""
    answer: dict[str, Any] = field(default_factory=dict)  # {"repairs": [...], "rejected": [...]}
    counts: dict[str, int] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def as_line(self) -> bytes:
        """The record as its line in the ledger."""
        return orjson.dumps(asdict(self), option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> AttemptRecord:
        """Read a line back; unknown keys (of a later version) are ignored. Raises ValueError or TypeError."""
        known = {key: value for key, value in table.items() if key in cls.__dataclass_fields__}
        for key, value in known.items():
            if not _fits(key, value):
                raise ValueError(f"its {key} can't be {shorten(repr(value), _SHOWN)}")
        return cls(**{**known, "ids": tuple(known.get("ids", ())), "times": Times(**known.get("times", {}))})

    @property
    def is_infrastructure(self) -> bool:
        """Whether this attempt failed for reasons that are neither the agent's nor the model's."""
        return self.stop_reason in INFRASTRUCTURE

    @property
    def was_never_asked(self) -> bool:
        """Whether the endpoint did not take a request of this attempt as it was, or was not there."""
        return any(self.counts.get(name) for name in _NEVER_ASKED)


# What stands in the fields of a line: the type of a value, or of the values that a list or an object holds.
_PLAIN = {
    "query_id": str, "agent": int, "attempt": int, "limit": str | None, "error": str | None, "turns": int,
    "cost": float | int | None, "started": float | int, "finished": float | int, "trajectory": str,
}  # fmt: skip
_HELD = {"usage": int | None, "times": float | int, "counts": int, "answer": list}
_SHOWN = 40  # characters of a value that is refused


def _fits(key: str, value: object) -> bool:
    """Whether a field can hold a value that a damaged or foreign file has for it."""
    if key == "stop_reason":
        return value in STOP_REASONS
    if key == "ids":
        return isinstance(value, list) and all(isinstance(node, int) for node in value)
    if key in _HELD:
        return isinstance(value, dict) and all(isinstance(held, _HELD[key]) for held in value.values())
    return key not in _PLAIN or isinstance(value, _PLAIN[key])


class Ledger:
    """The ledger of a run that is being written. Thread-safe; one process at a time (the run folder's lock)."""

    def __init__(self, run: Path) -> None:
        self._path = run / LEDGER
        self._lock = threading.Lock()

    def set_aside_torn_line(self) -> str | None:
        """Move an unfinished last line, left by a crash, to a file of its own; returns that file's name."""
        data = self._path.read_bytes() if self._path.exists() else b""
        end = data.rfind(b"\n") + 1
        if end == len(data):
            return None
        number = 1 + sum(1 for _ in self._path.parent.glob(f"{LEDGER}.torn-*"))
        torn = self._path.with_name(f"{LEDGER}.torn-{number}")
        torn.write_bytes(data[end:])
        os.truncate(self._path, end)
        return torn.name

    def append(self, record: AttemptRecord) -> None:
        """Add one line and put it on the disk."""
        with self._lock, self._path.open("ab", buffering=0) as file:
            append_whole(file.fileno(), record.as_line())
            os.fsync(file.fileno())


def read_ledger(run: Path) -> list[AttemptRecord]:
    """All whole lines of a run's ledger, in order. Raises ValueError naming file and line for a bad one."""
    path = run / LEDGER
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        try:
            table = orjson.loads(line)
            if not isinstance(table, dict):
                raise TypeError("no JSON object")
            records.append(AttemptRecord.from_table(table))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not an attempt: {error}") from None
    return records


def is_torn(run: Path) -> bool:
    """Whether the ledger's last line has no end: a crash's doing, and no attempt for `read_ledger`."""
    try:
        with (run / LEDGER).open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"
    except OSError:
        return False


@dataclass(frozen=True)
class AgentState:
    """All attempts of one agent at one question, in order."""

    query_id: str
    agent: int
    records: tuple[AttemptRecord, ...] = ()

    @property
    def last(self) -> AttemptRecord | None:
        """The attempt that counts."""
        return self.records[-1] if self.records else None

    @property
    def first(self) -> AttemptRecord | None:
        """The first attempt that was not cut short by a crash: for first-attempt figures."""
        whole = [record for record in self.records if record.stop_reason != "interrupted"]
        return whole[0] if whole else None

    def is_open(self, policy: RetryPolicy, *, anew: bool = False) -> bool:
        """Whether another attempt is due; `anew` at the start of a session, when the endpoint may be another.

        An interrupted attempt is asked anew under any policy and is not counted as a retry. A sandbox lost while a
        command of the agent's ran is retried once at most. One whose request the endpoint rejected, or that found no
        endpoint, is asked again by a later session alone, and is not counted as a retry either.
        """
        last = self.last
        if last is None or last.stop_reason == "interrupted":
            return True
        if last.stop_reason not in _RETRIED[policy]:
            return False
        if last.was_never_asked:
            return anew
        if sum(record.counts.get("lost_in_call", 0) for record in self.records) >= _MOST_LOST_IN_CALL:
            return False
        counted = [r for r in self.records if r.stop_reason != "interrupted" and not r.was_never_asked]
        return len(counted) <= _MOST_RETRIES


def fold(records: Iterable[AttemptRecord]) -> dict[tuple[str, int], AgentState]:
    """The state of every (query id, agent) that the ledger knows."""
    grouped: dict[tuple[str, int], list[AttemptRecord]] = {}
    for record in records:
        grouped.setdefault((record.query_id, record.agent), []).append(record)
    return {key: AgentState(*key, tuple(group)) for key, group in grouped.items()}


def total_usage(usages: Sequence[dict[str, int | None]]) -> dict[str, int | None]:
    """Sum per class; null only where no request reported that class."""
    classes = ("input", "cached", "output", "reasoning")
    sums: dict[str, int | None] = {}
    for name in classes:
        known = [value for usage in usages if (value := usage.get(name)) is not None]
        sums[name] = sum(known) if known else None
    return sums
