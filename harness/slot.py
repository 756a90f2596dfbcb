"""Sandboxes opened ahead of need and closed behind the scenes, within a cap on the memory of all together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from harness.spill import Spills
from sandbox import Backend, Sandbox, SandboxError, Spec

_OPENERS = 8  # sandboxes being opened at once
_GATE_POLL = 0.1  # seconds between two looks at the memory in use
_EXPECTED = 64 * 1024 * 1024  # bytes a sandbox counts for at least: it will use some as soon as it's open
_DEFAULT_SHARE = 0.7  # of the machine's memory, for all sandboxes of a run


class SandboxSlot:
    """One attempt's sandbox: asked for at the start, waited for at the first call that needs it."""

    def __init__(
        self, future: Future[Sandbox], queued: Callable[[float], None], gate_passed: Callable[[], float]
    ) -> None:
        self._future = future
        self._queued = queued
        self._gate_passed = gate_passed
        self._spills: Spills | None = None
        self.in_use = False

    def sandbox(self) -> Sandbox:
        """The sandbox, once it is open. Raises SandboxLost, SandboxUnavailable."""
        start = time.monotonic()
        waited = not self._future.done()
        sandbox = self._future.result()
        if waited:
            self._queued(max(0.0, min(self._gate_passed(), time.monotonic()) - start))
        self.in_use = True
        return sandbox

    def spills(self) -> Spills:
        """The attempt's outputs folder."""
        if self._spills is None:
            self._spills = Spills(self.sandbox())
        return self._spills

    def save(self, data: bytes) -> str | None:
        """Spill an output that is not in a file yet; the path, or None where there is no room."""
        return self.spills().save(data)


class NoSlot:
    """What stands in for a sandbox in modes whose tools need none: old results can't be spilled, only called again."""

    in_use = False

    def sandbox(self) -> Sandbox:
        """Never to be called: tools say in `needs_sandbox` whether they use one."""
        raise AssertionError("a tool that needs no sandbox asked for one")

    def spills(self) -> Spills:
        """Never to be called, like `sandbox`."""
        return Spills(self.sandbox())

    def save(self, data: bytes) -> None:
        """There is nowhere to put it."""


class SandboxPool:
    """Opens and closes the sandboxes of one or more runs in threads of its own.

    A sandbox is opened when the memory that the open ones really use (not the sum of their limits) is under
    `memory_cap` bytes, or when none is open.
    """

    def __init__(self, memory_cap: int | None = None) -> None:
        self._cap = memory_cap or int(total_memory() * _DEFAULT_SHARE)
        self._threads = ThreadPoolExecutor(_OPENERS, thread_name_prefix="sandbox-open")
        self._closers = ThreadPoolExecutor(_OPENERS, thread_name_prefix="sandbox-close")
        self._lock = threading.Lock()
        self._open: set[Sandbox] = set()
        self._opening = 0
        self._closed = False

    def slot(self, backend: Backend, spec: Spec, queued: Callable[[float], None]) -> SandboxSlot:
        """Ask for a sandbox of a kind; `queued` is told the seconds that its user waited for memory."""
        passed = [float("inf")]

        def work() -> Sandbox:
            self._wait_for_memory()
            passed[0] = time.monotonic()
            return self._do_open(backend, spec)

        return SandboxSlot(self._threads.submit(work), queued, lambda: passed[0])

    def give_back(self, slot: SandboxSlot) -> None:
        """Close the slot's sandbox, off the caller's path."""
        slot._future.cancel()
        slot._future.add_done_callback(self._close_later)

    def close(self) -> None:
        """Close every sandbox and return when all are gone."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            rest = list(self._open)
        for sandbox in rest:
            self._closers.submit(self._do_close, sandbox)
        self._closers.shutdown(wait=True)

    def _wait_for_memory(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    raise SandboxError("the run is being stopped")
                used = sum(max(sandbox.memory, _EXPECTED) for sandbox in self._open) + self._opening * _EXPECTED
                if not (self._open or self._opening) or used < self._cap:
                    self._opening += 1
                    return
            time.sleep(_GATE_POLL)

    def _do_open(self, backend: Backend, spec: Spec) -> Sandbox:
        try:
            sandbox = backend.open(spec)
        finally:
            with self._lock:
                self._opening -= 1
        with self._lock:
            self._open.add(sandbox)
        return sandbox

    def _close_later(self, future: Future[Sandbox]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        with self._lock:
            if not self._closed:
                self._closers.submit(self._do_close, future.result())

    def _do_close(self, sandbox: Sandbox) -> None:
        try:
            sandbox.close()
        finally:
            with self._lock:
                self._open.discard(sandbox)


def total_memory() -> int:
    """The machine's memory in bytes."""
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemTotal")
