"""Shares drawn as coloured bars, and the key to their colours."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.html import Safe, h, join

COLOURS = 8  # that page.css has


def bar(shares: Sequence[float]) -> Safe:
    """Parts of a whole side by side, scaled to fill it. What they are is said in figures next to it."""
    whole = sum(shares) or 1.0
    parts = [h("i", class_=_colour(i), style=f"width:{100 * share / whole:.2f}%") for i, share in enumerate(shares)]
    return h("div", parts, class_="parts", aria_hidden="true")


def legend(labels: Sequence[str]) -> Safe:
    """Which colour is what, in the order of the parts."""
    return h("p", [join([h("i", class_=_colour(i)), label]) for i, label in enumerate(labels)], class_="legend dim")


def _colour(position: int) -> str:
    return f"p{position % COLOURS + 1}"
