"""Whether the sandbox's user, who is nobody on this machine, can read a graph."""

from __future__ import annotations

from pathlib import Path

from sandbox.contract import SandboxUnavailable


def check_readable(graph: Path) -> None:
    """Raise SandboxUnavailable, with what to do, if the graph's folder or something in it is closed to other users."""
    for path in (graph, *graph.iterdir()):
        needed = 0o5 if path.is_dir() else 0o4
        if path.stat().st_mode & needed != needed:
            raise SandboxUnavailable(
                f"'{path}' is closed to other users, and the sandbox's user is one", f"chmod -R o+rX '{graph}'"
            )
