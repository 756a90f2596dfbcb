"""The conversation and its size: what each request shows, and when old results give way to placeholders.

History is never edited: `Conversation` keeps every entry, and `view()` derives what a request shows. Clearing
happens in batches between two marks, since every change of an early entry throws the provider's prompt cache away
from there on. Calls, reasoning and the agent's own words always stay, so every call keeps its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from harness.messages import Entry, Reply, Usage
from harness.modes import Context
from harness.observe import Observation

_START_BYTES_PER_TOKEN = 3.0  # until the provider's first usage figure; low, so that we rather overestimate
_BYTES_PER_TOKEN_RANGE = (1.5, 6.0)
_WORTH_CLEARING = 600  # bytes; smaller results are hardly larger than their placeholder


@dataclass
class _Result:
    """A tool result in the conversation: where it stands and what its placeholder says."""

    call_id: str
    index: int
    turn: int
    observation: Observation
    size: int
    cleared: bool = False


@dataclass(frozen=True)
class Clearing:
    """One batch: which results became placeholders, and the request's estimated tokens before and after."""

    call_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int


class Conversation:
    """Entries in order, their sizes, and which tool results are cleared.

    `overhead` is the bytes of what each request carries besides the entries (the tools' definitions). `window` is
    the model's context window in tokens, None where nobody knows it (then nothing is cleared unasked).
    """

    def __init__(self, policy: Context, window: int | None, overhead: int = 0) -> None:
        self._policy = policy
        self._window = policy.window or window
        self._entries: list[Entry] = []
        self._digests: list[bytes] = []
        self._results: list[_Result] = []
        self._bytes = overhead
        self._sent_bytes = 0  # size of the last request whose usage is known
        self._sent_tokens: int | None = None

    def instruct(self, text: str) -> None:
        """Append a system message."""
        self._append(Entry("system", text))

    def say(self, text: str) -> None:
        """Append a user message."""
        self._append(Entry("user", text))

    def reply(self, reply: Reply) -> None:
        """Append the model's reply, and learn from its usage how large the request was that it answers."""
        self._learn(reply.usage)
        self._append(reply.entry)

    def result(self, call_id: str, turn: int, observation: Observation) -> None:
        """Append a tool's result."""
        entry = Entry("tool", observation.text, call_id=call_id)
        self._results.append(_Result(call_id, len(self._entries), turn, observation, entry_bytes(entry)))
        self._append(entry)

    def view(self) -> tuple[Entry, ...]:
        """What the next request shows."""
        return tuple(self._entries)

    def digest(self) -> str:
        """sha256 over the digests of the entries that the next request shows: equal requests, equal digest."""
        return hashlib.sha256(b"".join(self._digests)).hexdigest()

    @property
    def size(self) -> int:
        """Size of the next request in bytes of text, about."""
        return self._bytes

    @property
    def cleared(self) -> list[str]:
        """Ids of the calls whose results the next request shows as placeholders, in order."""
        return [result.call_id for result in self._results if result.cleared]

    def tokens(self) -> int:
        """Estimated tokens of the next request: the last reported figure and what was added since."""
        if self._sent_tokens is None:
            return int(self._bytes / _START_BYTES_PER_TOKEN)
        return max(0, self._sent_tokens + int((self._bytes - self._sent_bytes) / self._bytes_per_token()))

    def room(self, cap: int) -> int:
        """Characters that a result may have now: `cap`, less where the window is nearly full."""
        if self._window is None:
            return cap
        left = (self._window * (1 + self._policy.high) / 2 - self.tokens()) * self._bytes_per_token()
        return max(min(cap, int(left)), min(cap, 1_000))

    def clear(self, turn: int, spill: Callable[[bytes], str | None], *, force: bool = False) -> Clearing | None:
        """Replace old results by placeholders where the request is over the high mark, or `force` says so.

        `turn` is the one about to be asked. Clears the oldest first, down to the low mark; the last `keep_turns`
        turns stay unless forced. `spill` puts an output not yet in a file into one and returns its path.
        """
        if not self._policy.clear and not force:
            return None
        before = self.tokens()
        if not force and (self._window is None or before <= self._policy.high * self._window):
            return None
        goal = self._policy.low * self._window if self._window is not None else before * self._policy.low
        keep_from = turn - (1 if force else self._policy.keep_turns)
        done = []
        for result in self._results:
            if self.tokens() <= goal:
                break
            if not result.cleared and result.turn < keep_from and result.size > _WORTH_CLEARING:
                self._replace(result, spill)
                done.append(result.call_id)
        return Clearing(tuple(done), before, self.tokens()) if done else None

    def _replace(self, result: _Result, spill: Callable[[bytes], str | None]) -> None:
        observation = result.observation
        path = observation.spill
        if path is None and observation.whole is not None:
            path = spill(observation.whole)
        entry = Entry("tool", placeholder(observation, path), call_id=result.call_id)
        self._entries[result.index] = entry
        self._digests[result.index] = _digest(entry)
        self._bytes += entry_bytes(entry) - result.size
        result.cleared, result.observation = True, Observation(entry.text)  # lets go of the whole output

    def _append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._digests.append(_digest(entry))
        self._bytes += entry_bytes(entry)

    def _learn(self, usage: Usage) -> None:
        if usage.input:
            self._sent_bytes, self._sent_tokens = self._bytes, usage.input

    def _bytes_per_token(self) -> float:
        if not self._sent_tokens:
            return _START_BYTES_PER_TOKEN
        low, high = _BYTES_PER_TOKEN_RANGE
        return min(max(self._sent_bytes / self._sent_tokens, low), high)


def placeholder(observation: Observation, path: str | None) -> str:
    """What stands in for a cleared result: how the call ended, its size, its first line, where the output lies."""
    facts = []
    if observation.exec is not None:
        code, ended = observation.exec["exit_code"], observation.exec["termination"]
        facts.append(f"exit code {code}" if ended == "exit" else ended)
        facts.append(f"{observation.exec['total_bytes']:,} bytes, {observation.exec['lines']:,} lines")
    else:
        facts.append(f"{len(observation.text):,} characters")
    first = next((line for line in observation.text.split("\n")[1:] if line.strip()), "")
    if first:
        facts.append(f"first line: {first[:100]}")
    facts.append(f"whole output in {path}" if path else "run the call again to see it")
    return f"[result cleared from the conversation; {'; '.join(facts)}]"


def entry_bytes(entry: Entry) -> int:
    """About the bytes an entry takes in a request: its text, its calls, and what the provider added to them."""
    if entry.raw is not None:
        return len(orjson.dumps(entry.raw))
    return len(entry.text.encode("utf-8", "replace")) + sum(len(call.arguments) + 60 for call in entry.calls) + 20


def _digest(entry: Entry) -> bytes:
    parts = [entry.role, entry.call_id, entry.text, *(part for call in entry.calls for part in call.__dict__.values())]
    return hashlib.sha256(orjson.dumps(parts)).digest()
