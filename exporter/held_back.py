"""Holds back what native code writes to standard error: Rust tells of each panic there, on whatever thread it is."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2
_one_at_a_time = threading.Lock()


@contextmanager
def panics_held_back(panic: type[BaseException]) -> Iterator[None]:
    """What is written to the process's standard error meanwhile appears afterwards, or not at all where the block
    raises `panic`."""
    with _one_at_a_time, tempfile.TemporaryFile(buffering=0) as kept:
        try:
            own = os.dup(_STDERR)
        except OSError:  # it is closed
            yield
            return
        told = True
        os.dup2(kept.fileno(), _STDERR)
        try:
            yield
        except panic:
            told = False
            raise
        finally:
            os.dup2(own, _STDERR)
            os.close(own)
            kept.seek(0)
            if told and (text := kept.read()):
                os.write(_STDERR, text)
