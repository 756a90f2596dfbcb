"""Counts, their rates and intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.tally import MOST_EXAMPLES, Place, Row, Spread, Tally, fifth
from harness.intervals import wilson

ROWS = st.lists(st.integers(0, 6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), max_size=30)


def tally(rows: list[tuple[float, float]]) -> Tally:
    total = Tally()
    for count, of in rows:
        total.add(Row(count, of))
    return total


def test_one_unit_an_attempt_is_a_plain_proportion() -> None:
    total = tally([(1, 1)] * 7 + [(0, 1)] * 13)
    assert total.rate == 0.35
    assert total.interval() == wilson(7, 20)


def test_units_that_are_alike_within_attempts_count_for_less() -> None:
    alike = tally([(10, 10), (0, 10)] * 5)
    mixed = tally([(5, 10)] * 10)
    (low, high), (narrow_low, narrow_high) = alike.interval(), mixed.interval()
    assert alike.rate == mixed.rate == 0.5
    assert high - low > 2 * (narrow_high - narrow_low)
    assert low == pytest.approx(wilson(5, 10)[0], abs=0.03)  # ten attempts that are all or nothing


def test_an_interval_is_never_narrower_than_for_independent_units() -> None:
    even = tally([(1, 3)] * 20)
    assert even.interval() == pytest.approx(wilson(20, 60))


def test_rates_of_seconds_have_no_such_bound() -> None:
    total = tally([(0.05, 0.1), (0.051, 0.1), (0.049, 0.1)])
    low, high = total.interval()
    assert 0.45 < low < 0.5 < high < 0.55


@pytest.mark.parametrize(
    ("rows", "expected"), [([], (0.0, 1.0)), ([(0, 4)] * 3, wilson(0, 3)), ([(4, 4)], wilson(1, 1))]
)
def test_intervals_at_the_ends_go_by_attempts(rows: list[tuple[float, float]], expected: tuple[float, float]) -> None:
    assert tally(rows).interval() == expected


@given(ROWS, st.integers(0, 30))
def test_parts_add_up(rows: list[tuple[int, int]], cut: int) -> None:
    whole, first, second = tally(rows), tally(rows[:cut]), tally(rows[cut:])
    first.merge(second)
    assert vars(first) == vars(whole)
    low, high = whole.interval()
    assert 0 <= low <= high <= 1
    if whole.rate is not None:
        assert low <= whole.rate <= high


def test_the_first_examples_are_kept() -> None:
    places = [Place("a", line) for line in range(1, 9)]
    total, other = Tally(), Tally()
    total.add(Row(3, 3, places[4:]))
    other.add(Row(3, 3, places[:4]))
    total.merge(other)
    assert total.places == places[:MOST_EXAMPLES]
    assert total.as_dict()["examples"][0] == {"file": "a", "line": 1, "what": ""}


def test_the_middle_of_values() -> None:
    spread = Spread()
    spread.add((value, Place("x", value)) for value in range(1, 101))
    figures = spread.as_dict()
    assert (figures["n"], figures["mean"], figures["median"]) == (100, 50.5, 50.5)
    assert figures["interval"] == [41, 61]  # the 41st and the 61st: binomial 0.025 and 0.975 of 100
    assert figures["quartiles"] == [25.75, 75.25]
    assert Spread([7.0]).as_dict()["quartiles"] == [7.0, 7.0]
    assert Spread().as_dict()["median"] is None


@given(st.integers(1, 60))
def test_fifths_are_in_order_and_even(total: int) -> None:
    found = [fifth(position, total) for position in range(total)]
    assert found == sorted(found)
    assert set(found) <= {1, 2, 3, 4, 5}
    assert max(map(found.count, range(1, 6))) - min(map(found.count, range(1, 6))) <= 1
