"""`replay:RUN` and `demo`: a saved run's words against the live sandbox.

The model's turns come from recorded trajectories; what it calls is executed anew. Each result shown is compared with
the recorded one, and a difference becomes a note of the next reply. A reply's usage is the recorded one, so that the
context is cleared where it was then; nothing is billed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, get_args

import orjson

from harness.errors import BackboneError, UserError
from harness.events import Reading
from harness.messages import AttemptKey, Entry, FinishReason, Reply, Request, ToolCall, Usage
from harness.text import count_of

EXCERPT: Final = 80  # characters of either text from where they differ


@dataclass(frozen=True)
class Needs:
    """What recordings need to mean anything: the tools that they call and, where they are named, a graph and the
    sandbox of a mode. `usual` says how they are used, for a hint."""

    tools: frozenset[str] = frozenset()
    graph: str | None = None
    mode: str | None = None
    usual: str = "replay a run in a mode with its tools, on the questions that it was made with"


@dataclass(frozen=True)
class _Recording:
    """One attempt: what the model said, turn by turn, and what each call returned."""

    replies: list[Reply] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)  # call id -> text


class ReplayBackbone:
    """Says what was said before."""

    replays = True  # its notes compare each result with the recorded one

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        notice: Callable[[str], None] = lambda _: None,
        needs: Needs = Needs(),
    ) -> None:
        """Reads the first event of each trajectory. Raises UserError where one isn't a trajectory.

        One whose first line is damaged, so that its task isn't known, is left out. `notice` is told of damaged lines.
        `needs` is all that isn't in the recordings.
        """
        self.name = name
        self._notice = notice
        starts = [(start, path) for path in files if (start := _start(path, notice)) is not None]
        self._files = {start.key: path for start, path in starts}
        self._asked = {start.key.query_id: start.query for start, _ in starts}
        self.needs = replace(needs, tools=frozenset(tool for start, _ in starts for tool in start.tools))
        self._loaded: dict[AttemptKey, _Recording] = {}
        self._lock = threading.Lock()

    def knows(self, query_id: str, query: str) -> bool:
        """Whether there is a recording of this question."""
        return self._asked.get(query_id) == query

    def complete(self, request: Request) -> Reply:
        """The recorded reply at this point of the conversation. Raises BackboneError where there is none."""
        key = self._recorded(request.key)
        recording = self._load(key)
        if self._asked[key.query_id] != request.query:
            raise BackboneError(f"{self.name}: the recording of '{key.query_id}' answers another question")
        done = sum(entry.role == "assistant" for entry in request.entries)
        if done >= len(recording.replies):
            raise BackboneError(f"{self.name}: the recording of '{key.query_id}' ends after {count_of(done, 'turn')}")
        if done == len(recording.replies) - 1:
            with self._lock:
                self._loaded.pop(key, None)
        return replace(recording.replies[done], notes=tuple(_differences(request, recording)))

    def _recorded(self, key: AttemptKey) -> AttemptKey:
        """The recording for an attempt: its own, else the last one of the same agent, else the first agent's."""
        if key in self._files:
            return key
        candidates = [known for known in self._files if known.query_id == key.query_id]
        if not candidates:
            raise BackboneError(f"{self.name} has no recording of question '{key.query_id}'")
        return max(candidates, key=lambda known: (known.agent == key.agent, -known.agent, known.attempt))

    def _load(self, key: AttemptKey) -> _Recording:
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = _read(self._files[key], self._notice)
            return self._loaded[key]


def recordings_of_run(run: Path) -> list[Path]:
    """The trajectories of a run folder. Raises UserError where there are none."""
    files = sorted((run / "trajectories").glob("*/*.jsonl"))
    if not files:
        raise UserError(f"no trajectories to replay in '{run}'", "replay:RUN names the folder of a saved run")
    return files


def recordings_of_demo() -> list[Path]:
    """The recordings that come with the embedded graph. Raises UserError where this installation has none."""
    folder = Path(str(resources.files("harness") / "demo"))
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UserError("this installation holds no demo recordings", "install the package anew")
    return files


