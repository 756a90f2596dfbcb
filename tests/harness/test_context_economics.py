"""What the benchmark of context policies promises; the ratios bind."""

from __future__ import annotations

import random

import pytest

from bench.context import Cache, common, even, measure, mixed, recorded, sliding


@pytest.mark.parametrize("window", [128_000, 272_000])
def test_sixty_turns_of_4000_token_results(window: int) -> None:
    steps = list(even(60, 0.0, random.Random(1)))
    found = measure(steps, window, Cache(), [])
    assert found["none"].peak > 240_000
    assert found["ours"].cost <= 0.65 * found["none"].cost
    assert found["ours"].peak <= 0.75 * 128_000 + 5_000
    turns, slid = sliding(steps, found["ours"].peak, window, Cache())
    assert turns >= 10 and 0.9 * found["ours"].peak <= slid.peak <= found["ours"].peak
    assert found["ours"].cost <= 0.3 * slid.cost
    assert found["ours"].cost <= 0.3 * found["dci"].cost


@pytest.mark.parametrize("make", [mixed, recorded])
def test_clearing_never_costs_more_than_not_clearing(make) -> None:  # type: ignore[no-untyped-def]
    for turns in (15, 60, 300):
        found = measure(list(make(turns, 0.2, random.Random(turns))), 128_000, Cache(), [])
        assert found["ours"].cost <= found["none"].cost
        assert found["ours"].peak <= 0.75 * 128_000 + 6_000
        assert found["ours"].reread <= 0.1 * max(1, found["ours"].cleared)


def test_the_cache_has_blocks_and_a_shortest_prefix() -> None:
    cache = Cache(block=128, minimum=1024, price=0.1)
    assert cache.cost(2_000, 1_023) == 2_000
    assert cache.cost(2_000, 1_200) == pytest.approx(2_000 - 0.9 * 1_152)
    assert common(b"abcdef", b"abcxef") == 3
    assert common(b"", b"abc") == 0
    assert common(b"abc", b"abc") == 3
