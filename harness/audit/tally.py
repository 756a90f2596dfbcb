"""Counts with a rate, a 95 % interval and pointers to examples; they add up, attempt by attempt and part by part."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.intervals import Z, wilson

MOST_EXAMPLES = 5


class Place(NamedTuple):
    """Where to look: a file of the run folder, a line in it (from 1, 0 for the whole file), and what is there."""

    file: str
    line: int
    what: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `line` is null for a whole file."""
        return {"file": self.file, "line": self.line or None, "what": self.what}


@dataclass(frozen=True)
class Row:
    """What one attempt adds to a check: `count` out of `of`. `label` tells the rows of one check apart."""

    count: float
    of: float
    places: Sequence[Place] = ()
    label: str = ""


@dataclass
class Tally:
    """A row of a check over many attempts. Sums of squares are kept so that the interval needs no second pass."""

    count: float = 0
    of: float = 0
    clusters: int = 0
    count_squares: float = 0
    of_squares: float = 0
    products: float = 0
    whole: bool = True  # things are counted, rather than seconds summed up
    places: list[Place] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Add what one attempt has."""
        if not row.of and not row.count:
            return
        self.count += row.count
        self.of += row.of
        self.clusters += 1
        self.count_squares += row.count * row.count
        self.of_squares += row.of * row.of
        self.products += row.count * row.of
        self.whole = self.whole and float(row.of).is_integer()
        self.places += row.places[: MOST_EXAMPLES - len(self.places)] if len(self.places) < MOST_EXAMPLES else ()

    def merge(self, other: Tally) -> None:
        """Add another part of the same row; examples stay those that come first by file and line."""
        for name in ("count", "of", "clusters", "count_squares", "of_squares", "products"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.whole = self.whole and other.whole
        self.places = sorted([*self.places, *other.places])[:MOST_EXAMPLES]

    @property
    def rate(self) -> float | None:
        """count / of, None where there is nothing to count."""
        return self.count / self.of if self.of else None

    def interval(self) -> tuple[float, float]:
        """95 % interval of the rate, attempts being the sampling unit.

        Wilson's interval for the effective sample size: what is counted within one attempt (calls, programs, ids)
        is alike, so the variance is that of a ratio of sums over attempts (Cochran 1977, 6.4), and the sample size
        is the one of independent units that would have it, at most the units counted. For rates of 0 and 1, which
        have no variance to go by, it's the number of attempts.
        """
        rate = self.rate
        if rate is None:
            return 0.0, 1.0
        if not 0 < rate < 1 or self.clusters < 2 or self.of_squares == self.of:
            size = float(self.clusters)
        else:
            squares = self.count_squares - 2 * rate * self.products + rate * rate * self.of_squares
            variance = squares * self.clusters / (self.clusters - 1) / (self.of * self.of)
            size = rate * (1 - rate) / variance if variance > 1e-18 else math.inf
            size = min(size, self.of if self.whole else 1e12)  # never narrower than for independent units
        rate = min(max(rate, 0.0), 1.0)
        return wilson(rate * size, size)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "count": _plain(self.count),
            "of": _plain(self.of),
            "rate": self.rate,
            "interval": list(self.interval()) if self.of else None,
            "examples": [place.as_dict() for place in self.places],
        }


@dataclass
class Spread:
    """Values of which the middle is of interest: lengths, numbers per question. `largest` are those, and where."""

    values: list[float] = field(default_factory=list)
    largest: list[tuple[float, Place]] = field(default_factory=list)

    def add(self, values: Iterable[tuple[float, Place]]) -> None:
        """Add what one attempt has."""
        for value, place in values:
            self.values.append(value)
            if len(self.largest) < MOST_EXAMPLES or value > self.largest[-1][0]:
                self._keep([(value, place)])

    def merge(self, other: Spread) -> None:
        """Add another part, whose attempts come behind this one's."""
        self.values += other.values
        self._keep(other.largest)

    def _keep(self, more: Sequence[tuple[float, Place]]) -> None:
        found = sorted([*self.largest, *more], key=lambda each: (-each[0], each[1]))
        self.largest = found[:MOST_EXAMPLES]

    def as_dict(self) -> dict[str, Any]:
        """n, mean, median with its 95 % interval (order statistics, Conover 1999), quartiles, places of the largest."""
        ordered = sorted(self.values)
        if not ordered:
            return {"n": 0, "mean": None, "median": None, "interval": None, "quartiles": None, "examples": []}
        n = len(ordered)
        spread = Z * math.sqrt(n) / 2
        low, high = max(0, math.floor(n / 2 - spread)), min(n - 1, math.ceil(n / 2 + spread))
        quartiles = statistics.quantiles(ordered, n=4, method="inclusive") if n > 1 else [ordered[0]] * 3
        return {
            "n": n,
            "mean": math.fsum(ordered) / n,
            "median": statistics.median(ordered),
            "interval": [ordered[low], ordered[high]],
            "quartiles": [quartiles[0], quartiles[2]],
            "examples": [{**place.as_dict(), "value": _plain(value)} for value, place in self.largest],
        }


def fifth(position: int, total: int) -> int:
    """Which fifth (1 to 5) of `total` things the one at `position` (from 0) is in."""
    return bisect.bisect_right([total * part / 5 for part in range(1, 5)], position) + 1


def _plain(value: float) -> float:
    return int(value) if float(value).is_integer() else value
