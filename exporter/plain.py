"""Python values as JSON values, for sources whose values can be anything that Python has."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from exporter.rows import MAX_DEPTH

MAX_VALUES = 10_000_000  # of one node
MAX_TEXT = 1 << 30  # characters of one node


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as JSON keeps it: NaN and infinities as null, tuples and sets as lists (sets sorted), keys as texts.

    Halves of surrogate pairs, which UTF-8 can't hold, become U+FFFD. Raises ValueError for a value that JSON has
    nothing for, keys that would become the same text, and values nested too deep.
    """
    if isinstance(value, str):
        return str(value) if value.isascii() else _whole_characters(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, set | frozenset):
        value = sorted(value, key=lambda item: (type(item).__name__, item))
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return _plain_dict(value, depth)
    raise ValueError(f"a value of type {type(value).__name__}, which JSON has nothing for")


def _plain_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    made = {_key(key): plain(item, depth + 1) for key, item in value.items()}
    if len(made) < len(value):
        raise ValueError("two keys of a dict are the same text")
    return made


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _whole_characters(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return repr(key)
    raise ValueError(f"a key of type {type(key).__name__}")


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def as_cell(value: Any) -> str | None:
    """A JSON value as an edge's attribute: texts as they are, anything else as compact JSON, null as None. NaN and
    infinities are null."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return None if isinstance(value, float) else as_cell(plain(value))


def check_size(attributes: Mapping[Any, Any]) -> None:
    """Raises ValueError where a node holds more than can be written.

    A few bytes of a pickle can stand for more than memory holds, by naming the same list again and again.
    """
    values, text = 0, 0
    pending: list[Any] = [attributes]
    while pending:
        container = pending.pop()
        items = container.values() if isinstance(container, Mapping) else container
        values += len(container)
        if values > MAX_VALUES or text > MAX_TEXT:
            raise ValueError(f"more than {MAX_VALUES:,} values or {MAX_TEXT:,} characters")
        for item in items:
            kind = type(item)
            if kind is str:
                text += len(item)
            elif kind in (list, dict, tuple, set, frozenset):
                pending.append(item)
