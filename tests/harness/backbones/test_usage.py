"""Usage in each provider's own words."""

from __future__ import annotations

import pytest

from harness.backbones.usage import parse_usage
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
