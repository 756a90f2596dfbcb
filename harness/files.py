"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import orjson


def write_once(path: Path, data: bytes) -> None:
    """Write a file that appears complete or not at all; an existing one is left as it is."""
    if path.exists():
        return
    write_atomic(path, data)


def write_atomic(path: Path, data: bytes) -> None:
    """Write or replace a file so that a crash leaves the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON, atomically."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    write_atomic(path, orjson.dumps(value, option=options, default=str))


def append_whole(descriptor: int, data: bytes) -> None:
    """Append to a file all of `data`, or nothing of it where that fails, as on a full disk. Raises OSError."""
    before = os.fstat(descriptor).st_size
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, before)
        raise
