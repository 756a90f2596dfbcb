"""Expressions of a program: constants, names, operators, comprehensions, subscripts. Calls are in `calls.py`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from harness.audit.flow import values as v
from harness.audit.flow.calls import call
from harness.audit.flow.conditions import compare, condition
from harness.audit.flow.machine import Machine
from harness.audit.flow.statements import go_through
from harness.audit.flow.subscripts import subscript
from harness.audit.flow.values import NOTHING, External, Function, Instance, Module, Scope, Value

_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
_LEAST_SHARD = 100  # a floor division by at least this much finds a file by an id


def _constant(_: Machine, node: ast.Constant) -> Value:
    return v.constant(node.value)


def _name(m: Machine, node: ast.Name) -> Value:
    found = m.scope.get(node.id)
    return Value(target=External(node.id)) if found is None else found


def _joined(m: Machine, node: ast.JoinedStr) -> Value:
    value = v.join(*(m.eval(part) for part in node.values))
    known = v.constant("".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
    return Value(value.tags | known.tags, value.ids)


def _formatted(m: Machine, node: ast.FormattedValue) -> Value:
    return Value(*m.eval(node.value)[:2])


def _tuple(m: Machine, node: ast.Tuple | ast.List) -> Value:
    parts = tuple(v.element(m.eval(p.value)) if isinstance(p, ast.Starred) else m.eval(p) for p in node.elts)
    whole = v.join(*parts)
    _listed_ids(m, node)
    starred = any(isinstance(part, ast.Starred) for part in node.elts)
    tags = whole.tags | v.SEQUENCE
    if isinstance(node, ast.Tuple):
        tags = whole.tags
    return Value(tags, whole.ids, None, None if starred or not parts else parts)


def _set(m: Machine, node: ast.Set) -> Value:
    whole = v.join(*(v.element(m.eval(p.value)) if isinstance(p, ast.Starred) else m.eval(p) for p in node.elts))
    _listed_ids(m, node)
    return Value(whole.tags | v.SET, whole.ids)


def _listed_ids(m: Machine, node: ast.Tuple | ast.List | ast.Set) -> None:
    """Whole numbers listed by themselves are taken for ids: `[1403, 2773]`."""
    numbers = [part.value for part in node.elts if isinstance(part, ast.Constant) and type(part.value) is int]
    if len(numbers) == len(node.elts):
        m.used_ids.update(numbers)


def _dict(m: Machine, node: ast.Dict) -> Value:
    tags, ids = 0, NOTHING.ids
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        key, value = m.kept(m.eval(key_node)), m.kept(m.eval(value_node))
        if isinstance(key_node, ast.Constant) and isinstance(key_node.value, str):
            key = NOTHING
        tags |= (key.tags | value.tags) & ~v.CONTAINER
        tags |= v.SETS if value.tags & v.SET else 0
        ids |= key.ids | value.ids
    return Value(tags, ids)


def _bin_op(m: Machine, node: ast.BinOp) -> Value:
    left, right = m.eval(node.left), m.eval(node.right)
    if isinstance(node.op, _SET_OPERATORS) and (left.tags | right.tags) & v.SET:
        m.note("set_operation")
        both = v.join(left, right)
        return Value(both.tags | v.SET, both.ids)
    if isinstance(node.op, ast.FloorDiv) and any(n >= _LEAST_SHARD for n in right.ids):
        m.use_ids(left)
        return Value((left.tags & ~v.CONTAINER) | v.BY_ID, left.ids)
    both = v.join(left, right)
    if isinstance(node.op, ast.Add) and left.text is not None and right.text is not None:
        return Value(both.tags, both.ids, left.text + right.text)
    if both.tags & (v.CONTAINER | v.NODES | v.EDGES) or left.text is not None:
        return Value(both.tags, both.ids)
    return Value(both.tags & ~v.LITERAL)  # a number that was computed


def _bool_op(m: Machine, node: ast.BoolOp) -> Value:
    return v.join(*(m.eval(value) for value in node.values))


def _compare(m: Machine, node: ast.Compare) -> Value:
    compare(m, node)
    return NOTHING


def _not(m: Machine, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        condition(m, node)
        return NOTHING
    return m.eval(node.operand)


def _if_exp(m: Machine, node: ast.IfExp) -> Value:
    selection = condition(m, node.test)
    with m.under(selection.holds):
        body = m.kept(m.eval(node.body))
    with m.under(selection.fails):
        return v.join(body, m.kept(m.eval(node.orelse)))


def _lambda(m: Machine, node: ast.Lambda) -> Value:
    return Value(target=Function(node, m.scope))


def _named(m: Machine, node: ast.NamedExpr) -> Value:
    value = m.eval(node.value)
    m.bind(node.target, value)
    return value


def _attribute(m: Machine, node: ast.Attribute) -> Value:
    receiver = m.eval(node.value)
    target = receiver.target
    if isinstance(target, External):
        name = f"{target.name}.{node.attr}"
        return m.scope.root().get(name) or Value(target=External(name))
    if isinstance(target, Module):
        return target.scope.names.get(node.attr, NOTHING)
    if isinstance(target, Instance):
        method = target.of.methods.get(node.attr)
        if method is not None:
            return Value(target=Function(method.node, method.scope, receiver))
        return target.of.attributes.get(node.attr, NOTHING)
    return Value(receiver.tags, receiver.ids)


def _yield(m: Machine, node: ast.Yield | ast.YieldFrom) -> Value:
    value = m.eval(node.value)
    if isinstance(node, ast.YieldFrom):
        m.go_through(value)
        value = v.element(value)
    value = m.kept(value)
    if m.returned:
        m.returned[-1].append(Value(value.tags | v.SEQUENCE, value.ids, None, (value,)))
    return NOTHING


def _comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    with m.within(Scope(m.scope)):
        depth = 0
        for generator in node.generators:
            item = go_through(m, generator.iter)
            m.bind(generator.target, item)
            for test in generator.ifs:
                depth = max(depth, condition(m, test).holds)
            _members_of_another(m, generator, item)
        with m.under(depth):
            if isinstance(node, ast.DictComp):
                return _pairs(m, node)
            value = m.kept(m.eval(node.elt))
    if isinstance(node, ast.GeneratorExp) and _is_in_all(node):
        m.note("set_operation")
    kind = v.SET if isinstance(node, ast.SetComp) else v.SEQUENCE
    return Value(value.tags | kind, value.ids, None, (value,) if value.items is not None else None)


def _pairs(m: Machine, node: ast.DictComp) -> Value:
    key, value = m.kept(m.eval(node.key)), m.kept(m.eval(node.value))
    tags = (key.tags | value.tags) & ~v.CONTAINER
    if v.is_raw(key) and v.is_raw(value):
        tags |= v.NEIGHBOURS
    elif key.tags & v.NODE_ID:
        tags |= v.RECORDS
    return Value(tags | (v.SETS if value.tags & v.SET else 0), key.ids | value.ids)


def _members_of_another(m: Machine, generator: ast.comprehension, item: Value) -> None:
    """`[x for x in a if x in b]`, with collections of the program's own, is an intersection written out."""
    if v.is_raw(item):
        return
    target = generator.target
    names = {part.id for part in getattr(target, "elts", [target]) if isinstance(part, ast.Name)}
    for test in generator.ifs:
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for part in parts:
            if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In | ast.NotIn):
                other = m.eval(part.comparators[0])
                of_it = isinstance(part.left, ast.Name) and part.left.id in names
                if of_it and other.tags & (v.SET | v.SEQUENCE) and not v.is_raw(other):
                    m.note("set_operation")


def _is_in_all(node: ast.GeneratorExp) -> bool:
    """`x in s for s in sets`."""
    target, test = node.generators[0].target, node.elt
    return (
        isinstance(target, ast.Name)
        and isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.In)
        and isinstance(test.comparators[0], ast.Name)
        and test.comparators[0].id == target.id
    )


EXPRESSIONS: Mapping[type[ast.expr], Callable[[Machine, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: _bin_op,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.UnaryOp: _not,
    ast.IfExp: _if_exp,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Attribute: _attribute,
    ast.Subscript: subscript,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Call: call,
}
