"""Conditions: which select edges by an end, look a record up by its id, or compare collections."""

from __future__ import annotations

import ast
from typing import NamedTuple

from harness.audit.flow import values as v
from harness.audit.flow.machine import Machine
from harness.audit.flow.values import Value

_POSITIVE = (ast.Eq, ast.In)
_SUBSET = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Selection(NamedTuple):
    """Depth of what is selected where the condition holds, and where it doesn't; 0 where nothing is."""

    holds: int = 0
    fails: int = 0


def condition(m: Machine, node: ast.expr) -> Selection:
    """Evaluate a condition and say what it selects."""
    if isinstance(node, ast.BoolOp):
        return _bool_op(m, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(m, node.operand)
        return Selection(inner.fails, inner.holds)
    if isinstance(node, ast.Compare):
        return compare(m, node)
    if isinstance(node, ast.NamedExpr):
        m.eval(node)
        return Selection()
    if isinstance(node, ast.Call):
        return _call(m, node)
    m.eval(node)
    return Selection()


def compare(m: Machine, node: ast.Compare) -> Selection:
    """A comparison, with what it selects."""
    selection = Selection()
    left_node, left = node.left, m.eval(node.left)
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = m.eval(right_node)
        if isinstance(operator, _SUBSET):
            if left.tags & v.SET and right.tags & v.SET:
                m.note("set_operation")
        elif not isinstance(operator, ast.Is | ast.IsNot):
            depth = _selected(m, left_node, left, right)
            positive = isinstance(operator, _POSITIVE)
            selection = Selection(depth, 0) if positive else Selection(0, depth)
            _record_by_id(m, left, right)
        left_node, left = right_node, right
    return selection


def _bool_op(m: Machine, node: ast.BoolOp) -> Selection:
    parts = [condition(m, value) for value in node.values]
    holds, fails = [part.holds for part in parts], [part.fails for part in parts]
    if isinstance(node.op, ast.And):  # where it fails, any part may have failed
        return Selection(max(holds), max(fails) if all(fails) else 0)
    return Selection(max(holds), max(fails))


def _call(m: Machine, node: ast.Call) -> Selection:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "startswith" and node.args:
        line, start = m.eval(function.value), m.eval(node.args[0])
        if v.is_row(line) and not _is_plain_text(start):
            return Selection(m.follow(start))
        if line.tags & v.NODES and start.tags & v.LITERAL:
            m.check_id(start)
        return Selection()
    if isinstance(function, ast.Name) and function.id == "any" and node.args:
        argument = node.args[0]
        if isinstance(argument, ast.GeneratorExp):
            m.eval(node)
            with m.within(v.Scope(m.scope)):
                for generator in argument.generators:
                    m.bind(generator.target, v.element(m.eval(generator.iter)))
                return condition(m, argument.elt)
    m.eval(node)
    return Selection()


def _selected(m: Machine, left_node: ast.expr, left: Value, right: Value) -> int:
    """The depth of the edges that the comparison selects, 0 if it selects none."""
    if v.is_row(left) and v.is_row(right):
        return 0  # ends of one edge compared with each other
    if v.is_row(left):
        joined = v.is_raw(right) and right.tags & v.CONTAINER and not isinstance(left_node, ast.Tuple)
        return m.follow(right) if joined or not (v.is_raw(right) or _is_plain_text(right)) else 0
    if v.is_row(right):
        return m.follow(left) if not (v.is_raw(left) or _is_plain_text(left)) else 0
    return 0


def _record_by_id(m: Machine, left: Value, right: Value) -> None:
    """A record's id compared with ids, or its line with a pattern that has an id in it."""
    for one, other in ((left, right), (right, left)):
        if one.tags & v.NODE_ID and other.tags & v.LITERAL:
            m.check_id(other)
    if right.tags & v.NODES and left.tags & v.LITERAL and not left.tags & v.NODES:
        m.check_id(left)


def _is_plain_text(value: Value) -> bool:
    """Texts that are no ids, such as a column's name or another attribute's value."""
    if value.items:
        return all(map(_is_plain_text, value.items))
    return value.text is not None and not value.tags & v.LITERAL
