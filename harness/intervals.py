"""95 % confidence intervals for the mean of values between 0 and 1.

Proportions (every value 0 or 1) get the Wilson score interval. Other means get the percentile bootstrap, with a
fixed seed so that a score is the same each time it is computed. Where all values are equal the bootstrap has no
width whatever the sample's size, so Wilson's is taken there too: it is the wider one, since no distribution on
[0, 1] with a given mean varies more than 0s and 1s do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z = 1.959963984540054  # two-sided 95 % of the normal distribution
RESAMPLES = 10_000
SEED = 20_240_101
_BLOCK = 4_000_000  # values drawn at a time, so that memory stays bounded


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Low and high end of the 95 % interval for the mean of `values`; (0, 1) when there are none."""
    if not values:
        return 0.0, 1.0
    if set(values) <= {0.0, 1.0} or len(set(values)) == 1:
        return wilson(math.fsum(values), len(values))
    return bootstrap(values)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's score interval for `successes` out of `n`, without continuity correction (Wilson 1927)."""
    p = successes / n
    centre = p + Z * Z / (2 * n)
    spread = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    low = 0.0 if p == 0 else (centre - spread) / scale
    high = 1.0 if p == 1 else (centre + spread) / scale
    return max(0.0, low), min(1.0, high)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """2.5 % and 97.5 % points of the means of resamples drawn with replacement (Efron 1979)."""
    sample = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(SEED)
    rows = max(1, _BLOCK // len(sample))
    means = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, rows):
        block = means[start : start + rows]
        block[:] = sample[random.integers(len(sample), size=(len(block), len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
