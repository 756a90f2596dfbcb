"""A sandbox as its users see it, whatever kind it is: a client of its supervisor, what ends it, and its twins."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from sandbox.client import Client
from sandbox.contract import ExecResult, FileSlice, SandboxLost


class SupervisedSandbox:
    """A `Sandbox` (see the contract)."""

    def __init__(self, kind: str, client: Client, end: Callable[[], None], shared: object = None) -> None:
        """`end` removes the sandbox; it is called once, from any thread, perhaps while a call waits.

        `shared` is what the backend needs to know of it to give it a twin; None if it can't have one.
        """
        self.kind = kind
        self.client = client
        self._shared = shared
        self._end = end
        self._ended = False
        self._lock = threading.Lock()
        self._calling = threading.Lock()
        self._twins: list[SupervisedSandbox] = []
        self._first: SupervisedSandbox | None = None

    @property
    def memory(self) -> int:
        return self.client.memory + sum(twin.memory for twin in list(self._twins))

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        with self._call():
            return self.client.exec(command, timeout, cap)

    def start(self, command: str) -> None:
        """Start a command that outlives calls; see `Client.start`."""
        with self._call():
            self.client.start(command)

    def say(self, text: str, timeout: float, cap: int) -> tuple[ExecResult, bool]:
        """Tell it something; see `Client.say`."""
        with self._call():
            return self.client.say(text, timeout, cap)

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        with self._call():
            return self.client.read(path, offset, limit)

    def write(self, path: str, data: bytes) -> None:
        with self._call():
            self.client.write(path, data)

    def close(self) -> None:
        with self._lock:
            ended, self._ended = self._ended, True
            twins = list(self._twins)
        for twin in twins:
            twin.close()
        if not ended:
            self._end()
            if self._first is not None:
                self._first._lose(self)

    @property
    def shared(self) -> object:
        """What the backend noted of it; None if it can't have a twin. Raises SandboxLost if it is closed."""
        if self._ended:
            raise SandboxLost("the sandbox that was to have a twin is closed")
        return self._shared

    def add_twin(self, twin: SupervisedSandbox) -> None:
        """Close this one with us. Raises SandboxLost if we were closed meanwhile."""
        with self._lock:
            if not self._ended:
                self._twins.append(twin)
                twin._first = self
                return
        twin.close()
        raise SandboxLost("the sandbox that was to have a twin is closed")

    def _lose(self, twin: SupervisedSandbox) -> None:
        with self._lock:
            self._twins.remove(twin)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        with self._calling:
            yield
        if self._first is not None:
            self._first._look_again()

    def _look_again(self) -> None:
        """A twin may have filled the folders that we count. While a call of our own runs, its heartbeats tell."""
        if self._calling.acquire(blocking=False):
            try:
                with contextlib.suppress(SandboxLost):
                    self.client.ping()
            finally:
                self._calling.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
