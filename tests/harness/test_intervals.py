"""Confidence intervals against published values, an independent computation and the coverage they promise."""

from __future__ import annotations

import random
import statistics

import pytest

from harness.intervals import bootstrap, interval, wilson


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [  # Newcombe (1998), table I, score method without continuity correction
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0000, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_as_published(successes: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(successes, n) == pytest.approx(expected, abs=5e-5)


def test_bootstrap_agrees_with_a_plain_one() -> None:
    draw = random.Random(3)
    values = [draw.random() ** 2 for _ in range(80)]
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(10_000))
    assert bootstrap(values) == pytest.approx((means[250], means[9750]), abs=0.005)


def test_the_same_values_have_the_same_interval() -> None:
    values = [0.0, 0.5, 1.0, 0.25] * 9
    assert interval(values) == interval(values)


def test_few_values_that_are_all_right_are_not_certainty() -> None:
    low, high = interval([1.0] * 5)
    assert (low, high) == pytest.approx((0.5655, 1.0), abs=1e-4)
    low, high = interval([0.5] * 5)
    assert low < 0.2
    assert high > 0.8


def test_no_values_say_nothing() -> None:
    assert interval([]) == (0.0, 1.0)


def test_blocks_do_not_change_the_shape_of_large_samples() -> None:
    draw = random.Random(1)
    values = [draw.random() for _ in range(3_000)]
    low, high = bootstrap(values)
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert low < statistics.fmean(values) < high