def window_of_run(run: Path) -> int | None:
    """The context window that a run's manifest gives for its model, in tokens; None where it says nothing."""
    try:
        window = orjson.loads((run / "manifest.json").read_bytes())["model"]["window"]
    except (OSError, orjson.JSONDecodeError, LookupError, TypeError):
        return None
    return window if isinstance(window, int) and window > 0 else None


@dataclass(frozen=True)
class _Start:
    """How a trajectory begins."""

    key: AttemptKey
    query: str
    tools: tuple[str, ...]


def _start(path: Path, notice: Callable[[str], None]) -> _Start | None:
    """Which attempt is recorded, and of what; None, which `notice` is told, where a damaged line says it."""
    reading = Reading(path)
    try:
        _, start = next(iter(reading), (0, {}))
        if start.get("type") == "start":
            key = AttemptKey(start["query_id"], start["agent"], start["attempt"])
            return _Start(key, start["query"], tuple(tool["name"] for tool in start["tools"]))
    except (OSError, ValueError):
        pass
    else:
        if start and reading.damaged:
            notice(f"recording '{path}' is left out: line {reading.damaged[0].line}: {reading.damaged[0].why}")
            return None
    raise UserError(f"'{path}' is not a trajectory", "it begins with a start event")


def _read(path: Path, notice: Callable[[str], None]) -> _Recording:
    """A recording. Raises BackboneError where it can't be read, or a damaged line of it may have held a reply."""
    reading = Reading(path)
    try:
        events = [event for _, event in reading]
        recording = _Recording()
        for event in events:
            if event["type"] == "reply":
                recording.replies.append(_reply(event))
            elif event["type"] == "result":
                recording.results[event["call_id"]] = event["text"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BackboneError(f"recording '{path}' can't be read: {error}") from None
    turns = range(1, max((event.get("turn", 0) for event in events), default=0) + 1)
    missing = set(turns) - {event["turn"] for event in events if event["type"] == "reply"}
    if reading.damaged and missing:
        at, why = reading.damaged[0].line, reading.damaged[0].why
        raise BackboneError(f"recording '{path}' can't be read: line {at}: {why}; turn {min(missing)} lacks its reply")
    if reading.damaged:
        notice(f"recording '{path}': {count_of(len(reading.damaged), 'line')} can't be read")
    return recording


def _reply(event: Mapping[str, Any]) -> Reply:
    """A recorded reply. Raises LookupError, TypeError or ValueError for an event that is none."""
    if event["finish"] not in get_args(FinishReason):
        raise ValueError(f"finish is {event['finish']!r}")
    entry = Entry("assistant", str(event["text"]), tuple(ToolCall(**call) for call in event["calls"]), raw=event["raw"])
    return Reply(entry, event["finish"], Usage(**event["usage"]))


def _differences(request: Request, recording: _Recording) -> Iterator[dict[str, Any]]:
    """Compare the results since the last reply, in the order shown."""
    newest = itertools.takewhile(lambda entry: entry.role != "assistant", reversed(request.entries))
    for entry in reversed(list(newest)):
        recorded = recording.results.get(entry.call_id)
        if entry.role == "tool" and recorded != entry.text:
            yield _difference(request.turn - 1, entry, recorded)


def _difference(turn: int, entry: Entry, recorded: str | None) -> dict[str, Any]:
    note: dict[str, Any] = {"kind": "replay_difference", "turn": turn, "call_id": entry.call_id}
    if recorded is None:
        return {**note, "position": 0, "recorded": None, "shown": entry.text[:EXCERPT]}
    pairs = enumerate(zip(recorded, entry.text, strict=False))
    at = next((i for i, (old, new) in pairs if old != new), min(len(recorded), len(entry.text)))
    return {**note, "position": at, "recorded": recorded[at : at + EXCERPT], "shown": entry.text[at : at + EXCERPT]}
