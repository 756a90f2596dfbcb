"""The answer in the model's words -> node ids: parsed strictly first, then leniently, every id validated.

The answer comes from the final message or an answer tool, never from command output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

_STRICT = re.compile(r"^[ \t]*ANSWER:[ \t]*(\[[^\[\]]*\])[ \t]*$", re.MULTILINE)
_DRESS = re.compile(r"```\w*|[*`]")
_MARKED = re.compile(r"ANSWER\s*[:=]\s*(\[.*?\]|[^\n]*)", re.IGNORECASE | re.DOTALL)
_LIST = re.compile(r"\[[^\[\]]*\]|\[(?:[^\[\]]|\[[^\[\]]*\])*\]")
_ID_LINE = re.compile(
    r"^\s*(?:[-*]|\d{1,3}[.)])\s+[*`\[]*(?:node(?:_id)?\s*[:=#]?\s*)?(\d+)[*`\]]*\s*(?:$|[:,(|–—-])", re.IGNORECASE
)
_DIGITS = re.compile(r"[+-]?\d+(?!\.?\d)")


class Nodes(Protocol):
    """What validation needs to know of a graph; `exporter.Export` does."""

    @property
    def node_count(self) -> int: ...

    def is_candidate(self, node_id: int) -> bool: ...


class UnknownName(str):
    """A name in an answer that is given in names, which no candidate has."""

    __slots__ = ()


@dataclass(frozen=True)
class Parsed:
    """`values` in the order given, None where the text holds no answer. `repairs` names what was not by the book."""

    values: list[Any] | None
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A validated answer. `rejected` holds {"value", "why"} for each id that was dropped."""

    ids: tuple[int, ...]
    repairs: tuple[str, ...]
    rejected: tuple[dict[str, Any], ...]
    text: str


def parse_answer(text: str) -> Parsed:
    """Find the list of ids in a final message.

    By the book it's a line `ANSWER: [1, 2]` (the last one counts). Otherwise, in this order and each recorded as a
    repair: the text after ANSWER in any dress, a JSON list in a code fence, the last list in the text, a bulleted or
    numbered list of ids.
    """
    strict = _STRICT.findall(text)
    if strict:
        values = _json_list(strict[-1])
        if values is not None:
            return Parsed(values)
    for repair, candidates in _lenient(text):
        for candidate in reversed(candidates):
            values = _json_list(candidate)
            if values is None:
                values = _loose_list(candidate)
            if values is not None:
                return Parsed(values, (repair,))
    lines = [match[1] for line in text.splitlines() if (match := _ID_LINE.match(line))]
    return Parsed([int(line) for line in lines], ("list_of_lines",)) if lines else Parsed(None)


def validate(parsed: Parsed, nodes: Nodes, max_ids: int, text: str) -> Answer:
    """Keep the ids that are integers, exist, are candidates and are new, at most `max_ids`; record the others."""
    ids: list[int] = []
    repairs, rejected = list(parsed.repairs), []
    for value in parsed.values or []:
        node_id, repair = _as_id(value)
        if repair and repair not in repairs:
            repairs.append(repair)
        why = "unknown_name" if isinstance(value, UnknownName) else _refusal(node_id, ids, nodes, max_ids)
        if why is None and node_id is not None:
            ids.append(node_id)
        else:
            rejected.append({"value": value if isinstance(value, int) else str(value)[:200], "why": why})
    return Answer(tuple(ids), tuple(repairs), tuple(rejected), text)


def _refusal(node_id: int | None, ids: list[int], nodes: Nodes, max_ids: int) -> str | None:
    checks: list[tuple[str, Callable[[int], bool]]] = [
        ("unknown", lambda n: not 0 <= n < nodes.node_count),
        ("duplicate", lambda n: n in ids),
        ("not_a_candidate", lambda n: not nodes.is_candidate(n)),
        ("too_many", lambda _: len(ids) >= max_ids),
    ]
    if node_id is None:
        return "not_an_id"
    return next((why for why, fails in checks if fails(node_id)), None)


def _lenient(text: str) -> Iterable[tuple[str, list[str]]]:
    yield "answer_line", [match.strip() for match in _MARKED.findall(_DRESS.sub("", text))]
    yield (
        "fenced",
        [block for fence in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) for block in _LIST.findall(fence)],
    )
    yield "list_in_text", _LIST.findall(text)


def _json_list(text: str) -> list[Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, list) else None


def _loose_list(text: str) -> list[Any] | None:
    """A list that JSON refuses: trailing commas, single quotes, ids with names, no brackets. None if it has no id."""
    items = [item.strip(" \t\n'\"`*.") for item in text.strip().strip("[]").split(",")]
    items = [item for item in items if item]
    return items if items and all(_DIGITS.match(item) for item in items) else None


def _as_id(value: Any) -> tuple[int | None, str | None]:
    """The id in one item of the list, and the repair that finding it took."""
    if isinstance(value, bool | UnknownName):
        return None, None
    if isinstance(value, int):
        return value, None
    if isinstance(value, float) and value.is_integer():
        return int(value), "float_id"
    if isinstance(value, dict):
        named = [value[key] for key in ("node_id", "id") if key in value]
        return (_as_id(named[0])[0], "object_id") if named else (None, None)
    if isinstance(value, str) and (match := _DIGITS.match(value.strip())):
        digits = match[0]
        return (int(digits), "text_id") if len(digits) <= 18 else (None, None)
    return None, None
