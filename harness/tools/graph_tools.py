"""The four graph tools: `search`, `get_node`, `get_schema`, `neighbors`. No files, no sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.messages import ToolSpec
from harness.modes import Neighbors
from harness.observe import Observation
from harness.tools import Tool, ToolContext, mistake
from harness.tools.graph import Graph, GraphMistake, page
from harness.tools.listing import neighborhood_results, search_results
from harness.tools.neighborhood import look_around

SEARCH_MOST = 30
NEIGHBORS_MOST = 20
_SEARCH_DEFAULT = 5

Run = Callable[[Mapping[str, Any], int], Observation]


class GraphTool:
    """A tool that is a function of its arguments and of the characters that fit."""

    needs_sandbox = False

    def __init__(self, spec: ToolSpec, run: Run) -> None:
        self.spec = spec
        self._run = run

    def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        try:
            return self._run(arguments, context.cap)
        except GraphMistake as error:
            return mistake("not_found", str(error))


def make_spec(name: str, description: str, parameters: dict[str, Any], required: tuple[str, ...] = ()) -> ToolSpec:
    """A tool's spec with `parameters` by name."""
    schema = {"type": "object", "properties": parameters, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, description, schema)


def graph_tools(graph: Graph, neighbors: Neighbors) -> dict[str, Tool]:
    """The tools by name. `neighbors` says how neighbours are filtered and ranked."""
    tools = [_search(graph), _get_node(graph), _get_schema(graph), _neighbors(graph, neighbors)]
    return {tool.spec.name: tool for tool in tools}


def _search(graph: Graph) -> GraphTool:
    spec = make_spec(
        "search",
        "Search all nodes by keyword: ranked by BM25 over names and texts. Gives ids, names, types and scores.",
        {
            "query": {"type": "string", "description": "plain words; there is no query syntax"},
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": SEARCH_MOST,
                "description": f"how many nodes, default {_SEARCH_DEFAULT}",
            },
        },
        ("query",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        query = arguments["query"]
        hits = graph.index.text.search(query, int(arguments.get("k", _SEARCH_DEFAULT)))
        return search_results(graph, query, hits, cap)

    return GraphTool(spec, run)


def _get_node(graph: Graph) -> GraphTool:
    spec = make_spec(
        "get_node",
        "The whole record of a node as JSON: type, name, all attributes. A long one comes in parts.",
        {
            "node_id": {"type": "integer"},
            "offset": {"type": "integer", "minimum": 0, "description": "first character, default 0"},
        },
        ("node_id",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        node = graph.node(arguments["node_id"])
        _, line = next(graph.export.lines([node]))
        return page(line.decode("utf-8", "replace").rstrip("\n"), int(arguments.get("offset", 0)), cap, "the record")

    return GraphTool(spec, run)


def _get_schema(graph: Graph) -> GraphTool:
    spec = make_spec(
        "get_schema",
        "The graph's node types with their attributes, and its relations with the types at their ends.",
        {"offset": {"type": "integer", "minimum": 0, "description": "first character, default 0"}},
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        return page(graph.schema_text(), int(arguments.get("offset", 0)), cap, "the schema")

    return GraphTool(spec, run)


def _neighbors(graph: Graph, settings: Neighbors) -> GraphTool:
    spec = make_spec(
        "neighbors",
        "The nodes that edges join to a node, in either direction, with the relations between them:"
        " `-relation->` leads from the node, `<-relation-` to it. All filters are optional.",
        {
            "node_id": {"type": "integer"},
            "relation": {"type": "string", "description": "only along edges of this relation"},
            "node_type": {"type": "string", "description": "only nodes of this type"},
            "query": {"type": "string", "description": "keywords: only nodes whose name or text holds them"},
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": NEIGHBORS_MOST,
                "description": f"how many nodes, default {NEIGHBORS_MOST}",
            },
        },
        ("node_id",),
    )

    def run(arguments: Mapping[str, Any], cap: int) -> Observation:
        limit = int(arguments.get("k", NEIGHBORS_MOST))
        return around(graph, settings, arguments["node_id"], arguments, ("query", "node_type", "relation"), limit, cap)

    return GraphTool(spec, run)


def around(
    graph: Graph,
    settings: Neighbors,
    node_id: Any,
    arguments: Mapping[str, Any],
    names: tuple[str, str, str],
    k: int,
    cap: int,
) -> Observation:
    """Look around a node. `names` are those of the arguments for the query, the node type and the relation."""
    node = graph.node(node_id)
    query, node_type, relation = (arguments.get(name) or "" for name in names)
    found = look_around(
        graph,
        node,
        relation=graph.relation_id(relation, names[2].replace("_", " ")) if relation else None,
        node_type=graph.type_id(node_type) if node_type else None,
        query=query,
        k=k,
        ranking=settings.ranking,
    )
    filters = zip(names, (query, node_type, relation), strict=True)
    return neighborhood_results(graph, node, {name: value for name, value in filters if value.strip()}, found, cap)
