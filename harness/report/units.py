"""How figures are written: titles, units, signs."""

from __future__ import annotations

from collections.abc import Callable

from harness.metrics import METRICS
from harness.text import money, number

TITLES = {"hit@1": "Hit@1", "hit@5": "Hit@5", "recall@20": "Recall@20", "mrr": "MRR"}

Unit = Callable[[float | None], str]


def percent(value: float | None) -> str:
    """A share in percent, without the sign."""
    return "-" if value is None else f"{100 * value:.1f}"


def one_decimal(value: float | None) -> str:
    """A plain number with one decimal."""
    return "-" if value is None else f"{value:,.1f}"


UNITS: dict[str, Unit] = {
    **dict.fromkeys(METRICS, percent),
    "cost": money,
    "tokens": number,
    "turns": one_decimal,
    "seconds": one_decimal,
}


def signed(value: float | None, unit: Unit) -> str:
    """A difference with its sign; none where it rounds to nothing."""
    if value is None:
        return unit(None)
    text = unit(abs(value))
    return text if text == unit(0.0) else f"{'-' if value < 0 else '+'}{text}"


def p_value(value: float) -> str:
    """A p-value: three decimals, or its size where that would be 0."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
