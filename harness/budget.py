"""What a whole run may take, over all its sessions: tokens, dollars, time. Runs side by side share it.

Where a limit is reached no attempt starts any more and those in flight end by themselves. A resume with a higher limit
goes on. Limits of one attempt are its mode's (`harness.modes.Limits`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.accounting import Account
from harness.ledger import AttemptRecord
from harness.messages import Usage
from harness.settings import check_range
from harness.text import duration, money, number


@dataclass(frozen=True)
class Budget:
    """Limits of a run; None: none."""

    tokens: int | None = None  # input and output of all requests
    cost: float | None = None  # US dollars
    seconds: float | None = None  # in which attempts were under way

    def __post_init__(self) -> None:
        check_range(self, "tokens", "cost", "seconds", above=0)


class Spending:
    """What runs have taken together so far. The caller's lock guards it.

    A usage or a cost that nobody knows can't be counted: with an endpoint that reports no usage, limits of tokens and
    cost don't bind. Where a method takes `cost_of`, it prices an attempt of which only the usage is known, as after a
    crash.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._tokens = 0
        self._cost = 0.0
        self._earlier: list[tuple[float, float]] = []  # when attempts of earlier sessions were under way
        self._began = time.monotonic()

    def resume(self, records: Sequence[AttemptRecord], cost_of: Callable[[Usage], float | None]) -> None:
        """Count a run's attempts of earlier sessions."""
        self._earlier += [(record.started, record.finished) for record in records]
        for record in records:
            self.add(record, cost_of)

    def add(self, record: AttemptRecord, cost_of: Callable[[Usage], float | None]) -> None:
        """Count an attempt that has ended."""
        self._tokens += (record.usage.get("input") or 0) + (record.usage.get("output") or 0)
        cost = cost_of(Usage(**record.usage)) if record.cost is None else record.cost
        self._cost += cost or 0.0

    def reached(self, flying: Iterable[Account]) -> str | None:
        """The limit that forbids another attempt, in words; `flying` are the attempts under way."""
        accounts = list(flying)
        taken = {
            "tokens": self._tokens + sum(account.tokens() for account in accounts),
            "cost": self._cost + sum(account.known_cost for account in accounts),
            "seconds": _covered(self._earlier) + time.monotonic() - self._began,
        }
        words = {"tokens": number, "cost": money, "seconds": duration}
        for name, limit in vars(self._budget).items():
            if limit is not None and taken[name] >= limit:
                return f"run.{name} is reached, {words[name](taken[name])} of {words[name](limit)}"
        return None


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Seconds that lie in at least one of the intervals."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
