"""The conversation and its size: what each request shows, and when old results give way to placeholders.

The trajectory is never edited: what a request shows is derived here and recorded. By default results are cleared in
batches, from a high mark of the window down to a low one, since every change of an early entry throws the provider's
prompt cache away from there on. Calls, reasoning and the agent's own words always stay, so every call keeps its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from harness.messages import Entry, Reply, Usage
from harness.modes import Context
from harness.observe import Observation
from harness.text import count_of

_START_BYTES_PER_TOKEN = 3.0  # until the provider's first usage figure; low, so that we rather overestimate
_BYTES_PER_TOKEN_RANGE = (1.5, 6.0)
_WORTH_CLEARING = 600  # bytes; smaller results are hardly larger than their placeholder
_MUST_SHOW = 4_000  # bytes that no tokenizer takes for nothing
_PLACEHOLDER = 250  # bytes, about


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
        self._characters = 0  # of all results, as they were when they came
        self._bytes = overhead
        self._sent_bytes = 0  # size of the last request whose usage is known
        self._sent_tokens: int | None = None

    def instruct(self, text: str) -> None:
        """Append a system message."""
        self._append(Entry("system", text))

    def say(self, text: str) -> None:
        """Append a user message."""
        self._append(Entry("user", text))

    def reply(self, reply: Reply) -> bool:
        """Append the model's reply, and learn from its usage how large the request was that it answers.

        Says whether the server seems to have cut the request: it counts no more tokens than in the one before, though
        `_MUST_SHOW` bytes or more were added.
        """
        now, last, grown = reply.usage.input, self._sent_tokens, self._bytes - self._sent_bytes
        cut = now is not None and last is not None and now <= last and grown >= _MUST_SHOW
        self._learn(reply.usage)
        self._append(reply.entry)
        return cut

    def result(self, call_id: str, turn: int, observation: Observation) -> None:
        """Append a tool's result."""
        entry = Entry("tool", observation.text, call_id=call_id)
        self._results.append(_Result(call_id, len(self._entries), turn, observation, entry_bytes(entry)))
        self._characters += len(observation.text)
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
        """Replace results by placeholders where the mode's policy, or `force`, asks for it.

        `turn` is the one about to be asked. `spill` puts an output not yet in a file into one and returns its path.
        Forced by the provider's saying that the last request was too large: from then on that is taken as the window.
        """
        before = self.tokens()
        if force:
            self._window = before if self._window is None else min(self._window, before)
        chosen = self._forced(turn) if force else _POLICIES[self._policy.policy](self, turn)
        for result in chosen:
            self._replace(result, spill)
        return Clearing(tuple(result.call_id for result in chosen), before, self.tokens()) if chosen else None

    def _over_the_high_mark(self, turn: int) -> list[_Result]:
        """The oldest results, so many that the low mark is reached.

        Those of the last `keep_turns` turns stay if the others free enough; else the next turns would each clear again.
        """
        if self._window is None:
            return []
        window = min(self._window, self._policy.most or self._window)
        high, low = self._policy.high * window, self._policy.low * window
        if self.tokens() <= high:
            return []
        chosen, left = self._oldest(turn - self._policy.keep_turns, low)
        return chosen if left <= (high + low) / 2 else self._oldest(turn - 1, low)[0]

    def _before_the_last_turns(self, turn: int) -> list[_Result]:
        """All but the last `keep_turns` turns' results, once all that there were are over `sliding_from` characters."""
        if self._characters <= self._policy.sliding_from:
            return []
        return self._oldest(turn - self._policy.keep_turns, 0.0)[0]

    def _nothing(self, turn: int) -> list[_Result]:  # noqa: ARG002 - one of the policies
        return []

    def _forced(self, turn: int) -> list[_Result]:
        """Down to the low mark; the last turn's results stay if that leaves any to clear."""
        goal = self._policy.low * (self._window or 0)
        return self._oldest(turn - 1, goal)[0] or self._oldest(turn, goal)[0]

    def _oldest(self, before_turn: int, goal: float) -> tuple[list[_Result], int]:
        """Results of turns before that one, oldest first, until about `goal` tokens are left; and how many are left."""
        left, ratio, chosen = self.tokens(), self._bytes_per_token(), []
        for result in self._results:
            if left <= goal or result.turn >= before_turn:
                break
            if not result.cleared and result.size > _WORTH_CLEARING:
                chosen.append(result)
                left -= int((result.size - _PLACEHOLDER) / ratio)
        return chosen, left

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


_POLICIES: Final[Mapping[str, Callable[[Conversation, int], list[_Result]]]] = {
    "marks": Conversation._over_the_high_mark,
    "sliding": Conversation._before_the_last_turns,
    "none": Conversation._nothing,
}


def placeholder(observation: Observation, path: str | None) -> str:
    """What stands in for a cleared result: how the call ended, its size, its first line, where the output lies."""
    facts = []
    if observation.exec is not None:
        code, ended = observation.exec["exit_code"], observation.exec["termination"]
        facts.append(f"exit code {code}" if ended == "exit" else ended)
        total, lines = observation.exec["total_bytes"], observation.exec["lines"]
        facts.append(f"{count_of(total, 'byte')}, {count_of(lines, 'line')}")
    else:
        facts.append(count_of(len(observation.text), "character"))
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
