"""`container[key]` and `container.get(key)`."""

from __future__ import annotations

import ast

from harness.audit.flow import values as v
from harness.audit.flow.machine import Machine
from harness.audit.flow.values import NOTHING, Module, Value

_ID_FIELDS = {"node_id", "id"}
_ENDS = {"source", "target", "head", "tail", "src", "dst", "subject", "object", "from", "to", "s", "t"}
_LEAST_POSITION = 10  # smaller numbers are positions in a list, not ids


def subscript(m: Machine, node: ast.Subscript) -> Value:
    """What is known of `value[slice]`."""
    container = m.eval(node.value)
    if isinstance(container.target, Module) and isinstance(node.slice, ast.Constant):  # of runpy.run_path
        return container.target.scope.names.get(str(node.slice.value), NOTHING)
    if isinstance(node.slice, ast.Slice):
        m.parts(node.slice)
        return Value(container.tags, container.ids)
    return field_or_item(m, container, node.slice)


def field_or_item(m: Machine, container: Value, key_node: ast.expr) -> Value:
    """What lies in a container under a key: a field of a record or row, or an item."""
    name = key_node.value if isinstance(key_node, ast.Constant) else None
    if isinstance(name, str) and not name.strip().isdigit():
        return _field(container, name)
    key = m.eval(key_node)
    if container.items is not None and len(key.ids) == 1 and not container.tags & v.RECORDS:
        (position,) = key.ids
        if -len(container.items) <= position < len(container.items):
            return container.items[position]
    if container.tags & v.NODES and container.tags & v.SEQUENCE and any(n >= _LEAST_POSITION for n in key.ids):
        m.check_id(key)  # records lie in the order of their ids
    return m.lookup(container, key)


def _field(container: Value, name: str) -> Value:
    if name in _ID_FIELDS and container.tags & v.NODES:
        return Value(v.NODES | v.NODE_ID)
    if name == "file":
        return Value(v.EDGES)  # of a relation in the schema
    if v.is_row(container) and name not in _ENDS:
        return Value()  # another column
    found = v.element(container)
    return Value(found.tags & ~v.NODE_ID, found.ids)
