"""`--where`: a condition on questions, written as a small expression.

    turns > 10 and hit@1 == 0
    run2.calls.neighbors >= 10 and run1.calls.neighbors >= 10
    other("runs/prime-bm25").recall@20 == 0
    split in ("val", "test") and "protein" in query

A bare field is that of each compared run in turn, and the condition has to hold in all of them; `run1.` is the first
one's, `other("FOLDER").` that of a run which is not compared. The text is parsed with Python's grammar and walked over
a list of allowed nodes; nothing in it is ever executed. What is unknown (a cost without prices, a question that the
other run doesn't have) compares as false with everything but `None`.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from harness.errors import UserError
from harness.suggest import did_you_mean, hint

_LONGEST = 2_000  # characters; a condition is typed by hand
_DEEPEST = 40
_SYNTAX = (
    'for example: turns > 10 and hit@1 == 0, run2.calls >= 10, other("runs/x").mrr < 0.5, split in ("val", "test")'
)
_METRIC = {"hit_1": "hit@1", "hit_5": "hit@5", "recall_20": "recall@20"}  # also spelled so

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.eq,  # of use for `is None` alone
    ast.IsNot: operator.ne,
}
_EQUALITY = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Scope:
    """Whose field is meant: a compared run by its number (from 1), another run by its folder, or each (neither)."""

    number: int | None = None
    folder: str | None = None

    def __str__(self) -> str:
        return f"run{self.number}." if self.number else f'other("{self.folder}").' if self.folder else ""


EACH = Scope()


@dataclass(frozen=True)
class Reference:
    """A field as it stands in the condition."""

    scope: Scope
    field: str


class Source(Protocol):
    """Where a run's fields come from; the key says which question."""

    def field_names(self) -> Iterable[str]: ...

    def has(self, key: Any) -> bool: ...

    def field(self, name: str, key: Any) -> Any: ...


