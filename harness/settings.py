"""Nested settings as frozen dataclasses: built from TOML tables, overridden by `key=value`, never by surprise.

Unknown keys and wrong types are errors that name what is possible.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from harness.errors import UserError

T = TypeVar("T")

LONGEST = 2_000_000  # seconds, 23 days: what a wait on a socket can take
SMALLEST_WINDOW = 1_000  # tokens; no prompt and answer fit into less


class Unfit(ValueError):
    """A value that a settings class refuses. `hint` says what to do; else the default of field `key` is named."""

    def __init__(self, message: str, hint: str = "", key: str = "") -> None:
        super().__init__(message)
        self.hint, self.key = hint, key


def build(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Make the dataclass `cls` from a table. `where` names the source in errors. Raises UserError.

    A field's metadata may name its `unit`, for hints.
    """
    hints = get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cast(Any, cls))}
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in fields:
            raise UserError(f"{where}: unknown key '{key}'", _known(cls))
        try:
            values[key] = _convert(hints[key], value, f"{where}: {key}")
        except Unfit as error:
            raise UserError(str(error), error.hint or _default(fields[key])) from None
    try:
        return cls(**values)
    except Unfit as error:
        hint = error.hint or (_default(fields[error.key]) if error.key in fields else "")
        raise UserError(f"{where}: {error}", hint) from None
    except (TypeError, ValueError) as error:  # a field without a value; a value that __post_init__ refuses
        raise UserError(f"{where}: {error}") from None


def _known(cls: Any) -> str:
    return f"known keys: {', '.join(sorted(field.name for field in dataclasses.fields(cls)))}"


def _default(field: dataclasses.Field[Any]) -> str:
    """A hint that names a field's default, where it has a plain one."""
    if field.default is dataclasses.MISSING:
        return "the default is {}" if field.default_factory is dict else ""
    text = {None: "none", True: "true", False: "false"}.get(field.default, str(field.default))
    unit = f" {field.metadata['unit']}" if "unit" in field.metadata else ""
    return f"the default is {text}{unit}"


def check_range(
    settings: object, *names: str, least: float | None = None, above: float | None = None, most: float | None = None
) -> None:
    """Raise Unfit, with the range, for a field of `settings` outside of it. None is in every range.

    `least` and `most` are in the range, `above` is not.
    """
    for name in names:
        value = getattr(settings, name)
        if value is None:
            continue
        low = least if above is None else above
        if (low is not None and (value < low or value == above)) or (most is not None and value > most):
            ends = [] if low is None else [f"at least {low:,}" if above is None else f"greater than {above:,}"]
            ends += [] if most is None else [f"at most {most:,}"]
            raise Unfit(f"{name} is {value:,}; it must be {' and '.join(ends)}", key=name)


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
            raise Unfit(f"{where} is a table, not {value!r}", _known(hint))
        return build(cast(type[Any], hint), value, where)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        (inner,) = [arg for arg in get_args(hint) if arg is not type(None)]
        return _scalar(inner, value, where, " or none") if inner in _NAMES else _convert(inner, value, where)
    if origin is Literal:
        if value not in get_args(hint):
            choices = ", ".join(str(arg) for arg in get_args(hint))
            raise Unfit(f"{where} is {value!r}", f"possible: {choices}")
        return value
    if origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise Unfit(f"{where} is a list, not {value!r}", f'for example ["{value}"]')
        inner = get_args(hint)[0]
        return tuple(_convert(inner, item, where) for item in value)
    return _scalar(origin or hint, value, where)


def _scalar(hint: Any, value: Any, where: str, further: str = "") -> Any:
    odd = isinstance(value, float) and not math.isfinite(value)
    odd = odd or (isinstance(value, int) and abs(value) > _LARGEST)
    as_float = hint is float and isinstance(value, int)
    if odd or not (as_float or isinstance(value, hint)) or (isinstance(value, bool) and hint is not bool):
        raise Unfit(f"{where} takes {_NAMES.get(hint, hint.__name__)}{further}, not {value!r}")
    return float(value) if as_float else value


_LARGEST = 2**53  # whole numbers that JSON carries safely (RFC 8259, section 6)
_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table"}
