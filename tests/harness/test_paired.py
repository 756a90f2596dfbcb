"""Paired statistics against hand-worked cases, scipy's bootstrap, statistics from their definitions, and simulation."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.intervals import SEED
from harness.paired import (
    bootstrap_means,
    differences,
    holm,
    mcnemar,
    resolvable_hits,
)


def slow_mcnemar(only_first: int, only_second: int) -> float:
    """Twice the binomial tail by counting, with exact fractions."""
    n, k = only_first + only_second, min(only_first, only_second)
    tail = sum(Fraction(math.comb(n, i), 2**n) for i in range(k + 1))
    return float(min(Fraction(1), 2 * tail))


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (0, 0, 1.0),
        (0, 1, 1.0),  # 2 * 1/2
        (0, 5, 0.0625),  # 2 * 1/32
        (6, 0, 0.03125),  # 2 * 1/64
        (1, 7, 0.0703125),  # 2 * (1 + 8) / 256
        (2, 10, 0.03857421875),  # 2 * (1 + 12 + 66) / 4096
        (4, 4, 1.0),
    ],
)
def test_mcnemar_by_hand(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(p, abs=1e-12)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_from_its_definition(only_first: int, only_second: int) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(slow_mcnemar(only_first, only_second), rel=1e-9)


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .03 .04, times 4 3 2 1: .04 .06 .06 .04, and never less than the one before.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for alpha in (0.05, 0.3, 0.8):
        rejected = set()
        for rank, index in enumerate(order):
            if p_values[index] * (len(p_values) - rank) > alpha:
                break
            rejected.add(index)
        assert {index for index, p in enumerate(adjusted) if p <= alpha} == rejected


def test_the_bootstrap_is_scipys() -> None:
    values = np.random.default_rng(3).choice([-1.0, 0.0, 0.25, 1.0], size=(150, 2), p=[0.1, 0.5, 0.2, 0.2])
    ours = bootstrap_means(values, resamples=2000)
    for column in range(2):
        theirs = stats.bootstrap(
            (values[:, column],), np.mean, n_resamples=2000, batch=500, method="percentile",
            rng=np.random.default_rng(SEED),
        ).confidence_interval  # fmt: skip
        assert ours[column] == pytest.approx([theirs.low, theirs.high], abs=1e-12)


def test_the_bootstrap_by_loops() -> None:
    values = [0.5, -1.0, 0.0, 1.0, 0.25]
    random = np.random.default_rng(11)
    means = sorted(sum(values[i] for i in random.integers(5, size=5)) / 5 for _ in range(1001))
    low, high = bootstrap_means(np.array(values)[:, np.newaxis], resamples=1001, seed=11)[0]
    assert (low, high) == pytest.approx((means[25], means[975]))  # 2.5 % and 97.5 % of 1,000 steps


def test_memory_stays_bounded() -> None:
    values = np.random.default_rng(0).random((20_000, 3))
    tracemalloc.start()
    bootstrap_means(values, resamples=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # 500 resamples at once would be 80 MB of indices alone


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(8)
    hits = 0
    for _ in range(300):
        draws = random.choice([-1.0, 0.0, 1.0], size=(120, 1), p=[0.1, 0.7, 0.2])
        low, high = bootstrap_means(draws, resamples=1000)[0]
        hits += low <= 0.1 <= high
    assert 0.90 <= hits / 300 <= 0.99


def test_differences_by_hand() -> None:
    first = np.array([[1.0, 10.0], [0.0, 20.0], [0.0, np.nan], [1.0, 30.0]])
    second = np.array([[1.0, 13.0], [1.0, 20.0], [1.0, 7.0], [0.0, 33.0]])
    hit, cost = differences(first, second, bounded=0)
    assert (hit.n, hit.first, hit.second, hit.difference) == (4, 0.5, 0.75, 0.25)
    assert (cost.n, cost.first, cost.second, cost.difference) == (3, 20.0, 22.0, 2.0)
    # sd of (0, 1, 1, -1) is sqrt((0 + 1 + 1 + 1 - 4/16) / 3) = .957427; times 2.80158 / 2.
    assert hit.resolvable == pytest.approx(0.957427 * 2.801585 / 2, abs=1e-5)
    assert cost.interval is not None
    assert cost.interval[0] >= 0
    assert cost.interval[1] <= 3


def test_equal_differences_leave_room_for_what_was_not_seen() -> None:
    equal = differences(np.zeros((50, 1)), np.zeros((50, 1)), bounded=9)[0]
    bound = stats.binomtest(0, 50).proportion_ci(method="wilson").high
    assert equal.interval == pytest.approx((-bound, bound))
    assert equal.resolvable is None
    won = differences(np.zeros((50, 1)), np.ones((50, 1)), bounded=9)[0]
    assert won.interval == pytest.approx((1 - 2 * bound, 1.0))
    assert differences(np.zeros((9, 1)), np.full((9, 1), 3.0), bounded=0)[0].interval == (3.0, 3.0)


def test_no_question_and_one_question() -> None:
    none = differences(np.empty((0, 2)), np.empty((0, 2)), bounded=9)
    assert [(d.n, d.difference, d.interval, d.resolvable) for d in none] == [(0, None, None, None)] * 2
    one = differences(np.array([[5.0]]), np.array([[8.0]]), bounded=0)[0]
    assert (one.n, one.difference, one.interval, one.resolvable) == (1, 3.0, None, None)


def test_the_same_pairs_in_another_order_differ_by_chance_alone() -> None:
    random = np.random.default_rng(4)
    first, second = random.random((400, 1)), random.random((400, 1))
    one = differences(first, second, bounded=9)[0]
    other = differences(first[::-1], second[::-1], bounded=9)[0]
    assert one.difference == other.difference
    assert one.interval == pytest.approx(other.interval, abs=0.002)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fewer_than_six_questions_resolve_nothing(n: int) -> None:
    assert resolvable_hits(n, 0) is None


def slow_power(n: int, discordance: float, difference: float) -> float:
    """The power of the exact test, outcome by outcome."""
    share = max(discordance, difference)
    better, worse = (share + difference) / 2, (share - difference) / 2
    power = 0.0
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            if slow_mcnemar(losses, wins) <= 0.05:
                ways = math.comb(n, wins) * math.comb(n - wins, losses)
                power += ways * better**wins * worse**losses * (1 - share) ** (n - wins - losses)
    return power


@pytest.mark.parametrize(("n", "discordant"), [(6, 0), (20, 4), (30, 15)])
def test_the_resolvable_difference_has_the_power_it_claims(n: int, discordant: int) -> None:
    found = resolvable_hits(n, discordant)
    assert found is not None
    assert slow_power(n, discordant / n, found) == pytest.approx(0.8, abs=1e-4)


def test_the_resolvable_difference_is_near_the_textbook_approximation_for_many_questions() -> None:
    # Connor (1987): n = (1.96 sqrt(psi) + .8416 sqrt(psi - d²))² / d².
    found = resolvable_hits(7108, 1400)
    assert found is not None
    psi = 1400 / 7108
    needed = (1.959964 * math.sqrt(psi) + 0.841621 * math.sqrt(psi - found**2)) ** 2 / found**2
    assert needed == pytest.approx(7108, rel=0.02)
