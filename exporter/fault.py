"""What a check finds wrong."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One thing that is wrong: the file (relative to the export), the line (from 1) where there is one, what, and what
    helps where that is less than another export."""

    file: str
    line: int | None
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.message}"
