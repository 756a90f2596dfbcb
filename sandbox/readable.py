"""Whether the sandbox's user, who is nobody on this machine, can read a graph."""

from __future__ import annotations

import stat
from pathlib import Path

from sandbox.contract import SandboxUnavailable


def check_readable(graph: Path) -> None:
    """Raise SandboxUnavailable, with what to do, if the graph's folder or something in it is closed to other users."""
    try:
        modes = {path: path.stat().st_mode for path in (graph, *graph.iterdir())}
    except OSError as error:
        raise SandboxUnavailable(f"the graph '{graph}' can't be read: {error.strerror}") from error
    for path, mode in modes.items():
        needed = 0o5 if stat.S_ISDIR(mode) else 0o4
        if mode & needed != needed:
            raise SandboxUnavailable(
                f"'{path}' is closed to other users, and the sandbox's user is one", f"chmod -R o+rX '{graph}'"
            )
