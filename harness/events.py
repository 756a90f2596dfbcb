"""Events of saved trajectories, read back, and where a trajectory lies. Needs nothing that a run needs."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

SCHEMA_VERSION = 1
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Damage:
    """A line of a trajectory that holds no event: its number from 1, and why."""

    line: int
    why: str


class Reading:
    """The whole events of a trajectory with their lines' numbers, in order, without a torn last line.

    A damaged line costs that line alone: it is in `damaged` once the iteration is behind it. Iterating raises OSError,
    and ValueError for a file of a later version of the format.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: list[Damage] = []

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self.damaged = []
        whole = False
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return  # torn by a crash
                try:
                    event = parse_event(line)
                except ValueError as error:
                    if not whole and (version := _later_version(line)) and not _has_event(self.path):
                        raise ValueError(
                            f"{self.path}:{number}: written by a later version of kgshell: schema_version {version},"
                            f" and this one reads up to {SCHEMA_VERSION}"
                        ) from None
                    self.damaged.append(Damage(number, str(error)))
                    continue
                whole = True
                yield number, event


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a trajectory in order, without a torn last line.

    Raises ValueError for a bad line before it, and for a file of a later version of the format.
    """
    reading = Reading(path)
    for _, event in reading:
        if reading.damaged:
            break
        yield event
    for damage in reading.damaged:
        raise ValueError(f"{path}:{damage.line}: {damage.why}")


def parse_event(line: bytes) -> dict[str, Any]:
    """The event that a line holds. Raises ValueError, which says why it holds none."""
    from harness.schemas import fast_check, schema_faults  # noqa: PLC0415 - it checks whole runs, and so needs this

    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    if not isinstance(event.get("type"), str):
        raise ValueError("not an event: it has no type")
    if not fast_check("event")(event):
        first, *more = schema_faults("event", event)
        raise ValueError(f"not an event: {first}{f' (and {len(more)} more)' if more else ''}")
    return event


def _later_version(line: bytes) -> int:
    """The version of the format that a line gives, 0 unless it is later than this one's."""
    with contextlib.suppress(orjson.JSONDecodeError):
        event = orjson.loads(line)
        version = event.get("schema_version") if isinstance(event, dict) else None
        return version if isinstance(version, int) and version > SCHEMA_VERSION else 0
    return 0


def _has_event(path: Path) -> bool:
    """Whether some line of the file is an event of this version: then a later version elsewhere is damage."""
    with path.open("rb") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                parse_event(line)
                return True
    return False


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
