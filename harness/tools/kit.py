"""Every tool by its name, and the toolboxes that a run's attempts get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import UserError
from harness.messages import ToolSpec
from harness.modes import KERNEL, Neighbors, View
from harness.suggest import hint
from harness.tools import Tool, Toolbox
from harness.tools.answer import ANSWER_TOOL, AnswerTool
from harness.tools.ark import Selection, ark_tools
from harness.tools.bash import Bash
from harness.tools.graph import Graph
from harness.tools.graph_tools import graph_tools
from harness.tools.python import Python
from harness.tools.read import Read
from sandbox import Backend, KernelBackend, OneProgramBackend, ProgramRun

_PLAIN: Mapping[str, Callable[[], Tool]] = {"bash": Bash, "read": Read, KERNEL: Python, ANSWER_TOOL: AnswerTool}
_OF_GRAPH = ("search", "get_node", "get_schema", "neighbors")
_OF_ARK = ("search_in_graph", "search_in_neighborhood", "add_to_answer", "finish")
_SANDBOXED = {"bash", "read", KERNEL}


def needs_sandbox(names: tuple[str, ...]) -> bool:
    """Whether any of these tools runs something in a sandbox. Raises UserError for an unknown one."""
    _check(names)
    return bool(_SANDBOXED & set(names))


def sandboxes_for(
    names: tuple[str, ...], view: View, backend: Backend, ran: Callable[[ProgramRun], None] = lambda _: None
) -> Backend:
    """Opens the sandboxes in which these tools work; `ran` is told of programs where the shell can run one."""
    if view.one_program:
        return OneProgramBackend(backend, ran)
    return KernelBackend(backend) if KERNEL in names else backend


def needs_graph(names: tuple[str, ...]) -> bool:
    """Whether any of these tools looks into the graph's index."""
    return bool({*_OF_GRAPH, *_OF_ARK} & set(names))


class Toolkit:
    """The tools of one run's mode. `graph` is there where `needs_graph` says so."""

    def __init__(self, names: tuple[str, ...], neighbors: Neighbors | None = None, graph: Graph | None = None) -> None:
        _check(names)
        self._names = names
        self._graph = graph
        self._neighbors = neighbors or Neighbors()
        self._specs: tuple[ToolSpec, ...] | None = None

    def toolbox(self, selection: Selection | None = None) -> Toolbox:
        """The tools for one attempt, which chooses its nodes in `selection` where the mode keeps one."""
        made: dict[str, Any] = {name: make() for name, make in _PLAIN.items() if name in self._names}
        if self._graph is not None:
            made |= graph_tools(self._graph, self._neighbors)
            made |= ark_tools(self._graph, self._neighbors, selection or Selection())
        box = Toolbox({name: made[name] for name in self._names}, self._specs)
        self._specs = box.specs
        return box


def make_toolbox(names: tuple[str, ...]) -> Toolbox:
    """The tools of these names, none of which looks into a graph. Raises UserError naming those there are."""
    return Toolkit(names).toolbox()


def _check(names: tuple[str, ...]) -> None:
    known = (*_PLAIN, *_OF_GRAPH, *_OF_ARK)
    for name in names:
        if name not in known:
            raise UserError(f"unknown tool '{name}'", hint(name, known, "tools"))
