"""Waiting for what another process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as `happened()` is true; fail after `seconds`, which only a broken program needs."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not happened():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        pause.wait(0.02)
