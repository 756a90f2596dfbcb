"""JSON Schemas as plain functions, for data of which nearly all is valid: hundreds of times jsonschema's speed.

Only says whether a value is valid; what is wrong with it is jsonschema's to say. Knows the keywords that our schemas
use, with their meaning in draft 2020-12, and refuses any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Check: TypeAlias = Callable[[Any], bool]

_ANNOTATIONS = {"$schema", "$id", "title", "description"}


def compile_schema(schema: Mapping[str, Any]) -> Check:
    """A function that says whether a value is valid. Raises ValueError for a keyword that isn't known."""
    unknown = schema.keys() - _KEYWORDS.keys() - _ANNOTATIONS - {"then", "else"}
    if unknown:
        raise ValueError(f"no support for the keyword '{min(unknown)}'")
    checks = [_KEYWORDS[key](value, schema) for key, value in schema.items() if key in _KEYWORDS]
    return checks[0] if len(checks) == 1 else _all(checks)


def _all(checks: list[Check]) -> Check:
    def check_all(value: Any) -> bool:
        for check in checks:  # noqa: SIM110 - a loop is twice as fast as all() over a generator
            if not check(value):
                return False
        return True

    return check_all


def _is_integer(value: Any) -> bool:
    return (type(value) is int) or (type(value) is float and value.is_integer())


_TYPES: Mapping[str, Check] = {
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "string": lambda value: type(value) is str,
    "integer": _is_integer,
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}


def _type(names: str | list[str], _: Mapping[str, Any]) -> Check:
    if isinstance(names, str):
        return _TYPES[names]
    checks = [_TYPES[name] for name in names]
    return lambda value: any(check(value) for check in checks)


def _properties(properties: Mapping[str, Any], _: Mapping[str, Any]) -> Check:
    checks = [(name, compile_schema(schema)) for name, schema in properties.items() if schema]

    def check(value: Any) -> bool:
        if type(value) is dict:
            for name, inner in checks:
                if name in value and not inner(value[name]):
                    return False
        return True

    return check


def _required(names: list[str], _: Mapping[str, Any]) -> Check:
    needed = frozenset(names)
    return lambda value: type(value) is not dict or value.keys() >= needed


def _additional(allowed: Any, schema: Mapping[str, Any]) -> Check:
    known = frozenset(schema.get("properties", {}))
    if allowed is False:
        return lambda value: type(value) is not dict or value.keys() <= known
    inner = compile_schema(allowed)
    return lambda value: type(value) is not dict or all(inner(value[key]) for key in value.keys() - known)


def _items(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Check:
    inner = compile_schema(schema)
    return lambda value: type(value) is not list or all(inner(item) for item in value)


def _any_of(schemas: list[Mapping[str, Any]], _: Mapping[str, Any]) -> Check:
    checks = [compile_schema(schema) for schema in schemas]
    return lambda value: any(check(value) for check in checks)


def _all_of(schemas: list[Mapping[str, Any]], _: Mapping[str, Any]) -> Check:
    check_all = _all([compile_schema(schema) for schema in schemas])
    name, cases = _cases(schemas)
    if name is None:
        return check_all

    def check_case(value: Any) -> bool:
        if type(value) is not dict or type(value.get(name)) is not str:
            return check_all(value)
        case = cases.get(value[name])
        return case is None or case(value)

    return check_case


def _cases(schemas: list[Mapping[str, Any]]) -> tuple[str | None, dict[str, Check]]:
    """The property that decides between the schemas, and each one's check by its value; None if there is none."""
    names: set[str] = set()
    cases: dict[str, Check] = {}
    for schema in schemas:
        properties = schema.get("if", {}).get("properties", {})
        if schema.keys() == {"if", "then"} and schema["if"].keys() == {"properties"} and len(properties) == 1:
            ((name, test),) = properties.items()
            if test.keys() == {"const"} and isinstance(test["const"], str):
                names.add(name)
                cases[test["const"]] = compile_schema(schema["then"])
    return (names.pop(), cases) if len(names) == 1 and len(cases) == len(schemas) else (None, {})


def _if(condition: Mapping[str, Any], schema: Mapping[str, Any]) -> Check:
    test = compile_schema(condition)
    then, otherwise = (compile_schema(schema.get(key, {})) for key in ("then", "else"))
    return lambda value: then(value) if test(value) else otherwise(value)


def _const(expected: Any, _: Mapping[str, Any]) -> Check:
    return lambda value: _same(value, expected)


def _enum(choices: list[Any], _: Mapping[str, Any]) -> Check:
    return lambda value: any(_same(value, choice) for choice in choices)


def _same(value: Any, expected: Any) -> bool:
    return bool(value == expected) and isinstance(value, bool) == isinstance(expected, bool)


def _minimum(least: float, _: Mapping[str, Any]) -> Check:
    return lambda value: type(value) not in (int, float) or value >= least


def _exclusive_minimum(least: float, _: Mapping[str, Any]) -> Check:
    return lambda value: type(value) not in (int, float) or value > least


def _pattern(pattern: str, _: Mapping[str, Any]) -> Check:
    search = re.compile(pattern).search
    return lambda value: type(value) is not str or search(value) is not None


def _unique(wanted: bool, _: Mapping[str, Any]) -> Check:
    def check(value: Any) -> bool:
        if not wanted or type(value) is not list:
            return True
        if all(type(item) in (int, str) for item in value):
            return len(set(value)) == len(value)
        return not any(_same(one, other) for index, one in enumerate(value) for other in value[:index])

    return check


def _max_properties(most: int, _: Mapping[str, Any]) -> Check:
    return lambda value: type(value) is not dict or len(value) <= most


_KEYWORDS: Mapping[str, Callable[[Any, Mapping[str, Any]], Check]] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "allOf": _all_of,
    "if": _if,
    "const": _const,
    "enum": _enum,
    "minimum": _minimum,
    "exclusiveMinimum": _exclusive_minimum,
    "pattern": _pattern,
    "uniqueItems": _unique,
    "maxProperties": _max_properties,
}
