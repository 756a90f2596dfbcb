"""Runs made elsewhere, read so that they can be audited: ARK's results, sessions of Pi and of Codex.

What a foreign file says is kept as it is: commands, outputs, answers, tokens. What it doesn't say (limits, the exit
code of a command, a sandbox) is not made up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from harness.errors import UserError
from harness.foreign import ark, codex, pi
from harness.foreign.session import Session

# Format -> whether a file's beginning is one, and what reads the file.
FORMATS: Mapping[str, tuple[Callable[[bytes], bool], Callable[[Path], list[Session]]]] = {
    "ARK": (ark.is_one, ark.read),
    "Pi": (pi.is_one, pi.read),
    "Codex": (codex.is_one, codex.read),
}
_BEGINNING = 65_536  # bytes that a format is told by


def read_sessions(path: Path) -> tuple[str, list[Session]]:
    """The format of a file and the attempts in it. Raises UserError for a file of no known format or a damaged one."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
        for name, (is_one, read) in FORMATS.items():
            if is_one(beginning):
                return name, read(path)
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged: {error!r}") from None
    raise UserError(f"{path} is of no known format", f"formats: {', '.join(FORMATS)}")


__all__ = ["FORMATS", "Session", "read_sessions"]
