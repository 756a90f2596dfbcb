"""Whatever a call's arguments are, its result is no larger than there is room for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.messages import ToolCall
from harness.modes import Neighbors, Output
from harness.spill import Spills
from harness.tools import ToolContext
from harness.tools.graph_tools import graph_tools
from harness.tools.kit import Toolkit
from sandbox import Backend, Spec
from tests.support.graph_tools import call, small_graph

CAP = 1_000
ROOM = 2_500  # a mistake's 2,000 characters, or the cap and a notice
TEXT = "Zq" * 100_000
NAMES = (
    *("bash", "read", "answer", "search", "get_node", "get_schema", "neighbors"),
    *("search_in_graph", "search_in_neighborhood", "add_to_answer", "finish"),
)


def huge(schema: Any) -> Any:
    """A value that is larger than what `schema` has in mind."""
    kinds = {"string": TEXT, "integer": 10**15, "array": [[TEXT]] * 50, "object": {TEXT: TEXT}}
    return kinds.get(schema.get("type"), TEXT)


def least(schema: Any) -> Any:
    """A value that fits."""
    kinds: dict[Any, Any] = {"string": "gene", "integer": 1, "array": [], "object": {}}
    return kinds[schema.get("type")]


def test_no_argument_makes_a_result_larger_than_the_room(bwrap: Backend, tmp_path: Path) -> None:
    graph = small_graph(tmp_path)
    toolbox = Toolkit(NAMES, graph=graph).toolbox()
    with bwrap.open(Spec(graph.export.files)) as sandbox:
        spills = Spills(sandbox)
        context = ToolContext(lambda: sandbox, lambda: spills, Output(), CAP, 60.0)
        for spec in toolbox.specs:
            properties = spec.parameters["properties"]
            needed = {name: least(properties[name]) for name in spec.parameters.get("required", ())}
            for name in (*properties, "no such argument", TEXT):
                arguments = {**needed, name: huge(properties.get(name, {}))}
                seen = toolbox.dispatch(ToolCall("c", spec.name, json.dumps(arguments)), arguments, context)
                assert len(seen.text) <= ROOM, (spec.name, name[:30])
        for made in (ToolCall("c", TEXT, "{}"), ToolCall("c", "bash", "[" * 200_000)):
            assert len(toolbox.dispatch(made, None, context).text) <= ROOM


def test_a_mistake_that_quotes_too_much_keeps_what_is_possible(tmp_path: Path) -> None:
    seen = call(graph_tools(small_graph(tmp_path), Neighbors()), "neighbors", node_id=0, node_type=TEXT)
    assert seen.text.startswith("[error: there is no node type 'ZqZq")
    assert seen.text.endswith("node types: drug, gene, disease]")
