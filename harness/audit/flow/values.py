"""What is known of a value in a program without running it: where it comes from, as a set of tags."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

# Where a value comes from.
NODES = 1 << 0  # a node file: its path, handle, lines, records
NODE_ID = 1 << 1  # the id field of a record
BY_ID = 1 << 2  # computed from an id to find its file (`id // 10000`)
EDGES = 1 << 3  # an edge file: its path, handle, lines, rows, ends of edges, not selected yet
HOP1 = 1 << 4  # reached by following edges once
HOP2 = 1 << 5  # reached by following edges more than once
LITERAL = 1 << 6  # a number, or a text of digits, that stands in the program or its arguments
KB = 1 << 7  # a client of the graph tools
# What it is.
SET = 1 << 8
SETS = 1 << 9  # a mapping to sets
SEQUENCE = 1 << 10
NEIGHBOURS = 1 << 11  # a mapping from one end of edges to the other
RECORDS = 1 << 12  # a mapping from node ids to something of the node
OPEN = 1 << 13  # lines or text of a file, not gone through yet
ROW = 1 << 14  # a line or row of an edge file, or a part of one
NESTED = 1 << 15  # a mapping to mappings

HOPS = HOP1 | HOP2
MAPPING = SETS | NEIGHBOURS | RECORDS
CONTAINER = SET | SEQUENCE | MAPPING | NESTED
_MOST_IDS = 300

_NODE_PATH = re.compile(r"(^|/)nodes(/|$)|\.jsonl")
_EDGE_PATH = re.compile(r"(^|/)edges(/|$)|\.tsv")
_NODE_ID_TEXT = re.compile(r"node_id\W*(\d+)")
_ID_TEXT = re.compile(r"\s*\^?\(?(\d+)\)?\s*$")


class Value(NamedTuple):
    """`ids` are the literal numbers in it, `text` a text known exactly, `items` the parts of a tuple or list."""

    tags: int = 0
    ids: frozenset[int] = frozenset()
    text: str | None = None
    items: tuple[Value, ...] | None = None
    target: Target | None = None


NOTHING = Value()


class Scope:
    """Names of a module or a function."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Value] = {}
        self.parent = parent

    def get(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def root(self) -> Scope:
        """The module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(eq=False)
class Function:
    """A function of the program's; `receiver` is set for a bound method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    receiver: Value | None = None


@dataclass(eq=False)
class Class:
    """A class of the program's. All instances share what is known of their attributes."""

    methods: dict[str, Function]
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Instance:
    """An object of a class of the program's."""

    of: Class


@dataclass(frozen=True)
class External:
    """A name from outside the program: `len`, `json.loads`."""

    name: str


@dataclass(eq=False)
class Module:
    """A module of the agent's own."""

    scope: Scope


Target: TypeAlias = Function | Class | Instance | External | Module


def join(*values: Value) -> Value:
    """What holds if the value is any of these."""
    values = tuple(value for value in values if value is not NOTHING)
    if len(values) <= 1:
        return values[0] if values else NOTHING
    tags, ids = 0, values[0].ids
    for value in values:
        tags |= value.tags
        if value.ids and len(ids) < _MOST_IDS:
            ids |= value.ids
    first = values[0]
    text = first.text if all(value.text == first.text for value in values) else None
    items = None
    if first.items is not None and all(v.items is not None and len(v.items) == len(first.items) for v in values):
        items = tuple(join(*column) for column in zip(*(value.items or () for value in values), strict=True))
    return Value(tags, ids, text, items, next((value.target for value in values if value.target is not None), None))


def tagged(value: Value, add: int = 0, drop: int = 0) -> Value:
    """The value with tags added and dropped; its parts are forgotten."""
    return Value((value.tags & ~drop) | add, value.ids)


def element(value: Value) -> Value:
    """What comes out when the value is gone through, or indexed."""
    if value.items:
        return join(*value.items)
    if value.tags & NESTED:
        return tagged(value, 0, SET | SEQUENCE | NESTED | OPEN)
    if value.tags & SETS:
        return tagged(value, SET, CONTAINER)
    add = NODE_ID if value.tags & RECORDS else 0  # the keys of a mapping by node id
    if value.tags & EDGES and value.tags & (CONTAINER | OPEN):
        add |= ROW
    return tagged(value, add, CONTAINER | OPEN)


def constant(value: object) -> Value:
    """A constant of the program's text."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, bool) or not isinstance(value, int | str):
        return NOTHING
    if isinstance(value, int):
        return Value(LITERAL, frozenset((value,)))
    tags = (NODES if _NODE_PATH.search(value) else 0) | (EDGES if _EDGE_PATH.search(value) else 0)
    digits = _ID_TEXT.match(value) or _NODE_ID_TEXT.search(value)
    if digits and len(digits[1]) < 18:
        return Value(tags | LITERAL, frozenset((int(digits[1]),)), value)
    return Value(tags, frozenset(), value)


def is_raw(value: Value) -> bool:
    """Whether it comes from edges that were not selected yet."""
    return bool(value.tags & EDGES) and not value.tags & HOPS


def is_row(value: Value) -> bool:
    """Whether it's a row of edges that was not selected yet, or a part of one: an end."""
    return bool(value.tags & ROW) and not value.tags & CONTAINER and is_raw(value)


def reached(value: Value, depth: int) -> Value:
    """A raw value under a selection of edges `depth` steps away."""
    items = tuple(reached(item, depth) for item in value.items) if value.items is not None else None
    tags = (value.tags & ~(EDGES | ROW)) | hops(depth) if is_raw(value) else value.tags
    return Value(tags, value.ids, None, items)


def is_given(value: Value) -> bool:
    """Whether it's an id from the program's text or arguments, not one that it found."""
    return bool(value.tags & LITERAL) and not value.tags & (HOPS | NODES | EDGES)


def hops(depth: int) -> int:
    """The tag of what lies `depth` steps away."""
    return HOP1 if depth == 1 else HOP2
