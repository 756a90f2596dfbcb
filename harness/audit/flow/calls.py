"""Calls: functions of the program's own are followed, those of the language are in `library.py` and `methods.py`."""

from __future__ import annotations

import ast

from harness.audit.flow import values as v
from harness.audit.flow.library import FUNCTIONS
from harness.audit.flow.machine import Machine
from harness.audit.flow.methods import MUTATORS, method, mutate
from harness.audit.flow.values import NOTHING, Class, External, Function, Instance, Scope, Value


def call(m: Machine, node: ast.Call) -> Value:
    """What is known of what a call returns."""
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr in MUTATORS and not _is_own(m, function):
            return mutate(m, node, function)
        receiver = m.eval(function.value)
        if receiver.target is None:
            return method(m, node, function, receiver)
        value = m.eval(function) if not isinstance(receiver.target, Function) else NOTHING
    else:
        value = m.eval(function)
    target = value.target
    if isinstance(target, Function):
        return enter(m, target, [m.eval(argument) for argument in node.args], node.keywords)
    if isinstance(target, Class):
        return _construct(m, target, node)
    if isinstance(target, External):
        return _external(m, target.name, node)
    return _arguments(m, node)


def enter(m: Machine, function: Function, arguments: list[Value], keywords: list[ast.keyword] | None = None) -> Value:
    """Follow a function of the program's own with these arguments; the join of what it returns or yields."""
    given = {keyword.arg: m.eval(keyword.value) for keyword in keywords or ()}
    if not m.may_enter(function.node):
        return NOTHING
    scope = Scope(function.scope)
    parameters = function.node.args
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    values = [function.receiver, *arguments] if function.receiver is not None else arguments
    for name, default in zip(reversed(names), reversed(parameters.defaults), strict=False):
        scope.names[name] = m.eval(default)
    scope.names.update(zip(names, values, strict=False))
    if parameters.vararg is not None:
        rest = v.join(*values[len(names) :])
        scope.names[parameters.vararg.arg] = Value(rest.tags, rest.ids)
    scope.names.update({name: value for name, value in given.items() if name is not None})
    selected, m.selected = m.selected, 0
    m.calls.append(function.node)
    m.returned.append([])
    try:
        with m.within(scope):
            if isinstance(function.node, ast.Lambda):
                return m.eval(function.node.body)
            m.run(function.node.body)
        return v.join(*m.returned[-1])
    finally:
        m.returned.pop()
        m.calls.pop()
        m.selected = selected


def _construct(m: Machine, of: Class, node: ast.Call) -> Value:
    instance = Value(target=Instance(of))
    arguments = [m.eval(argument) for argument in node.args]
    start = of.methods.get("__init__")
    if start is not None:
        enter(m, Function(start.node, start.scope, instance), arguments, node.keywords)
    return instance


def _external(m: Machine, name: str, node: ast.Call) -> Value:
    handler = FUNCTIONS.get(name) or FUNCTIONS.get(name.rpartition(".")[2] if name.startswith("itertools.") else "")
    if handler is not None:
        return handler(m, node)
    return _arguments(m, node)


def apply(m: Machine, function: Value, argument: Value) -> Value:
    """What a function given as a value makes of one argument."""
    if isinstance(function.target, Function):
        return enter(m, function.target, [argument])
    return Value(argument.tags & ~v.OPEN, argument.ids)


def _arguments(m: Machine, node: ast.Call) -> Value:
    """For a function that nothing is known of: what comes out is what went in."""
    whole = v.join(*(m.eval(argument) for argument in node.args), *(m.eval(k.value) for k in node.keywords))
    return Value(whole.tags, whole.ids)


def _is_own(m: Machine, function: ast.Attribute) -> bool:
    """Whether the method is one of a class (or module) of the program's own."""
    if not isinstance(function.value, ast.Name):
        return False
    receiver = m.scope.get(function.value.id)
    return receiver is not None and isinstance(receiver.target, Instance)
