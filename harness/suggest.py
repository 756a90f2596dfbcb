"""The known name that a mistyped one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or nothing when no known name is close."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else ""


def hint(given: str, known: Iterable[str], label: str) -> str:
    """A hint for an unknown name: the closest known one, then all of them behind `label`."""
    names = list(known)
    return " ".join(part for part in (did_you_mean(given, names), f"{label}: {', '.join(names)}") if part)
