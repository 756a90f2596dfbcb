"""Text for people: of unknown origin made safe for a terminal, shortened to fit, and figures with their units."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len, set_cell_size

# Control characters can move the cursor, recolour or retitle a terminal; bidirectional controls reorder what is read.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    """`text` with control characters written out (`\\x1b`), newlines and tabs kept."""
    return _UNSAFE.sub(lambda match: _escape(match[0]), text)


def line(text: str) -> str:
    """`text` on one line: control characters written out, any white space one blank."""
    return plain(" ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """`text` on one line, at most `width` terminal cells wide; what was cut off is marked."""
    text = line(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def beginning(text: str, most: int) -> str:
    """`text`, or its first `most` characters and a mark; unlike `shorten` it changes nothing else in it."""
    return text if len(text) <= most else f"{text[:most]}…"


def size(count: float) -> str:
    """Bytes as a person reads them: `512 B`, `1.5 MiB`."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if abs(count) < 999.95:  # and no `1000.0 KiB`
            return f"{count:.1f} {unit}"
    return f"{count / 1024:,.1f} GiB"


def number(value: float | None) -> str:
    """A count with thousands separators, `-` for an unknown one."""
    return "-" if value is None else f"{value:,.0f}"


def count_of(count: float | None, noun: str) -> str:
    """`1 turn`, `2 turns`, `- turns` where nobody knows."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def duration(seconds: float | None) -> str:
    """Seconds as `4.2 s`, `3:07` or `1:02:03`."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def money(value: float | None) -> str:
    """US dollars, `-` for an unknown amount."""
    return "-" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def _escape(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


def once(notice: Callable[[str], None]) -> Callable[[str, int, int], None]:
    """A progress callback that tells of each stage of an index when it begins, and no more."""
    told: set[str] = set()

    def progress(stage: str, _: int, __: int) -> None:
        if stage not in told:
            told.add(stage)
            notice(f"preparing the graph, once: {stage}")

    return progress
