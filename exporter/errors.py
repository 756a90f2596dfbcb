"""The errors that this package raises on purpose."""

from __future__ import annotations


class ExportError(Exception):
    """Bad input, a folder that can't be written, or a damaged export. `hint` tells a person what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UnwritableError(ExportError):
    """A folder that can't be written, or that lies on a full disk."""