class Where:
    """A condition, parsed and checked for its form."""

    def __init__(self, text: str) -> None:
        """Raises UserError that says what is not understood."""
        self._text = text.strip()
        if len(text) > _LONGEST:
            raise UserError(f"--where: the condition is longer than {_LONGEST:,} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of an odd escape in a text
                self._tree = ast.parse(self._text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else "too deeply nested"
            raise UserError(f"--where: not understood: {reason}: {text}", _SYNTAX) from None
        self._references: dict[ast.expr, Reference] = {}
        self._check(self._tree, 0)

    @property
    def references(self) -> set[Reference]:
        """Every field that the condition speaks of."""
        return set(self._references.values())

    @property
    def folders(self) -> list[str]:
        """The folders of other runs, in no order that means anything."""
        return sorted({ref.scope.folder for ref in self.references if ref.scope.folder is not None})

    def bind(self, runs: list[Source], others: Mapping[str, Source]) -> Condition:
        """The condition over these runs. `others` has a source for each of `folders`. Raises UserError."""
        for reference in sorted(self.references, key=str):
            number = reference.scope.number
            if number is not None and not 1 <= number <= len(runs):
                raise UserError(f"--where: there is no run{number}", f"compared are run1 to run{len(runs)}")
            if number is not None:
                asked = [runs[number - 1]]
            else:
                asked = runs if reference.scope == EACH else [others[str(reference.scope.folder)]]
            known = list(dict.fromkeys(name for source in asked for name in source.field_names()))
            if reference.field not in known:
                raise UserError(
                    f"--where: unknown field '{reference.scope}{reference.field}'",
                    hint(reference.field, known, "fields"),
                )
        return Condition(self._tree, self._references, runs, others)

    def _check(self, node: ast.expr, depth: int) -> None:
        """Refuse whatever is not in the language, and note the fields."""
        if depth > _DEEPEST:
            raise UserError("--where: the condition is too deeply nested", _SYNTAX)
        reference = self._reference(node)
        if reference is not None:
            self._references[node] = reference
            return
        for child in self._parts(node):
            self._check(child, depth + 1)

    def _parts(self, node: ast.expr) -> Iterator[ast.expr]:
        match node:
            case ast.BoolOp():
                yield from node.values
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield node.operand
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                yield from (node.left, node.right)
            case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
                yield from (node.left, *node.comparators)
            case ast.Tuple() | ast.List():
                yield from node.elts
            case ast.Constant(value=str() | int() | float() | None):
                return
            case _:
                self._refuse(node)

    def _reference(self, node: ast.expr) -> Reference | None:
        """The field that a node names, None where it is something else."""
        suffix = ""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            match node:
                case ast.BinOp(left=ast.Name() | ast.Attribute() as named, right=ast.Constant(value=int(number))):
                    suffix, node = f"@{number}", named
                case _:
                    self._refuse(node)
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        scope = EACH
        if isinstance(node, ast.Call):
            scope = self._other(node)
        elif isinstance(node, ast.Name) and parts and node.id.startswith("run") and node.id[3:].isdecimal():
            scope = Scope(number=int(node.id[3:]))
        elif isinstance(node, ast.Name):
            parts.insert(0, node.id)
        elif parts:
            self._refuse(node)
        if not parts:
            if scope != EACH:
                raise UserError(f"--where: {scope} lacks a field", _SYNTAX)
            return None
        name = ".".join(parts) + suffix
        return Reference(scope, _METRIC.get(name, name))

    def _other(self, node: ast.Call) -> Scope:
        match node:
            case ast.Call(func=ast.Name(id="other"), args=[ast.Constant(value=str(folder))], keywords=[]) if folder:
                return Scope(folder=folder)
            case ast.Call(func=ast.Name(id=name)) if name != "other":
                raise UserError(f"--where: there is no function {name}", did_you_mean(name, ["other"]) or _SYNTAX)
        self._refuse(node)

    def _refuse(self, node: ast.expr) -> NoReturn:
        raise UserError(f"--where: not understood: {ast.get_source_segment(self._text, node)}", _SYNTAX)


class Condition:
    """A condition over certain runs."""

    def __init__(
        self, tree: ast.expr, references: Mapping[ast.expr, Reference], runs: list[Source], others: Mapping[str, Source]
    ) -> None:
        self._tree, self._references = tree, references
        self._runs, self._others = runs, others
        self._bound = runs if any(reference.scope == EACH for reference in references.values()) else runs[:1]

    def holds(self, key: Any) -> bool:
        """Whether the question `key`, which all compared runs have, is kept.

        Raises UserError where values can't be compared.
        """
        if not all(other.has(key) for other in self._others.values()):
            return False
        return all(bool(self._value(self._tree, key, run)) for run in self._bound)

    def _value(self, node: ast.expr, key: Any, run: Source) -> Any:
        reference = self._references.get(node)
        if reference is not None:
            return self._source(reference.scope, run).field(reference.field, key)

        def value(part: ast.expr) -> Any:
            return self._value(part, key, run)

        found: Any
        match node:
            case ast.Constant():
                found = node.value
            case ast.Tuple() | ast.List():
                found = tuple(map(value, node.elts))
            case ast.BoolOp():
                combine = all if isinstance(node.op, ast.And) else any
                found = combine(bool(value(part)) for part in node.values)
            case ast.UnaryOp(op=ast.Not()):
                found = not value(node.operand)
            case ast.UnaryOp():
                found = _reckon(operator.sub, 0, value(node.operand))
            case ast.BinOp():
                found = _reckon(_ARITHMETIC[type(node.op)], value(node.left), value(node.right))
            case ast.Compare():
                values = [value(part) for part in (node.left, *node.comparators)]
                steps = zip(node.ops, values[:-1], values[1:], strict=True)
                found = all(_compare(op, left, right) for op, left, right in steps)
        return found

    def _source(self, scope: Scope, run: Source) -> Source:
        if scope.number is not None:
            return self._runs[scope.number - 1]
        return run if scope.folder is None else self._others[scope.folder]


def _compare(op: ast.cmpop, left: Any, right: Any) -> bool:
    if not isinstance(op, _EQUALITY) and (left is None or right is None):
        return False
    try:
        return bool(_COMPARE[type(op)](left, right))
    except TypeError:
        raise UserError(f"--where: {left!r} and {right!r} can't be compared", _SYNTAX) from None


def _reckon(operation: Callable[[float, float], float], left: Any, right: Any) -> float | None:
    if left is None or right is None:
        return None
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise UserError(f"--where: only numbers can be reckoned with, not {left!r} and {right!r}", _SYNTAX)
    try:
        return operation(left, right)
    except ArithmeticError:
        return None  # a division by zero has no value
