"""Whose a container is: labels that name the run and the harness process, and whether that process still lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

PREFIX = "kgshell."
OURS = "kgshell"  # the label that every container and image of ours has
_OWNER = PREFIX + "owner"


@dataclass(frozen=True)
class _Owner:
    """A process. Its PID means something only on its machine, since its boot, in its PID namespace."""

    host: str
    boot: str
    namespace: str
    uid: str
    pid: str
    started: str  # clock ticks since boot: tells the process from a later one with its PID


def labels(extra: Mapping[str, str]) -> dict[str, str]:
    """Labels for a container that this process opens: ours, its owner, and `extra` under our prefix."""
    return {OURS: "1", _OWNER: "/".join(astuple(_me())), **{PREFIX + name: value for name, value in extra.items()}}


def is_orphan(found: Mapping[str, str]) -> bool:
    """True if the process that these labels name is known to be gone.

    Never for a process of another machine, or of another user unless we are root: we might not see that it lives.
    """
    parts = found.get(_OWNER, "").split("/")
    if len(parts) != len(astuple(me := _me())):
        return False
    owner = _Owner(*parts)
    if owner.host != me.host or me.uid not in {"0", owner.uid}:
        return False
    if owner.boot != me.boot:
        return True  # the machine was started anew since
    return owner.namespace == me.namespace and owner.started != _started(owner.pid)


def _me() -> _Owner:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    pid = str(os.getpid())
    return _Owner(
        host=socket.gethostname(),
        boot=boot,
        namespace=str(Path("/proc/self/ns/pid").readlink()),
        uid=str(os.getuid()),
        pid=pid,
        started=_started(pid),
    )


def _started(pid: str) -> str:
    """When the process started; empty if there is none of this PID, or only its zombie."""
    if not pid.isdecimal():
        return ""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the command's name may hold spaces and parentheses
    return "" if fields[0] in "ZX" else fields[19]
