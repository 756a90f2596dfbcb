"""ARK's four tools: `search_in_graph`, `search_in_neighborhood`, `add_to_answer`, `finish`.

Their names, parameters, limits and results are those of ARK's released code. Where that code fails (an unknown node,
arguments that are missing or no numbers), the model is told what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.modes import Neighbors
from harness.observe import Observation
from harness.text import beginning
from harness.tools import Tool
from harness.tools.graph import Graph
from harness.tools.graph_tools import NEIGHBORS_MOST, SEARCH_MOST, GraphTool, around, make_spec
from harness.tools.listing import label, search_results

_SEARCH_DEFAULT = 5


class Selection:
    """The nodes that one attempt has chosen so far, best first."""

    def __init__(self) -> None:
        self._nodes: dict[int, None] = {}

    @property
    def nodes(self) -> tuple[int, ...]:
        """In the order in which they were chosen."""
        return tuple(self._nodes)

    def add(self, node: int) -> bool:
        """Choose a node; False where it is chosen already."""
        if node in self._nodes:
            return False
        self._nodes[node] = None
        return True


def ark_tools(graph: Graph, neighbors: Neighbors, selection: Selection) -> dict[str, Tool]:
    """The tools by name, for one attempt. `neighbors` says what the neighbourhood tool takes, and how it ranks."""
    tools = [
        _search_in_graph(graph),
        _search_in_neighborhood(graph, neighbors),
        _add_to_answer(graph, selection),
        _finish(selection),
    ]
    return {tool.spec.name: tool for tool in tools}


def _search_in_graph(graph: Graph) -> GraphTool:
    spec = make_spec(
        "search_in_graph",
        "Find nodes in the whole graph whose name or text fits the query, best first.",
        {
            "query": {"type": "string", "description": "what to look for, in plain words"},
            "size": {
                "type": "integer",
                "minimum": 1,
                "description": f"how many nodes at most, default {_SEARCH_DEFAULT}, no more than {SEARCH_MOST}",
            },
        },
        ("query",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        query = arguments["query"]
        size = min(int(arguments.get("size", _SEARCH_DEFAULT)), SEARCH_MOST)
        return search_results(graph, query, graph.index.text.search(query, size), cap)

    return GraphTool(spec, run)


def _search_in_neighborhood(graph: Graph, settings: Neighbors) -> GraphTool:
    parameters: dict[str, Any] = {"node_index": {"type": "integer", "description": "the node to look around"}}
    if settings.query:
        parameters["query"] = {"type": "string", "description": "keywords that the neighbours must fit"}
    if settings.types:
        parameters["node_type"] = {"type": "string", "description": "only nodes of this type"}
        parameters["edge_type"] = {"type": "string", "description": "only along edges of this type"}
    spec = make_spec(
        "search_in_neighborhood",
        f"Find nodes one edge away from a node, in either direction; up to {NEIGHBORS_MOST} are shown."
        " `-type->` are edges from the node, `<-type-` edges to it.",
        parameters,
        ("node_index",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        names = ("query", "node_type", "edge_type")
        return around(graph, settings, arguments["node_index"], arguments, names, NEIGHBORS_MOST, cap)

    return GraphTool(spec, run)


def _add_to_answer(graph: Graph, selection: Selection) -> GraphTool:
    item = {
        "type": "object",
        "properties": {
            "node_index": {"type": "integer"},
            "reasoning": {"type": "string", "description": "why this node answers the question"},
        },
        "required": ["node_index", "reasoning"],
        "additionalProperties": False,
    }
    spec = make_spec(
        "add_to_answer",
        "Put nodes behind those already in the answer, in the order given: the most plausible first.",
        {"answer_nodes": {"type": "array", "items": item}},
        ("answer_nodes",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        added, unknown = [], []
        for chosen in arguments["answer_nodes"]:
            if not graph.has(chosen["node_index"]):
                unknown.append(chosen["node_index"])
                continue
            node = int(chosen["node_index"])
            if selection.add(node):
                reasoning = f"  Reasoning: {chosen['reasoning']}"
                added.append(f"- {label(graph, node)} (type: {graph.type_of(node)})\n{reasoning}")
        done = "Added the following nodes to the answer:" if added else "No valid nodes were added to the answer."
        lines = [done, *added]
        if unknown:
            lines.append(f"\nThe following indices were not found in the graph: {unknown}")
        return Observation(beginning("\n".join(lines), cap))

    return GraphTool(spec, run)


def _finish(selection: Selection) -> GraphTool:
    spec = make_spec(
        "finish",
        "End the exploration; the answer is what was added to it.",
        {"comment": {"type": "string", "description": "anything left to say"}},
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        comment = arguments.get("comment")
        said = f" Agent's comment: {comment}" if comment else ""
        return Observation(beginning(f"Exploration finished.{said}", cap), answer=selection.nodes)

    return GraphTool(spec, run)
