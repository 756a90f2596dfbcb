"""An audit's figures in words: the same in the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.audit.tally import Tally
from harness.text import number

Row = Mapping[str, Any]  # as `Audit.as_dict` has it


def rate(row: Row) -> str:
    """A row's rate in percent."""
    return f"{row['rate'] * 100:.1f} %" if row["rate"] is not None else "-"


def interval(row: Row) -> str:
    """The rate's interval in percent, empty where there is none."""
    return f"[{row['interval'][0] * 100:.1f}, {row['interval'][1] * 100:.1f}]" if row["interval"] else ""


def ends(pair: Sequence[float]) -> str:
    """Two ends of a range."""
    return f"[{figure(pair[0])}, {figure(pair[1])}]"


def figure(value: float) -> str:
    """A count or a measured value."""
    if float(value).is_integer():
        return number(value)
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def place_text(place: Row) -> str:
    """A pointer: file, line, and what is there."""
    where = place["file"] if place["line"] is None else f"{place['file']}:{place['line']}"
    return f"{where} ({place['what']})" if place["what"] else str(where)


def verdict(alarms: Sequence[tuple[str, str, Tally]]) -> str:
    """The sentence before the alarms."""
    if not alarms:
        return "Nothing was found that casts doubt on the run."
    return "Worth a look before the run is trusted:"


def alarm_text(title: str, label: str, tally: Tally) -> str:
    """One alarm."""
    return f"{title}{': ' * bool(label)}{label}".replace("_", " ") + f": {figure(tally.count)} of {figure(tally.of)}"
