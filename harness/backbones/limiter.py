"""Waiting, shared by all workers of a backbone: when the endpoint tells one of them to wait, all wait."""

from __future__ import annotations

import email.utils
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from harness.errors import BackboneError

SPREAD = 0.1  # workers let go together send within this share of their wait, at most MAX_SPREAD seconds
MAX_SPREAD = 2.0
ANNOUNCED = 10.0  # waits of so many seconds or more are told to the user, at most one in as many seconds


class Limiter:
    """A gate that is open or closed until some time. `notice` is told when a long wait begins."""

    def __init__(self, notice: Callable[[str], None] = lambda _: None) -> None:
        self._notice = notice
        self._changed = threading.Condition()
        self._until = 0.0  # monotonic
        self._spread = 0.0
        self._stopped = False
        self._told = -math.inf

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
            clock = datetime.fromtimestamp(time.time() + seconds).strftime("%H:%M:%S")
            self.tell(f"{why}: all requests wait until {clock} ({seconds:.0f} s)")

    def wait(self, seconds: float = 0.0) -> None:
        """Return after at least so many seconds and when nobody is held. Raises BackboneError once stopped."""
        own = time.monotonic() + seconds
        share = random.random()  # noqa: S311 - spreads load, guards nothing
        with self._changed:
            while not self._stopped:
                left = max(own, self._until + share * self._spread) - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)
        raise BackboneError("stopped while waiting for the model's endpoint")

    def stop(self) -> None:
        """End all waiting, now and later."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


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
            return seconds
    return None


def _until_date(text: str, now: datetime) -> float:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return math.nan
    return (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
