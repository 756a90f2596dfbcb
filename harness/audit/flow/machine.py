"""Follows a program's data without running it, and takes note of what is done with nodes and edges.

An abstract interpretation: names have values that say where data comes from (`values.py`); branches are both taken and
joined; loops are gone through twice, so that what one round finds is there in the next; functions are followed where
they are called. It stops after a fixed number of steps and keeps what it found by then.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.audit.flow import values as v
from harness.audit.flow.syntax import parse_python
from harness.audit.flow.values import NOTHING, Instance, Module, Scope, Value

MOST_STEPS = 30_000
_DEEPEST = 12  # functions within functions


class OutOfSteps(Exception):
    """The program is larger than what is followed."""


class Machine:
    """The state of one program. `modules` are the agent's own modules that it may import, by name.

    A statement's handler says whether control surely doesn't go on behind it.
    """

    def __init__(
        self,
        expressions: Mapping[type[ast.expr], Callable[[Machine, Any], Value]],
        statements: Mapping[type[ast.stmt], Callable[[Machine, Any], bool]],
        apply: Callable[[Machine, Value, Value], Value],
        modules: Mapping[str, str],
    ) -> None:
        self._expressions, self._statements, self._apply = expressions, statements, apply
        self.modules = modules
        self.imported: dict[str, Module] = {}
        self.scope = Scope()
        self.notes: set[str] = set()
        self.depth = 0  # of the longest path that is followed
        self.used_ids: set[int] = set()  # literal numbers in the place of a node id
        self.selected = 0  # depth of the selection of edges that holds here
        self.rest_selected = 0  # set by a statement behind which a selection holds
        self.stops_early = False  # what is gone through here is left at the first match
        self.returned: list[list[Value]] = []
        self.written: list[tuple[str, str]] = []  # files that the program writes with known text
        self.main = True  # not in an imported module
        self.calls: list[ast.AST] = []
        self._steps = 0

    def eval(self, node: ast.expr | None) -> Value:
        """What is known of an expression."""
        if node is None:
            return NOTHING
        self._step()
        handler = self._expressions.get(type(node))
        return handler(self, node) if handler is not None else self.parts(node)

    def parts(self, node: ast.AST) -> Value:
        """The join of an expression's parts."""
        return v.join(*(self.eval(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)))

    def apply(self, function: Value, argument: Value) -> Value:
        """What a function that is given as a value makes of an argument: `map(f, …)`, `key=f`."""
        return self._apply(self, function, argument)

    def run(self, body: list[ast.stmt]) -> bool:
        """Follow statements; whether control surely doesn't reach their end."""
        for position, statement in enumerate(body):
            self._step()
            handler = self._statements.get(type(statement))
            if handler is None:
                self.parts(statement)
            elif handler(self, statement):
                return True
            depth, self.rest_selected = self.rest_selected, 0
            if depth:
                with self.under(depth):
                    return self.run(body[position + 1 :])
        return False

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise OutOfSteps

    # What is found out.

    def note(self, name: str) -> None:
        """The program does this."""
        self.notes.add(name)

    def follow(self, start: Value) -> int:
        """Edges are followed from `start`; the depth of what is reached."""
        depth = 2 if start.tags & v.HOPS or v.is_raw(start) else 1
        self.depth = max(self.depth, depth)
        self.use_ids(start)
        return depth

    def use_ids(self, value: Value) -> None:
        """The value stands in the place of a node id."""
        self.used_ids |= value.ids

    def check_id(self, key: Value) -> None:
        """The record of the node with this id is read."""
        self.use_ids(key)
        if v.is_given(key):
            self.note("id_check")

    def go_through(self, value: Value) -> None:
        """The whole of a value is read."""
        if value.tags & v.OPEN and value.tags & v.NODES and not value.tags & v.BY_ID and not self.stops_early:
            self.note("node_scan")

    def kept(self, value: Value) -> Value:
        """A value as it is kept: under a selection of edges, their ends are what was reached."""
        return v.reached(value, self.selected) if self.selected and v.is_raw(value) else value

    # Names and containers.

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign to a target of any form."""
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for position, part in enumerate(target.elts):
                if value.items is not None and len(value.items) == len(target.elts):
                    self.bind(part, value.items[position])
                else:
                    self.bind(part, v.element(value))
        elif isinstance(target, ast.Subscript):
            self.put(target.value, self.eval(target.slice), value)
        elif isinstance(target, ast.Attribute):
            receiver = self.eval(target.value)
            if isinstance(receiver.target, Instance):
                attributes = receiver.target.of.attributes
                attributes[target.attr] = v.join(attributes.get(target.attr, NOTHING), value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)

    def add(self, container: ast.expr, value: Value, tags: int = v.SEQUENCE) -> None:
        """Something is put into the container that an expression stands for."""
        value = self.kept(value)
        new = Value(value.tags | tags, value.ids)
        if isinstance(container, ast.Name):
            old = self.scope.get(container.id) or NOTHING
            self._rebind(container.id, v.join(Value(old.tags, old.ids), new))
        elif isinstance(container, ast.Attribute):
            self.bind(container, new)
        elif isinstance(container, ast.Subscript):
            self.put(container.value, self.eval(container.slice), value, tags)
        elif isinstance(container, ast.Call) and isinstance(container.func, ast.Attribute) and container.args:
            # d.setdefault(key, []).append(value)
            self.put(container.func.value, self.eval(container.args[0]), value, tags)

    def put(self, container: ast.expr, key: Value, value: Value, inner: int = 0) -> None:
        """`container[key] = value`, or `container[key]`, a collection with tags `inner`, gets `value` added."""
        key, value = self.kept(key), self.kept(value)
        tags = (key.tags & (v.BY_ID | v.EDGES | v.HOPS | v.NODE_ID)) | (value.tags & ~v.CONTAINER)
        tags |= value.tags & v.MAPPING
        if (inner | value.tags) & v.SET:
            tags |= v.SETS
        if value.tags & v.MAPPING:
            tags |= v.NESTED
        elif v.is_raw(key) and v.is_raw(value):
            tags |= v.NEIGHBOURS
        elif key.tags & v.NODE_ID:
            tags |= v.RECORDS
        self.add(container, Value(tags, value.ids | key.ids), 0)

    def lookup(self, container: Value, key: Value) -> Value:
        """`container[key]`."""
        found = v.element(container)
        if container.tags & v.NESTED:
            return found
        if container.tags & v.NEIGHBOURS:
            inner = v.SET if container.tags & v.SETS else v.SEQUENCE
            return Value((found.tags & ~(v.EDGES | v.ROW)) | v.hops(self.follow(key)) | inner)
        if container.tags & v.RECORDS:
            self.check_id(key)
            return Value(found.tags & ~v.NODE_ID, found.ids)
        return found

    def _rebind(self, name: str, value: Value) -> None:
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.parent
        self.scope.names[name] = value

    # Control.

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """Follow the block with other names."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def under(self, depth: int) -> Iterator[None]:
        """Follow the block under a selection of edges: the rows at hand are selected ones there."""
        if not depth:
            yield
            return
        before, self.selected = self.selected, max(self.selected, depth)
        rows = {name: value for name, value in self.scope.names.items() if v.is_row(value)}
        selected = {name: v.reached(value, self.selected) for name, value in rows.items()}
        self.scope.names.update(selected)
        try:
            yield
        finally:
            self.selected = before
            for name, value in selected.items():
                if self.scope.names.get(name) is value:
                    self.scope.names[name] = rows[name]

    @contextmanager
    def early(self, stops: bool) -> Iterator[None]:
        """Follow the block knowing whether it is left before everything is gone through."""
        before, self.stops_early = self.stops_early, self.stops_early or stops
        try:
            yield
        finally:
            self.stops_early = before

    def load(self, name: str) -> Module | None:
        """A module of the agent's own, followed once; None for any other."""
        if name in self.imported or name not in self.modules:
            return self.imported.get(name)
        module = self.imported[name] = Module(Scope())
        tree = parse_python(self.modules[name])
        if tree is not None:
            before, self.main = self.main, False
            with self.within(module.scope):
                self.run(tree.body)
            self.main = before
        return module

    def load_file(self, path: str) -> Module | None:
        """The same by a file's name."""
        return self.load(posixpath.basename(path).removesuffix(".py")) if path.endswith(".py") else None

    def may_enter(self, node: ast.AST) -> bool:
        """Whether a function is followed once more: recursion goes round twice."""
        return self.calls.count(node) < 2 and len(self.calls) < _DEEPEST
