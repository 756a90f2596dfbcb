"""The text of a node that searches look into: its name and all its attributes hold, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Document = Callable[[Mapping[str, Any]], str]
"""From a node's record (`name`, `node_type`, `attributes`, …) to its text."""


def plain_document(record: Mapping[str, Any]) -> str:
    """The name, then every text and number among the attributes' values, in their order; keys are left out."""
    return "\n".join([record["name"], *_texts(record["attributes"])])


def _texts(value: Any) -> Iterator[str]:
    """Depth first, without recursion: values may be nested deeply."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(reversed(value.values()))
        elif isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)
