"""Waiting, shared by all workers of a backbone: when the endpoint tells one of them to wait, all wait.

How many requests may be under way at once follows the endpoint too: half as many after each refusal for their rate, one
more after each round of successes, and no limit once there are as many as ever were.
"""

from __future__ import annotations

import email.utils
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from harness.errors import BackboneError
from harness.text import count_of, duration

SPREAD = 0.1  # workers let go together send within this share of their wait, at most MAX_SPREAD seconds
MAX_SPREAD = 2.0
LONGEST_WAIT = 1e9  # seconds, 31 years: what a clock can still name
ANNOUNCED = 10.0  # waits of so many seconds or more are told to the user, at most one in as many seconds


class Limiter:
    """A gate that is closed until some time and that lets so many through at once.

    `notice` is told when a long wait begins and when the number changes.
    """

    def __init__(self, notice: Callable[[str], None] = lambda _: None) -> None:
        self._notice = notice
        self._changed = threading.Condition()
        self._until = 0.0  # monotonic
        self._spread = 0.0
        self._stopped = False
        self._told = -math.inf
        self._flying = 0  # requests under way
        self._widest = 0  # the most there ever were
        self._most = math.inf
        self._successes = 0
        self._slowed = 0.0

    def tell(self, text: str) -> None:
        """Pass a notice on unless there was one just now: many workers run into the same trouble."""
        now = time.monotonic()
        with self._changed:
            quiet = now < self._told + ANNOUNCED
            self._told = self._told if quiet else now
        if not quiet:
            self._notice(text)

    def hold(self, seconds: float, why: str) -> None:
        """Let nobody through for so long from now on. A hold that ends before the present one changes nothing."""
        with self._changed:
            until = time.monotonic() + seconds
            announced = seconds >= ANNOUNCED and until > self._until + 1.0
            if until > self._until:
                self._until = until
                self._spread = min(MAX_SPREAD, SPREAD * seconds)
                self._changed.notify_all()
        if announced:
            self.tell(f"{why}: all requests wait until {clock(seconds)} ({duration(seconds)})")

    def enter(self, seconds: float = 0.0) -> None:
        """Return after at least so many seconds, when nobody is held and there is room for a request.

        Who returns from here calls `leave` when the request is over. Raises BackboneError once stopped.
        """
        own = time.monotonic() + seconds
        share = random.random()  # noqa: S311 - spreads load, guards nothing
        with self._changed:
            while not self._stopped:
                left = max(own, self._until + share * self._spread) - time.monotonic()
                if left <= 0 and self._flying < self._most:
                    self._flying += 1
                    self._widest = max(self._widest, self._flying)
                    return
                self._changed.wait(left if left > 0 else None)
        raise BackboneError("stopped while waiting for the model's endpoint")

    def leave(self, *, succeeded: bool) -> None:
        """A request is over."""
        with self._changed:
            self._flying -= 1
            if self._most == math.inf:
                return
            self._successes += succeeded
            if self._successes >= self._most:
                self._successes = 0
                self._most += 1
            lifted = self._most >= self._widest
            if lifted:
                self._most = math.inf
            self._changed.notify_all()
        if lifted:
            self.tell(f"up to {count_of(self._widest, 'request')} at a time again")

    def slow_down(self, sent: float, why: str) -> None:
        """Halve the number of requests at a time, for a refusal of one that was sent at `sent` (monotonic).

        One burst of refusals counts once: those sent before the last halving change nothing.
        """
        with self._changed:
            if sent < self._slowed:
                return
            self._slowed = time.monotonic()
            before = self._flying + 1  # the refused one has left already
            self._successes, self._most = 0, max(1, before // 2)
            now = self._most
        if now < before:
            self.tell(f"{why}: {count_of(now, 'request')} at a time instead of {before}")

    def stop(self) -> None:
        """End all waiting, now and later."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def clock(seconds: float) -> str:
    """The time of day, here, that it will be in so many seconds; with the date where that is another."""
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return then.strftime("%H:%M:%S" if then.date() == now.date() else "%Y-%m-%d %H:%M")


def backoff(tries: int, first: float, most: float) -> float:
    """Seconds to wait after so many tries that failed: doubling from `first`, up to `most`, less up to a quarter."""
    doubled: float = min(most, first * 2.0 ** min(tries - 1, 60))
    return doubled * (1.0 - 0.25 * random.random())  # noqa: S311 - spreads load, guards nothing


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a reply's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.

    None where they ask for nothing, or for something that can't be read or is past (RFC 9110, section 10.2.3).
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if (text := headers.get(name)) is None:
            continue
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _until_date(text, now or datetime.now(UTC))
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, LONGEST_WAIT)
    return None


def _until_date(text: str, now: datetime) -> float:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return math.nan
    return (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
