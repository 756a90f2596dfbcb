"""Token counts out of the forms in which providers report them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import Usage


def parse_usage(reported: Any) -> Usage:
    """Usage of one request from a reply's `usage`, whatever the names; None where it says nothing.

    OpenAI (chat and responses), vLLM, llama.cpp, DeepSeek (`prompt_cache_hit_tokens`), Moonshot (`cached_tokens`),
    Anthropic (`input_tokens` without what was read from or written to the cache), xAI and Gemini (reasoning left out of
    the output and found in the total only).
    """
    if not isinstance(reported, Mapping):
        return Usage()
    cached = _first(
        _nested(reported, "prompt_tokens_details", "cached_tokens"),
        _nested(reported, "input_tokens_details", "cached_tokens"),
        _count(reported, "prompt_cache_hit_tokens"),
        _count(reported, "cache_read_input_tokens"),
        _count(reported, "cached_tokens"),
    )
    reasoning = _first(
        _nested(reported, "completion_tokens_details", "reasoning_tokens"),
        _nested(reported, "output_tokens_details", "reasoning_tokens"),
        _count(reported, "reasoning_tokens"),
    )
    given = _count(reported, "prompt_tokens")
    if given is None and (given := _count(reported, "input_tokens")) is not None:
        given += _count(reported, "cache_read_input_tokens") or 0
        given += _count(reported, "cache_creation_input_tokens") or 0
    output = _first(_count(reported, "completion_tokens"), _count(reported, "output_tokens"))
    total = _count(reported, "total_tokens")
    if total is not None and given is not None and output is not None and total > given + output:
        output = total - given
    return Usage(given, cached, output, reasoning)


def _count(table: Mapping[str, Any], key: str) -> int | None:
    value = table.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _nested(table: Mapping[str, Any], outer: str, inner: str) -> int | None:
    value = table.get(outer)
    return _count(value, inner) if isinstance(value, Mapping) else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
