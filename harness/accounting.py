"""The clock and the counters of one attempt: turns, tokens, cost, and where the time went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from harness.ledger import StopReason, Times, total_usage
from harness.messages import Reply, Usage
from harness.modes import Limits

LAST_TURN_SECONDS = 120.0  # what the turn granted at a time limit may take


class Account:
    """One attempt's account. `cancel` is the run's: when it is set, no further request starts.

    `cost_of` prices one request's usage, None where prices are unknown.
    """

    def __init__(self, cancel: threading.Event, cost_of: Callable[[Usage], float | None]) -> None:
        self.turn = 0
        self.usages: list[dict[str, int | None]] = []
        # Without a reply nothing is known to be spent, but where prices are unknown that is no $0 either.
        self.cost: float | None = None if cost_of(Usage(0, 0, 0, 0)) is None else 0.0
        self.known_cost = 0.0  # of the requests whose cost is known: what limits go by
        self.started = time.time()
        self._cancel = cancel
        self._cost_of = cost_of
        self.finished: float | None = None
        self._start = time.monotonic()
        self._end: float | None = None
        self._spent = {"model": 0.0, "sandbox": 0.0}
        self._waiting = 0.0
        self._queue = 0.0

    def stop(self) -> None:
        """The attempt is over: what its record then waits for is no time of its own."""
        self.finished, self._end = time.time(), time.monotonic()

    @property
    def cancelled(self) -> bool:
        """Whether the run is being stopped."""
        return self._cancel.is_set()

    @property
    def replied(self) -> bool:
        """Whether the model has replied to any request."""
        return bool(self.usages)

    @contextmanager
    def time(self, part: Literal["model", "sandbox"]) -> Iterator[None]:
        """Count the seconds of the block to a part of the wall time."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._spent[part] += time.monotonic() - start

    def add(self, reply: Reply) -> None:
        """Count a reply's tokens, cost and waits."""
        self.usages.append(vars(reply.usage))
        self.waited(reply.waited)
        cost = self._cost_of(reply.usage)
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        self.known_cost += cost or 0.0

    def waited(self, seconds: float) -> None:
        """Count seconds of a model call that were spent on rate limits and back-off, not on the model."""
        self._waiting += seconds
        self._spent["model"] -= seconds

    def queued(self, seconds: float) -> None:
        """Count seconds that were spent in a queue while the sandbox was asked for."""
        self._queue += seconds
        self._spent["sandbox"] -= seconds

    def limit_reached(self, limits: Limits) -> StopReason | None:
        """The limit that forbids another ordinary turn, if any."""
        if self.turn >= limits.turns:
            return "turn_limit"
        if limits.tokens is not None and self.tokens() >= limits.tokens:
            return "token_limit"
        if limits.cost is not None and self.known_cost >= limits.cost:
            return "cost_limit"
        over_wall = limits.wall_seconds is not None and self._wall() >= limits.wall_seconds
        return "time_limit" if over_wall or self._working() >= limits.seconds else None

    def why_no_reply(self, limits: Limits) -> StopReason:
        """A request that the run's end or the time limit cut short is no failure of the endpoint's."""
        if self.cancelled:
            return "interrupted"
        return "time_limit" if self.limit_reached(limits) == "time_limit" else "backbone_error"

    def near_limit(self, limits: Limits) -> bool:
        """Whether few turns or seconds are left. False in the first turn: the task has just been stated."""
        turns, seconds = self.left(limits)
        return self.turn > 0 and (turns <= limits.warn_turns or seconds <= limits.warn_seconds)

    def left(self, limits: Limits) -> tuple[int, int]:
        """Turns and whole seconds left."""
        return limits.turns - self.turn, int(self.seconds_left(limits))

    def seconds_left(self, limits: Limits) -> float:
        """Seconds of working time (or of wall time, where that is less) until the limit; never negative."""
        left = limits.seconds - self._working()
        if limits.wall_seconds is not None:
            left = min(left, limits.wall_seconds - self._wall())
        return max(0.0, left)

    def seconds_for_request(self, limits: Limits, *, last: bool) -> float:
        """How long a request may take: what is left, and in a granted last turn at least LAST_TURN_SECONDS."""
        left = self.seconds_left(limits)
        return max(left, LAST_TURN_SECONDS) if last else left

    def tokens(self) -> int:
        """Tokens billed so far, input and output, as far as the provider says."""
        return sum((usage["input"] or 0) + (usage["output"] or 0) for usage in self.usages)

    def usage(self) -> dict[str, int | None]:
        """Tokens of all requests, per class."""
        return total_usage(self.usages)

    def times(self) -> Times:
        """Where the time went so far."""
        wall = self._wall()
        model, sandbox = max(0.0, self._spent["model"]), max(0.0, self._spent["sandbox"])
        rest = wall - model - sandbox - self._waiting - self._queue
        return Times(wall, self._working(), model, self._waiting, sandbox, self._queue, max(0.0, rest))

    def _wall(self) -> float:
        return (time.monotonic() if self._end is None else self._end) - self._start

    def _working(self) -> float:
        return self._wall() - self._waiting - self._queue
