"""Events of saved trajectories, read back, and where a trajectory lies. Needs nothing that a run needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

SCHEMA_VERSION = 1
_LONGEST_NAME = 120


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a trajectory in order, without a torn last line.

    Raises ValueError for a bad line before it, and for an event of a later version of the format.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return  # torn by a crash
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: not a JSON event: {error}") from None
            version = event.get("schema_version") if isinstance(event, dict) else None
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise ValueError(
                    f"{path}:{number}: written by a later version of kgshell: schema_version {version}, and this one"
                    f" reads up to {SCHEMA_VERSION}"
                )
            yield event


def trajectory_path(query_id: str, agent: int, attempt: int) -> Path:
    """Where an attempt's trajectory lies, relative to the run folder."""
    return Path("trajectories") / folder_name(query_id) / f"{agent}-{attempt}.jsonl"


def folder_name(query_id: str) -> str:
    """A query id as one file name: percent-escaped, and shortened with a hash where it is long."""
    name = quote(query_id, safe=" ()+,;=@")
    if re.fullmatch(r"\.*", name):
        name = name.replace(".", "%2E") or "%"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:80]}-{hashlib.sha256(query_id.encode()).hexdigest()[:16]}"
