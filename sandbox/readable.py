"""Whether the sandbox's user, who is nobody on this machine, can read what is shown of the host."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from sandbox.contract import SandboxUnavailable


def check_readable(shown: Iterable[Path]) -> None:
    """Raise SandboxUnavailable, with what to do, if one of these, or something in one, is closed to other users."""
    for path in shown:
        _check(path)


def _check(shown: Path) -> None:
    try:
        modes = {shown: shown.stat().st_mode}
        if stat.S_ISDIR(modes[shown]):
            modes |= {path: path.stat().st_mode for path in shown.iterdir()}
    except OSError as error:
        raise SandboxUnavailable(f"'{shown}' can't be read: {error.strerror}") from error
    for path, mode in modes.items():
        closed = mode & 0o5 != 0o5 if stat.S_ISDIR(mode) else not mode & 0o5
        if closed:
            raise SandboxUnavailable(
                f"'{path}' is closed to other users, and the sandbox's user is one", f"chmod -R o+rX '{shown}'"
            )
