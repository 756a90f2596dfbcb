"""Usage in each provider's own words, and its cost."""

from __future__ import annotations

import pytest

from harness.backbones.profiles import Prices
from harness.backbones.usage import cost, parse_usage
from harness.messages import Usage


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        ("12", Usage()),
        ({}, Usage()),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 15},
            },
            Usage(100, 64, 20, 15),
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 64},
                "output_tokens_details": {"reasoning_tokens": 15},
                "total_tokens": 120,
            },
            Usage(100, 64, 20, 15),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}, Usage(9, 4, None, None)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 8}, Usage(9, 8, 1, None)),
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 80,
                "cache_creation_input_tokens": 10,
                "output_tokens": 5,
            },
            Usage(100, 80, 5, None),
        ),
        ({"prompt_tokens": 100, "cache_read_input_tokens": 80, "completion_tokens": 5}, Usage(100, 80, 5, None)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 45,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(10, None, 35, 30),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": None}, Usage(10, None, 5, None)),
        ({"prompt_tokens": True, "completion_tokens": -1, "total_tokens": 2.5}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage(0, None, 0, None)),
    ],
)
def test_parse_usage(reported, usage):
    assert parse_usage(reported) == usage


def test_cost_by_class():
    prices = Prices(input=2.0, cached=0.5, output=8.0)
    assert cost(Usage(1_000_000, 400_000, 100_000, 50_000), prices) == pytest.approx(1.2 + 0.2 + 0.8)
    assert cost(Usage(1_000_000, None, 0, None), Prices(input=2.0, output=8.0)) == 2.0
    assert cost(Usage(1_000_000, 1_000_000, 0, None), Prices(input=2.0, output=8.0)) == 2.0
    apart = Prices(input=0.0, output=8.0, reasoning=1.0)
    assert cost(Usage(0, 0, 1_000_000, 500_000), apart) == pytest.approx(4.5)


@pytest.mark.parametrize("usage", [Usage(None, 0, 5, 0), Usage(5, 0, None, 0), Usage()])
def test_cost_of_unknown_counts_is_unknown(usage):
    assert cost(usage, Prices(1.0, 1.0, 1.0)) is None


def test_cost_at_unknown_prices_is_unknown():
    assert cost(Usage(1, 0, 1, 0), Prices()) is None
    assert cost(Usage(0, 0, 0, 0), Prices()) is None
    assert cost(Usage(1, 0, 1, 0), Prices(input=1.0)) is None
