"""The metrics against cases worked by hand and against a second, slow implementation of the same definitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import ZERO, Scores, score_answer


def everything(node: int) -> bool:
    return True


@pytest.mark.parametrize(
    ("ids", "gold", "expected"),
    [
        ([7], [7], (1, 1, 1, 1)),
        ([3, 7], [7], (0, 1, 1, 1 / 2)),
        ([1, 2, 3, 4, 5, 7], [7], (0, 0, 1, 1 / 6)),
        ([7, 8], [7, 8, 9, 10], (1, 1, 1 / 2, 1)),
        ([], [7], (0, 0, 0, 0)),  # an empty answer
        ([1, 2], [7], (0, 0, 0, 0)),
        ([3, 3, 3, 3, 3, 7], [7], (0, 1, 1, 1 / 2)),  # duplicates take no rank
        ([7, 7], [7, 8], (1, 1, 1 / 2, 1)),  # and aren't credited twice
        ([*range(100, 119), 7], [7], (0, 0, 1, 1 / 20)),
        ([*range(100, 120), 7], [7], (0, 0, 0, 1 / 21)),  # recall stops at 20, the reciprocal rank doesn't
        ([7], [7, 7], (1, 1, 1, 1)),  # gold with repeats, as in STaRK-Prime
    ],
)
def test_worked_by_hand(ids: list[int], gold: list[int], expected: tuple[float, ...]) -> None:
    assert score_answer(ids, gold, everything) == pytest.approx(expected)


def test_ids_that_are_no_candidates_take_no_rank() -> None:
    assert score_answer([1, 3, 2], [2], lambda node: node % 2 == 0) == (1, 1, 1, 1)


def test_gold_that_is_no_candidate_leaves_the_denominator() -> None:
    assert score_answer([2, 4], [2, 3, 5, 4], lambda node: node % 2 == 0).recall20 == 1


def test_gold_without_a_candidate_scores_nothing() -> None:
    assert score_answer([3], [3], lambda node: node % 2 == 0) == ZERO


def slow(ids: Sequence[int], gold: Sequence[int], candidates: Collection[int]) -> Scores:
    """STaRK's own way: a score for every candidate, sorted; only what was returned can be credited."""
    returned: list[int] = []
    for node in ids:
        if node in candidates and returned.count(node) == 0:
            returned.append(node)
    points = {node: len(returned) - returned.index(node) if node in returned else 0 for node in candidates}
    ranking = sorted((node for node in points if points[node] > 0), key=lambda node: -points[node])
    relevant = [node in gold for node in ranking]
    truth = len([node for node in candidates if node in gold])
    if truth == 0 or not any(relevant):
        return Scores(0, 0, 0, 0)
    return Scores(
        hit1=float(any(relevant[:1])),
        hit5=float(any(relevant[:5])),
        recall20=len([hit for hit in relevant[:20] if hit]) / truth,
        mrr=max(1 / rank for rank, hit in enumerate(relevant, 1) if hit),
    )


nodes = st.integers(0, 60)


@given(ids=st.lists(nodes, max_size=50), gold=st.lists(nodes, max_size=30), candidates=st.sets(nodes))
def test_same_as_the_slow_implementation(ids: list[int], gold: list[int], candidates: set[int]) -> None:
    assert score_answer(ids, gold, candidates.__contains__) == pytest.approx(slow(ids, gold, candidates))


@given(st.permutations(range(20)), st.sets(st.integers(0, 40), min_size=1))
def test_reordering_twenty_ids_leaves_recall_as_it_is(order: list[int], gold: set[int]) -> None:
    assert score_answer(order, gold, everything).recall20 == score_answer(range(20), gold, everything).recall20
