"""Statistics of two systems that were asked the same questions: everything is computed on each question's difference.

What each figure means, and why it was chosen, is in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from harness.intervals import RESAMPLES, SEED, Z

ALPHA = 0.05
POWER = 0.8
_BLOCK = 1_000_000  # indices drawn at a time, so that memory stays bounded (24 bytes each)
_NEGLIGIBLE = 1e-12  # probability that is left out at either end of a sum

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """One quantity over the same n questions: both means, the second minus the first, its 95 % interval.

    `resolvable` is the smallest difference that n questions like these show with 80 % power. Where nothing can be
    said (no question; for the interval of an unbounded quantity, fewer than two), it is None.
    """

    n: int
    first: float | None
    second: float | None
    difference: float | None
    interval: tuple[float, float] | None
    resolvable: float | None


@dataclass(frozen=True)
class Discordance:
    """Questions that only one of the two got right, and the exact McNemar p; `adjusted` is Holm's, over the family."""

    only_first: int
    only_second: int
    p: float
    adjusted: float


def differences(first: Floats, second: Floats, bounded: int) -> list[Difference]:
    """Compare each column of two (questions, quantities) arrays, row by row.

    The first `bounded` columns hold values between 0 and 1. A column with a NaN anywhere loses those rows.
    """
    results: dict[int, Difference] = {}
    for mask, columns, ends in _by_known(second - first):
        for position, column in enumerate(columns):
            values = second[mask, column] - first[mask, column]
            results[column] = Difference(
                n=len(values),
                first=_mean(first[mask, column]),
                second=_mean(second[mask, column]),
                difference=_mean(values),
                interval=_interval(values, None if ends is None else ends[position], bounded=column < bounded),
                resolvable=_resolvable_mean(values),
            )
    return [results[column] for column in range(first.shape[1])]


def known_means(values: Floats) -> list[tuple[int, float | None, tuple[float, float] | None]]:
    """n, mean and 95 % bootstrap interval of each column of (questions, quantities), without its NaNs."""
    results: dict[int, tuple[int, float | None, tuple[float, float] | None]] = {}
    for mask, columns, ends in _by_known(values):
        for position, column in enumerate(columns):
            known = values[mask, column]
            interval = _interval(known, None if ends is None else ends[position], bounded=False)
            results[column] = (len(known), _mean(known), interval)
    return [results[column] for column in range(values.shape[1])]


def _by_known(values: Floats) -> Iterator[tuple[NDArray[np.bool_], list[int], Floats | None]]:
    """Columns that are known for the same rows: which rows, which columns, and their intervals (none below 2 rows).

    They share one bootstrap, whose draws cost more than the sums.
    """
    known = ~np.isnan(values)
    for mask in np.unique(known, axis=1).T:
        columns = [i for i in range(values.shape[1]) if np.array_equal(known[:, i], mask)]
        block = values[np.ix_(mask, columns)]
        yield mask, columns, bootstrap_means(block) if len(block) > 1 else None


def bootstrap_means(values: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """2.5 % and 97.5 % points of the means of resampled rows, (columns, 2), for values of shape (rows, columns).

    Percentile bootstrap (Efron 1979). The columns share their resamples, and a seed gives the same ones every time.
    """
    rows, columns = values.shape
    random = np.random.default_rng(seed)
    at_a_time = max(1, _BLOCK // rows)
    means = np.empty((resamples, columns))
    for start in range(0, resamples, at_a_time):
        block = means[start : start + at_a_time]
        drawn = random.integers(rows, size=(len(block), rows))
        drawn += np.arange(len(block))[:, np.newaxis] * rows
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)  # that each row was drawn
        block[:] = times @ values / rows
    return np.percentile(means, [2.5, 97.5], axis=0).T


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar p from the two discordant counts; 1 where there are none."""
    discordant = only_first + only_second
    return float(stats.binomtest(only_first, discordant).pvalue) if discordant else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979) of one family's p-values, in their order."""
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = least
    return adjusted


def resolvable_hits(n: int, discordant: int) -> float | None:
    """The smallest difference of two hit rates that the exact McNemar test at 5 % shows with 80 % power.

    The share of discordant questions is taken as observed, or as the difference itself where that is larger. None
    where n questions can show none at all (fewer than six, before power is asked for).
    """
    low, high = 0.0, 1.0
    if not n or _mcnemar_power(n, discordant / n, high) < POWER:
        return None
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if _mcnemar_power(n, discordant / n, middle) >= POWER else (middle, high)
    return high


def _mcnemar_power(n: int, discordance: float, difference: float) -> float:
    """P(exact McNemar p <= 5 %): the discordant count is binomial, and so is its split between the two systems."""
    share = max(discordance, difference)
    if not share:
        return 0.0
    fewest, most = stats.binom.ppf([_NEGLIGIBLE, 1 - _NEGLIGIBLE], n, share)
    counts = np.arange(fewest, most + 1)
    rejected = stats.binom.ppf(ALPHA / 2, counts, 0.5) - 1  # the largest minority that is still significant
    better = (1 + difference / share) / 2
    power = stats.binom.cdf(rejected, counts, better) + stats.binom.cdf(rejected, counts, 1 - better)
    return float(np.sum(stats.binom.pmf(counts, n, share) * power))


def _resolvable_mean(values: Floats) -> float | None:
    """(z of 97.5 % + z of 80 %) standard errors of the mean difference: the normal approximation for a paired mean."""
    if len(values) < 2:
        return None
    deviation = float(np.std(values, ddof=1))
    return (Z + float(stats.norm.ppf(POWER))) * deviation / math.sqrt(len(values)) if deviation else None


def _interval(values: Floats, ends: Floats | None, *, bounded: bool) -> tuple[float, float] | None:
    if len(values) and bounded and np.all(values == values[0]):
        return _interval_of_equal(float(values[0]), len(values))
    return (float(ends[0]), float(ends[1])) if ends is not None else None


def _interval_of_equal(value: float, n: int) -> tuple[float, float]:
    """Where all n differences are equal a bootstrap has no width, whatever n is.

    A difference that n questions don't show may hold of up to a share of z²/(n + z²) of all questions (Wilson's
    upper bound for 0 of n), and be anything from -1 to 1 there.
    """
    unseen = Z * Z / (n + Z * Z)
    return value - unseen * (1 + value), value + unseen * (1 - value)


def _mean(values: Floats) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None
