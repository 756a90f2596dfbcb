"""Nested settings as frozen dataclasses: built from TOML tables, overridden by `key=value`, never by surprise.

Unknown keys and wrong types are errors that name what is possible.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from harness.errors import UserError

T = TypeVar("T")


def build(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Make the dataclass `cls` from a table. `where` names the source in errors. Raises UserError."""
    hints = get_type_hints(cls)
    known = [f.name for f in dataclasses.fields(cast(Any, cls))]
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in known:
            raise UserError(f"{where}: unknown key '{key}'", f"known keys: {', '.join(sorted(known))}")
        values[key] = _convert(hints[key], value, f"{where}: {key}")
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:  # a field without a value; a value that __post_init__ refuses
        raise UserError(f"{where}: {error}") from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` on top; tables merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def parse_assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """`["limits.turns=20", "answer.max_ids=100"]` as a nested table. Values are TOML, else plain text."""
    table: dict[str, Any] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        parts = key.strip().split(".")
        if not sign or not all(parts):
            raise UserError(f"--set '{pair}' is not key=value", "for example: --set limits.turns=50")
        nested: dict[str, Any] = {parts[-1]: _toml_value(text)}
        for part in reversed(parts[:-1]):
            nested = {part: nested}
        table = merge(table, nested)
    return table


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UserError(f"{where} is a table, not {value!r}")
        return build(cast(type[Any], hint), value, where)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        (inner,) = [arg for arg in get_args(hint) if arg is not type(None)]
        return _convert(inner, value, where)
    if origin is Literal:
        if value not in get_args(hint):
            choices = ", ".join(str(arg) for arg in get_args(hint))
            raise UserError(f"{where} is {value!r}", f"possible: {choices}")
        return value
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise UserError(f"{where} is a list, not {value!r}")
        inner = get_args(hint)[0]
        return tuple(_convert(inner, item, where) for item in value)
    return _scalar(origin or hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise UserError(f"{where} takes {_NAMES.get(hint, hint.__name__)}, not {value!r}")
    return value


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table"}
