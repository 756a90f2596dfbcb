"""JSON as models and servers really send it: read leniently, written strictly."""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(data: bytes) -> tuple[Any, bool]:
    """Parse a reply; the flag tells that it needed repair (lone surrogates, NaN, control characters).

    Raises ValueError for what is no JSON at all.
    """
    try:
        return orjson.loads(data), False
    except orjson.JSONDecodeError:
        try:
            return scrub(json.loads(data.decode("utf-8", "replace"), strict=False, parse_constant=lambda _: None)), True
        except RecursionError:
            raise ValueError("nested too deeply") from None


def dumps(value: Any) -> bytes:
    """One line of JSON. Text that is not valid Unicode (half an emoji) is written with U+FFFD in its place."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(scrub(value))


def is_object(text: str) -> bool:
    """Whether a text is a JSON object, as the arguments of a call have to be."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def scrub(value: Any) -> Any:
    """The same value with every text valid Unicode and every number one that JSON can carry."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {scrub(str(key)): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value)
    return value
