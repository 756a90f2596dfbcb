"""Standard output that outlives its reader: `harness run … | head -1` does its work and ends with its own exit code."""

from __future__ import annotations

import io
import os
import sys


class PatientStdout(io.TextIOWrapper):
    """Text to file descriptor 1; once nobody reads it any more, what is written goes nowhere."""

    def write(self, text: str) -> int:
        """Write. Never raises BrokenPipeError."""
        try:
            return super().write(text)
        except BrokenPipeError:
            _silence()
            return len(text)

    def flush(self) -> None:
        """Flush. Never raises BrokenPipeError."""
        try:
            super().flush()
        except BrokenPipeError:
            _silence()
            super().flush()


def outlive_reader() -> None:
    """Put such a stream in the place of sys.stdout, with its settings. Does nothing where stdout is no file."""
    usual = sys.stdout
    if not isinstance(usual, io.TextIOWrapper):
        return
    usual.flush()
    file = io.FileIO(usual.fileno(), "w", closefd=False)
    sys.stdout = PatientStdout(
        io.BufferedWriter(file), encoding=usual.encoding, errors=usual.errors, line_buffering=usual.line_buffering
    )


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
