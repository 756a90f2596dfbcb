"""A sandbox that is another one with something added: what it adds is its subclass's, all else is passed on."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from sandbox.contract import ExecResult, FileSlice, Sandbox


class Around:
    """A `Sandbox` (see the contract)."""

    def __init__(self, first: Sandbox, end: Callable[[], None]) -> None:
        """`end` closes `first` and what was added to it; it may be called more than once."""
        self.kind = first.kind
        self.first = first
        self._end = end

    @property
    def memory(self) -> int:
        return self.first.memory

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        return self.first.exec(command, timeout, cap)

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        return self.first.read(path, offset, limit)

    def write(self, path: str, data: bytes) -> None:
        self.first.write(path, data)

    def close(self) -> None:
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
