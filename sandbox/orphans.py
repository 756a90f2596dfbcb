"""Containers that a harness which is gone has left: for `harness clean`.

There are hardly any, since a container ends with its harness; but one may have been made and not started yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from sandbox.contract import SandboxError, SandboxUnavailable
from sandbox.owner import OURS, PREFIX, is_orphan


@dataclass(frozen=True)
class Leftover:
    """A container without an owner. `labels` are those of its `Spec`, `created` is a UTC time."""

    id: str
    name: str
    status: str
    created: datetime
    labels: dict[str, str]


# The Docker SDK is imported when it is needed: it takes a tenth of a second.


def leftovers() -> list[Leftover]:
    """Containers of ours whose harness process is gone, oldest first. Empty where no Docker daemon answers.

    Raises SandboxError if the daemon fails.
    """
    from sandbox.daemon import FAILURES, connect, reason  # noqa: PLC0415

    try:
        client = connect()
    except SandboxUnavailable:
        return []
    try:
        found = client.containers(all=True, filters={"label": f"{OURS}=1"})
    except FAILURES as error:
        raise SandboxError(f"the containers can't be listed: {reason(error)}") from error
    finally:
        client.close()
    orphans = [
        Leftover(
            id=container["Id"],
            name=container["Names"][0].lstrip("/"),
            status=container["Status"],
            created=datetime.fromtimestamp(int(container["Created"]), UTC),
            labels={
                name.removeprefix(PREFIX): value
                for name, value in container["Labels"].items()
                if name.startswith(PREFIX)
            },
        )
        for container in found
        if is_orphan(container["Labels"])
    ]
    return sorted(orphans, key=lambda orphan: orphan.created)


def clean(found: Iterable[Leftover]) -> int:
    """Remove these containers; how many were still there. Raises SandboxUnavailable or SandboxError."""
    from docker.errors import NotFound  # noqa: PLC0415

    from sandbox.daemon import FAILURES, connect, reason  # noqa: PLC0415

    removed = 0
    client = connect()
    try:
        for orphan in found:
            try:
                client.remove_container(orphan.id, force=True)
                removed += 1
            except NotFound:
                continue
            except FAILURES as error:
                raise SandboxError(f"the container {orphan.name} can't be removed: {reason(error)}") from error
    finally:
        client.close()
    return removed
