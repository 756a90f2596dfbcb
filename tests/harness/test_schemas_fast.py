"""Schemas as functions: they agree with jsonschema on every value."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.schemas import fast_check, validator
from harness.schemas.fast import compile_schema

SCHEMAS = ("attempt", "event", "manifest")
TEXTS = ["", "x", "a" * 64, "start"]
NAMES = st.sampled_from(["a", "b", "type", "turn"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([0.0, 1.5, *TEXTS]))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner))


def recorded() -> list[dict[str, Any]]:
    folder = resources.files("harness") / "demo"
    return [json.loads(line) for path in folder.iterdir() for line in path.read_text("utf-8").splitlines()]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a value."""
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
    return [(value, key) for key, _ in items] + [place for _, inner in items for place in places(inner)]


@pytest.mark.parametrize("name", SCHEMAS)
@given(value=VALUES)
def test_any_value(name: str, value: Any) -> None:
    assert fast_check(name)(value) == validator(name).is_valid(value)


def test_recorded_events_are_valid() -> None:
    assert all(map(fast_check("event"), recorded()))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_events_with_something_changed(data: st.DataObject) -> None:
    event = copy.deepcopy(data.draw(st.sampled_from(recorded())))
    container, key = data.draw(st.sampled_from(places(event)))
    if isinstance(container, dict) and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(VALUES)
    assert fast_check("event")(event) == validator("event").is_valid(event)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["integer", "null"], "minimum": 1},
        {"items": {"enum": [1, "a", None, True]}, "uniqueItems": True},
        {"properties": {"a": {"const": 1}}, "additionalProperties": {"type": "string"}, "required": ["a"]},
        {"if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["b"]}, "else": {"maxProperties": 1}},
        {"allOf": [{"if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["b"]}}]},
        {"allOf": [{"if": {"properties": {"a": {"const": "x"}}, "required": ["a"]}, "then": {"required": ["b"]}}]},
        {"anyOf": [{"type": "string", "pattern": "^x"}, {"type": "number", "exclusiveMinimum": 0}]},
    ],
)
@given(value=VALUES)
def test_each_keyword(schema: dict[str, Any], value: Any) -> None:
    from jsonschema import Draft202012Validator

    assert compile_schema(schema)(value) == Draft202012Validator(schema).is_valid(value)


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        compile_schema({"items": {"oneOf": []}})
