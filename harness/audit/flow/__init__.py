"""What a Python program does with nodes and edges, from its syntax tree; it is never run."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.audit.flow import values as v
from harness.audit.flow.calls import apply
from harness.audit.flow.expressions import EXPRESSIONS
from harness.audit.flow.machine import Machine, OutOfSteps
from harness.audit.flow.statements import STATEMENTS
from harness.audit.flow.syntax import parse_python
from harness.audit.flow.values import Scope, Value

OPERATIONS = ("node_scan", "one_hop", "multi_hop", "set_operation", "ranking", "id_check")


@dataclass(frozen=True)
class Analysis:
    """`operations` as in docs/audit-programs.md; `ids` are literal numbers that stand in the place of node ids;
    `written` the files, with their text, that the program writes; `modules` the agent's own modules that it used;
    `tree` is None where the source is no Python."""

    operations: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()
    written: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    tree: ast.Module | None = None


def analyse(
    source: str,
    arguments: Sequence[str] = (),
    modules: Mapping[str, str] | None = None,
    session: Scope | None = None,
) -> Analysis:
    """Follow a program. `modules` are the sources of the agent's own modules that it may import.

    `session` has the names that earlier programs left in the same interpreter, and gets this one's.
    """
    tree = parse_python(source)
    if tree is None:
        return Analysis()
    machine = Machine(EXPRESSIONS, STATEMENTS, apply, modules or {})
    if session is not None:
        machine.scope = session
    given = [v.constant(text) for text in arguments]
    whole = v.join(*given)
    machine.scope.names["sys.argv"] = Value(whole.tags | v.SEQUENCE, whole.ids)
    with contextlib.suppress(OutOfSteps, RecursionError):
        machine.run(tree.body)
    operations = set(machine.notes)
    if machine.depth:
        operations.add("one_hop" if machine.depth == 1 else "multi_hop")
    argument_ids = {n for value in given for n in value.ids}
    used = tuple(sorted(machine.imported))
    return Analysis(
        frozenset(operations), frozenset(machine.used_ids | argument_ids), tuple(machine.written), used, tree
    )
