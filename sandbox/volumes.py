"""Folders in memory that two containers share: anonymous volumes, which the daemon removes with their container."""

from __future__ import annotations

from collections.abc import Mapping

from docker import APIClient
from docker.types import DriverConfig, Mount

from sandbox.contract import SHARED, Limits

_KIND = "tmpfs"


def made_for(limits: Limits, options: str, labels: Mapping[str, str]) -> list[Mount]:
    """Mounts for the first of two containers; each makes a volume, and `options` are mount options of both."""
    sizes = dict(zip(SHARED, (limits.scratch, limits.tmp), strict=True))
    return [
        Mount(
            inside,
            None,
            type="volume",
            no_copy=True,
            labels=dict(labels),
            driver_config=DriverConfig(
                "local",
                {"type": _KIND, "device": _KIND, "o": f"size={size},mode=1777,nosuid,nodev,{options}"},
            ),
        )
        for inside, size in sizes.items()
    ]


def of(client: APIClient, container: str) -> list[Mount]:
    """Mounts for the second: the volumes of the first."""
    found = client.inspect_container(container)["Mounts"]
    return [
        Mount(mount["Destination"], mount["Name"], type="volume", no_copy=True)
        for mount in found
        if mount["Type"] == "volume" and mount["Destination"] in SHARED
    ]


# Inside a container: the kind and size of its shared folders, to see that the engine made what was asked for.
SEEN = "stat -f -c '%T %S %b' " + " ".join(SHARED)


def seen(limits: Limits) -> str:
    """What SEEN prints if all is well, in a sandbox of these limits: sizes in whole pages."""
    page = 4096
    return "".join(f"{_KIND} {page} {-(-size // page)}\n" for size in (limits.scratch, limits.tmp))
