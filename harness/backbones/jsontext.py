"""JSON as models and servers really send it: read leniently, written strictly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

PIECE: Final = 64 * 1024  # bytes, about


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


class Body:
    """`head`, the items with commas between, `tail`: bytes of a known length, made in pieces as they are sent.

    Megabytes in one piece would be copied several times on the way to the socket, each time into fresh pages.
    """

    def __init__(self, head: bytes, items: Sequence[bytes], tail: bytes) -> None:
        self._head, self._items, self._tail = head, items, tail
        commas = max(0, len(items) - 1)
        self.length = len(head) + sum(map(len, items)) + commas + len(tail)

    def __iter__(self) -> Iterator[bytes]:
        lead, first, length = self._head, 0, len(self._head)
        for number, item in enumerate(self._items):
            if length >= PIECE:
                yield lead + b",".join(self._items[first:number])
                lead, first, length = b"," if number else b"", number, 0
            length += len(item)
        yield lead + b",".join(self._items[first:]) + self._tail


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
