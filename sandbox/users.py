"""What the kernel lets this process do about users and user namespaces, and what to do where it forbids them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

OWN_USER = 10001  # uid and gid inside a user namespace
_LOWEST, _HIGHEST = 20000, 2**31 - 2  # no system's own users

_SETTINGS = (
    # file below /proc/sys, the value that forbids, what to say
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor forbids user namespaces to programs without a profile (Ubuntu 23.10 and later): an administrator can"
        " install a profile for bwrap (package apparmor-profiles, /etc/apparmor.d/bwrap-userns-restrict) or run"
        " `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "this kernel forbids user namespaces to users: an administrator can run"
        " `sysctl kernel.unprivileged_userns_clone=1`",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "this machine allows no user namespaces: an administrator can run `sysctl user.max_user_namespaces=10000`",
    ),
)


def kernel_hint() -> str:
    """What keeps bubblewrap from working here, as far as the kernel's settings tell."""
    for name, forbids, text in _SETTINGS:
        path = Path("/proc/sys") / name
        try:
            value = path.read_text().strip()
        except OSError:
            continue
        if value == forbids:
            return text
    return (
        "inside a container, allow it user namespaces and an unmasked /proc (docker run --security-opt"
        " seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined),"
        " or use --sandbox docker"
    )


def nproc_counts_one_sandbox() -> bool:
    """Since Linux 5.14 RLIMIT_NPROC counts a user's processes per user namespace, before that on the whole machine."""
    numbers = platform.release().split("-")[0].split(".")
    return tuple(int(number) for number in numbers[:2] if number.isdigit()) >= (5, 14)


def spare_users() -> range:
    """User and group ids that root can give to sandboxes; empty for an ordinary user and where none are mapped."""
    if os.geteuid() != 0:
        return range(0)
    users, groups = (_mapped(Path(f"/proc/self/{name}_map")) for name in ("uid", "gid"))
    both = range(max(users.start, groups.start), min(users.stop, groups.stop))
    return both if len(both) >= 1000 else range(0)


def _mapped(path: Path) -> range:
    best = range(0)
    for line in path.read_text().splitlines():
        first, _, count = (int(word) for word in line.split())
        here = range(max(first, _LOWEST), min(first + count, _HIGHEST))
        # Far from the ids that a directory service gives out, where there is room.
        if len(here) > 2**30:
            here = range(2**30, here.stop)
        best = max(best, here, key=len)
    return best
