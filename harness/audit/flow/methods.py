"""Methods of texts, files, containers, paths and the graph tools' client."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from harness.audit.flow import values as v
from harness.audit.flow.library import is_plain_key, opened, pairs, sort_keys
from harness.audit.flow.machine import Machine
from harness.audit.flow.subscripts import field_or_item
from harness.audit.flow.values import NOTHING, Value

MUTATORS = {"add", "append", "appendleft", "extend", "extendleft", "update", "insert", "put"}
_SET_METHODS = {
    "intersection", "union", "difference", "symmetric_difference", "intersection_update", "difference_update",
    "symmetric_difference_update", "issubset", "issuperset", "isdisjoint",
}  # fmt: skip
_PASS_ARGUMENTS = {"format", "join", "joinpath", "glob", "rglob", "union", "execute", "executemany"}


def mutate(m: Machine, node: ast.Call, function: ast.Attribute) -> Value:
    """`container.append(value)` and its kin; the container itself is not read."""
    arguments = [m.eval(argument) for argument in node.args]
    many = function.attr in ("extend", "extendleft", "update")
    for argument in arguments[-1:] if function.attr == "insert" else arguments:
        if many:
            m.go_through(argument)
        value = v.element(argument) if many else argument
        kind = v.SET if function.attr == "add" else 0 if function.attr == "update" else v.SEQUENCE
        m.add(function.value, value, kind)
    return NOTHING


def method(m: Machine, node: ast.Call, function: ast.Attribute, receiver: Value) -> Value:
    """Any other method of a value that is no object of the program's own."""
    if receiver.tags & v.KB:
        return _tool(m, node, function.attr)
    handler = _METHODS.get(function.attr)
    if handler is not None:
        return handler(m, node, receiver)
    arguments = _arguments(m, node)
    if function.attr in _SET_METHODS:
        m.note("set_operation")
        whole = v.join(receiver, *arguments, *map(v.element, arguments))
        return Value(whole.tags | v.SET, whole.ids)
    whole = v.join(receiver, *arguments) if function.attr in _PASS_ARGUMENTS else receiver
    return Value(whole.tags, whole.ids)


def _arguments(m: Machine, node: ast.Call) -> list[Value]:
    for keyword in node.keywords:
        m.eval(keyword.value)
    return [v.element(m.eval(a.value)) if isinstance(a, ast.Starred) else m.eval(a) for a in node.args]


def _get(m: Machine, node: ast.Call, receiver: Value) -> Value:
    for argument in node.args[1:]:
        m.eval(argument)
    return field_or_item(m, receiver, node.args[0]) if node.args else v.element(receiver)


def _open(m: Machine, node: ast.Call, receiver: Value) -> Value:
    return opened(m, receiver, node.args[:1])


def _items(_: Machine, __: ast.Call, receiver: Value) -> Value:
    return pairs(receiver)


def _most_common(m: Machine, node: ast.Call, receiver: Value) -> Value:
    m.note("ranking")
    _arguments(m, node)
    return pairs(receiver)


def _keys(_: Machine, __: ast.Call, receiver: Value) -> Value:
    keys = v.element(receiver)
    return Value(keys.tags | v.SET, keys.ids)


def _values(_: Machine, __: ast.Call, receiver: Value) -> Value:
    inner = v.SETS if receiver.tags & v.SETS else 0
    return Value((receiver.tags & ~v.CONTAINER) | inner | v.SEQUENCE, receiver.ids)


def _sort(m: Machine, node: ast.Call, receiver: Value) -> Value:
    keys = sort_keys(m, node, receiver)
    if keys and not is_plain_key(keys[0]):
        m.note("ranking")
    _arguments(m, node)
    return NOTHING


def _one(_: Machine, __: ast.Call, receiver: Value) -> Value:
    return v.element(receiver)


def _read(m: Machine, node: ast.Call, receiver: Value) -> Value:
    if node.args:  # so many bytes
        return v.element(receiver)
    value = Value(receiver.tags | (v.OPEN if receiver.tags & (v.NODES | v.EDGES) else 0), receiver.ids)
    m.go_through(value)
    return value


def _write(m: Machine, node: ast.Call, receiver: Value) -> Value:
    text = m.eval(node.args[0]) if node.args else NOTHING
    if receiver.text is not None and text.text is not None:
        m.written.append((receiver.text, text.text))
    return NOTHING


def _tool(m: Machine, node: ast.Call, name: str) -> Value:
    """A call of the graph tools' client."""
    arguments = [m.eval(argument) for argument in node.args] + [m.eval(keyword.value) for keyword in node.keywords]
    first = arguments[0] if arguments else NOTHING
    if name == "neighbors":
        return Value(v.hops(m.follow(first)))
    if name == "get_node":
        m.check_id(first)
    return NOTHING


_METHODS: Mapping[str, Callable[[Machine, ast.Call, Value], Value]] = {
    **dict.fromkeys(("get", "setdefault", "pop"), _get),
    **dict.fromkeys(("read", "readlines", "read_text", "read_bytes"), _read),
    **dict.fromkeys(("write", "write_text"), _write),
    **dict.fromkeys(("popleft", "readline"), _one),
    "open": _open,
    "items": _items,
    "most_common": _most_common,
    "keys": _keys,
    "values": _values,
    "sort": _sort,
}
