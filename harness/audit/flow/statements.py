"""Statements of a program: what each does to the names, and which go through files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from harness.audit.flow import values as v
from harness.audit.flow.conditions import condition
from harness.audit.flow.machine import Machine
from harness.audit.flow.values import NOTHING, Class, External, Function, Value

_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)


def go_through(m: Machine, node: ast.expr, *, stops: bool = False) -> Value:
    """What a loop over `node` gets in each round."""
    value = m.eval(node)
    with m.early(stops):
        m.go_through(value)
    return v.element(value)


def _assign(m: Machine, node: ast.Assign) -> bool:
    value = m.kept(m.eval(node.value))
    for target in node.targets:
        m.bind(target, value)
    return False


def _ann_assign(m: Machine, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        m.bind(node.target, m.kept(m.eval(node.value)))
    return False


def _aug_assign(m: Machine, node: ast.AugAssign) -> bool:
    value = m.eval(node.value)
    if isinstance(node.target, ast.Subscript):  # the slot is both read and written; reading it follows no edge
        added = value if value.tags & v.CONTAINER else Value(value.tags & ~v.LITERAL)
        m.put(node.target.value, m.eval(node.target.slice), added, value.tags & v.SET)
        return False
    old = m.eval(node.target)
    if isinstance(node.op, _SET_OPERATORS) and (old.tags | value.tags) & v.SET:
        m.note("set_operation")
    if isinstance(node.target, ast.Name):
        kept = m.kept(value)
        m.bind(node.target, v.join(Value(old.tags, old.ids), Value(kept.tags, kept.ids)))
    return False


def _for(m: Machine, node: ast.For | ast.AsyncFor) -> bool:
    item = go_through(m, node.iter, stops=_stops_early(node))
    for _ in range(2):
        before = dict(m.scope.names)
        m.bind(node.target, item)
        m.run(node.body)
        _join_names(m, before)
        if m.scope.names == before:
            break
    m.run(node.orelse)
    return False


def _while(m: Machine, node: ast.While) -> bool:
    for _ in range(2):
        before = dict(m.scope.names)
        positive, _negative = condition(m, node.test)
        with m.under(positive):
            m.run(node.body)
        _join_names(m, before)
    m.run(node.orelse)
    return False


def _if(m: Machine, node: ast.If) -> bool:
    if not m.main and _asks_for_main(node.test):
        return False
    positive, negative = condition(m, node.test)
    before = dict(m.scope.names)
    with m.under(positive):
        body_ends = m.run(node.body)
    after_body, m.scope.names = m.scope.names, before
    with m.under(negative):
        else_ends = m.run(node.orelse)
    if body_ends and node.orelse and else_ends:
        return True
    if body_ends:
        m.rest_selected = negative
    elif else_ends and node.orelse:
        m.scope.names = after_body
        m.rest_selected = positive
    else:
        _join_names(m, after_body)
    return False


def _with(m: Machine, node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        value = m.eval(item.context_expr)
        if item.optional_vars is not None:
            m.bind(item.optional_vars, value)
    return m.run(node.body)


def _try(m: Machine, node: ast.Try) -> bool:
    m.run(node.body)
    for handler in node.handlers:
        m.run(handler.body)
    m.run(node.orelse)
    m.run(node.finalbody)
    return False


def _function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    m.scope.names[node.name] = Value(target=Function(node, m.scope))
    return False


def _class(m: Machine, node: ast.ClassDef) -> bool:
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    methods = {part.name: Function(part, m.scope) for part in functions}
    m.scope.names[node.name] = Value(target=Class(methods))
    return False


def _return(m: Machine, node: ast.Return) -> bool:
    value = m.kept(m.eval(node.value))
    if m.returned:
        m.returned[-1].append(value)
    return True


def _import(m: Machine, node: ast.Import) -> bool:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        module = m.load(alias.name)
        m.scope.names[name] = Value(target=module or External(alias.name if alias.asname else name))
    return False


def _import_from(m: Machine, node: ast.ImportFrom) -> bool:
    module = m.load(node.module or "")
    for alias in node.names:
        if module is None:
            m.scope.names[alias.asname or alias.name] = Value(target=External(f"{node.module}.{alias.name}"))
        elif alias.name == "*":
            m.scope.names.update(module.scope.names)
        else:
            m.scope.names[alias.asname or alias.name] = module.scope.names.get(alias.name, NOTHING)
    return False


def _leaves(_: Machine, __: ast.stmt) -> bool:
    return True


def _raise(m: Machine, node: ast.Raise) -> bool:
    m.eval(node.exc)
    return True


def _join_names(m: Machine, other: Mapping[str, Value]) -> None:
    """The names hold what they hold now or held in `other`."""
    names = m.scope.names
    for name, value in other.items():
        now = names.get(name)
        if now is None:
            names[name] = value
        elif now is not value:
            names[name] = v.join(now, value)


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _stops_early(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether the loop may be left before its end: a break of its own, or a return."""
    return any(_leaves_loop(statement) for statement in loop.body)


def _leaves_loop(node: ast.stmt, *, inner: bool = False) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.Break):
        return not inner
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    inner = inner or isinstance(node, ast.For | ast.AsyncFor | ast.While)
    handlers = [statement for handler in getattr(node, "handlers", ()) for statement in handler.body]
    parts = [*getattr(node, "body", ()), *getattr(node, "orelse", ()), *getattr(node, "finalbody", ()), *handlers]
    return any(_leaves_loop(part, inner=inner) for part in parts)


STATEMENTS: Mapping[type[ast.stmt], Callable[[Machine, Any], bool]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.If: _if,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _leaves,
    ast.Continue: _leaves,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
