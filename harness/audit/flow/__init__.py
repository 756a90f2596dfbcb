"""What a Python program does with nodes and edges, from its syntax tree; it is never run."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.audit.flow import values as v
from harness.audit.flow.calls import apply
from harness.audit.flow.expressions import EXPRESSIONS
from harness.audit.flow.machine import Machine, OutOfSteps
from harness.audit.flow.statements import STATEMENTS
from harness.audit.flow.values import Value

OPERATIONS = ("node_scan", "one_hop", "multi_hop", "set_operation", "ranking", "id_check")
_LONGEST = 200_000  # characters; a longer program is not followed


@dataclass(frozen=True)
class Analysis:
    """`operations` as in docs/audit-programs.md; `ids` are literal numbers that stand in the place of node ids;
    `written` the files, with their text, that the program writes; `tree` is None where the source is no Python."""

    operations: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()
    written: tuple[tuple[str, str], ...] = ()
    tree: ast.Module | None = None


def analyse(source: str, arguments: Sequence[str] = (), modules: Mapping[str, str] | None = None) -> Analysis:
    """Follow a program. `modules` are the sources of the agent's own modules that it may import."""
    tree = parse_python(source)
    if tree is None:
        return Analysis()
    machine = Machine(EXPRESSIONS, STATEMENTS, apply, modules or {})
    given = [v.constant(text) for text in arguments]
    whole = v.join(*given)
    machine.scope.names["sys.argv"] = Value(whole.tags | v.SEQUENCE, whole.ids)
    with contextlib.suppress(OutOfSteps, RecursionError):
        machine.run(tree.body)
    operations = set(machine.notes)
    if machine.depth:
        operations.add("one_hop" if machine.depth == 1 else "multi_hop")
    argument_ids = {n for value in given for n in value.ids}
    ids = frozenset(machine.used_ids | argument_ids | _listed_numbers(tree))
    return Analysis(frozenset(operations), ids, tuple(machine.written), tree)


def parse_python(source: str) -> ast.Module | None:
    """The syntax tree, None where the text is not Python (or too large or too deep to be read)."""
    if len(source) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the agent's texts are its own business
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _listed_numbers(tree: ast.Module) -> set[int]:
    """Numbers in lists, tuples and sets of whole numbers only: `[1403, 2773]`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and node.elts:
            numbers = [e.value for e in node.elts if isinstance(e, ast.Constant) and type(e.value) is int]
            if len(numbers) == len(node.elts):
                found.update(numbers)
    return found
