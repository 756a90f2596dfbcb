"""Containers and volumes that a harness which is gone has left: for `harness clean`.

There are hardly any, since a container ends with its harness, and its volumes with it; but one may have been made and
not started yet, and a volume of two containers that ended at once may be left, empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sandbox.contract import SandboxError, SandboxUnavailable
from sandbox.owner import OURS, PREFIX, is_orphan

if TYPE_CHECKING:
    from docker import APIClient

VOLUME = "volume"  # the status of a leftover that is one


@dataclass(frozen=True)
class Leftover:
    """A container or volume without an owner. `labels` are those of its `Spec`, `created` is a UTC time."""

    id: str
    name: str
    status: str
    created: datetime
    labels: dict[str, str]


# The Docker SDK is imported when it is needed: it takes a tenth of a second.


def leftovers() -> list[Leftover]:
    """What is ours and whose harness process is gone, oldest first. Empty where no Docker daemon answers.

    Raises SandboxError if the daemon fails.
    """
    from sandbox.daemon import FAILURES, connect, reason  # noqa: PLC0415

    try:
        client = connect()
    except SandboxUnavailable:
        return []
    try:
        found = [*_containers(client), *_volumes(client)]
    except FAILURES as error:
        raise SandboxError(f"what the daemon holds can't be listed: {reason(error)}") from error
    finally:
        client.close()
    return sorted(found, key=lambda orphan: orphan.created)


def _containers(client: APIClient) -> Iterator[Leftover]:
    for container in client.containers(all=True, filters={"label": f"{OURS}=1"}):
        if is_orphan(container["Labels"]):
            yield Leftover(
                id=container["Id"],
                name=container["Names"][0].lstrip("/"),
                status=container["Status"],
                created=datetime.fromtimestamp(int(container["Created"]), UTC),
                labels=_ours(container["Labels"]),
            )


def _volumes(client: APIClient) -> Iterator[Leftover]:
    for volume in client.volumes(filters={"label": f"{OURS}=1"})["Volumes"] or []:
        if is_orphan(volume["Labels"]):
            yield Leftover(
                id=volume["Name"],
                name=volume["Name"][:12],
                status=VOLUME,
                created=datetime.fromisoformat(volume["CreatedAt"]).astimezone(UTC),
                labels=_ours(volume["Labels"]),
            )


def _ours(labels: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(PREFIX): value for name, value in labels.items() if name.startswith(PREFIX)}


def clean(found: Iterable[Leftover]) -> int:
    """Remove these; how many were still there. Raises SandboxUnavailable or SandboxError.

    One that the daemon is removing already, or a volume whose container it is, is passed over.
    """
    from docker.errors import APIError  # noqa: PLC0415

    from sandbox.daemon import FAILURES, connect, reason  # noqa: PLC0415

    removed = 0
    client = connect()
    try:
        for orphan in found:
            try:
                if orphan.status == VOLUME:
                    client.remove_volume(orphan.id)
                else:
                    client.remove_container(orphan.id, v=True, force=True)
                removed += 1
            except FAILURES as error:
                if isinstance(error, APIError) and error.status_code in {404, 409}:
                    continue
                raise SandboxError(f"{orphan.name} can't be removed: {reason(error)}") from error
    finally:
        client.close()
    return removed
