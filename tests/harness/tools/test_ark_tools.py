"""ARK's tools: what the model sees of them, and what is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.modes import Neighbors
from harness.tools import Tool
from harness.tools.ark import Selection, ark_tools
from harness.tools.graph import Graph
from harness.tools.graph_tools import graph_tools
from tests.support.graph_tools import call, small_graph

RELEASED = Neighbors(ranking="substring")
PAPER = Neighbors(ranking="bm25")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return small_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def selection() -> Selection:
    return Selection()


@pytest.fixture
def tools(graph: Graph, selection: Selection) -> dict[str, Tool]:
    return ark_tools(graph, RELEASED, selection)


def parameters(tool: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = tool.spec.parameters["properties"]
    return properties


def test_names_and_parameters(tools: dict[str, Tool]) -> None:
    assert {name: list(parameters(tool)) for name, tool in tools.items()} == {
        "search_in_graph": ["query", "size"],
        "search_in_neighborhood": ["node_index", "query", "node_type", "edge_type"],
        "add_to_answer": ["answer_nodes"],
        "finish": ["comment"],
    }
    assert not any(tool.needs_sandbox for tool in tools.values())


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (Neighbors(query=False), ["node_index", "node_type", "edge_type"]),
        (Neighbors(types=False), ["node_index", "query"]),
        (Neighbors(query=False, types=False), ["node_index"]),
    ],
)
def test_ablations_take_parameters_away(graph: Graph, settings: Neighbors, left: list[str]) -> None:
    tools = ark_tools(graph, settings, Selection())
    assert list(parameters(tools["search_in_neighborhood"])) == left
    seen = call(tools, "search_in_neighborhood", node_index=0, query="pain", node_type="gene", edge_type="treats")
    assert seen.error == "invalid_arguments"
    assert "found 6 results" in call(tools, "search_in_neighborhood", node_index=0).text


def test_search_in_graph(graph: Graph, tools: dict[str, Tool]) -> None:
    assert call(tools, "search_in_graph", query="nausea").text == (
        f"Found 1 node for query: 'nausea':\n\n[4] Migraine with aura (disease) - Score:"
        f" {graph.index.text.search('nausea', 1)[0].score:.3f}\n"
        "    Context: ...xt: Recurring headache: pain, **nausea**."
    )
    assert call(tools, "search_in_graph", query="zzz").text == "No nodes found for query: 'zzz'"
    two = call(tools, "search_in_graph", query="blood pain", size=2).text
    assert two.startswith("Found 2 nodes for query: 'blood pain':")
    assert two.count("Score:") == 2
    assert "Showing" not in two
    assert call(tools, "search_in_graph", query="the blood", size=1_000).text.count("Score:") == 4


@pytest.mark.parametrize("size", [0, -3, "20", None, 2.5])
def test_sizes_that_are_none(tools: dict[str, Tool], size: object) -> None:
    assert call(tools, "search_in_graph", query="pain", size=size).error == "invalid_arguments"


def test_no_more_than_thirty_are_shown(tmp_path: Path) -> None:
    from exporter import export_tables
    from exporter.index import Index
    from tests.support.graphs import write_tables

    nodes = [{"id": number, "type": "t", "name": f"alike {number}"} for number in range(40)]
    edges = [("0", "r", str(number)) for number in range(1, 40)]
    export = export_tables(*write_tables(tmp_path, nodes, edges), tmp_path / "graph")
    tools = ark_tools(Graph(export, Index.open(export)), RELEASED, Selection())
    assert call(tools, "search_in_graph", query="alike", size=99).text.startswith("Found 30 nodes")
    around = call(tools, "search_in_neighborhood", node_index=0, query="alike").text
    assert around.startswith("Search around [0] alike 0 (query='alike') found 39 results:\n\n0. -r-> [1] alike 1 (t)\n")
    assert around.endswith("\n\n(Showing 20 of 39 results. You may want to refine your search.)")
    assert around.count("-r->") == 20


def test_search_in_neighborhood(tools: dict[str, Tool]) -> None:
    seen = call(tools, "search_in_neighborhood", node_index=0, query="aura", node_type="disease", edge_type="treats")
    assert seen.text == (
        "Search around [0] Aspirin (query='aura', node_type=disease, edge_type=treats) found 1 result:\n\n"
        "0. -treats-> [4] Migraine with aura (disease) <-contraindicates-\n"
        "1 match: Migraine with **aura**".replace("**", "")
        + " s4 text: Recurring headache:..."
    )
    assert call(tools, "search_in_neighborhood", node_index=0, query="zzz").text == (
        "Search around [0] Aspirin (query='zzz') found no results."
        " Consider widening your search or changing the strategy."
    )


def test_the_paper_ranks_by_bm25_and_the_code_by_words(graph: Graph, tools: dict[str, Tool]) -> None:
    by_bm25 = ark_tools(graph, PAPER, Selection())
    ask = {"node_index": 0, "query": "head"}  # a part of "headache": no word of its own
    assert "[4] Migraine" in call(tools, "search_in_neighborhood", **ask).text
    assert "no results" in call(by_bm25, "search_in_neighborhood", **ask).text


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ({}, "invalid_arguments", "'node_index' is a required property"),
        ({"node_index": "0"}, "invalid_arguments", "node_index: '0' is not of type 'integer'"),
        ({"node_index": 99}, "not_found", "there is no node 99; node ids are the integers from 0 to 7"),
        ({"node_index": 0, "edge_type": "cures"}, "not_found", "there is no edge type 'cures'"),
        ({"node_index": 0, "node_type": "x"}, "not_found", "node types: drug, gene, disease"),
    ],
)
def test_where_arks_code_fails_the_model_is_told(
    tools: dict[str, Tool], arguments: dict[str, object], kind: str, told: str
) -> None:
    seen = call(tools, "search_in_neighborhood", **arguments)
    assert seen.error == kind
    assert told in seen.text


def test_add_to_answer(tools: dict[str, Tool], selection: Selection) -> None:
    def nodes(*indices: int) -> list[dict[str, object]]:
        return [{"node_index": index, "reasoning": f"reason {index}"} for index in indices]

    assert call(tools, "add_to_answer", answer_nodes=nodes(4, 2)).text == (
        "Added the following nodes to the answer:\n"
        "- [4] Migraine with aura (type: disease)\n  Reasoning: reason 4\n"
        "- [2] PTGS1 (type: gene)\n  Reasoning: reason 2"
    )
    assert selection.nodes == (4, 2)
    assert call(tools, "add_to_answer", answer_nodes=nodes(2, 0, 99, -1, 0)).text == (
        "Added the following nodes to the answer:\n"
        "- [0] Aspirin (type: drug)\n  Reasoning: reason 0\n\n"
        "The following indices were not found in the graph: [99, -1]"
    )
    assert selection.nodes == (4, 2, 0)
    assert call(tools, "add_to_answer", answer_nodes=nodes(4)).text == "No valid nodes were added to the answer."
    assert call(tools, "add_to_answer", answer_nodes=[]).text == "No valid nodes were added to the answer."
    assert call(tools, "add_to_answer", answer_nodes=nodes(50)).text == (
        "No valid nodes were added to the answer.\n\nThe following indices were not found in the graph: [50]"
    )
    assert selection.nodes == (4, 2, 0)


@pytest.mark.parametrize("given", [[3], [{"node_index": 3}], [{"reasoning": "x"}], {"node_index": 3}, "3", None])
def test_answers_of_another_form_add_nothing(tools: dict[str, Tool], selection: Selection, given: object) -> None:
    assert call(tools, "add_to_answer", answer_nodes=given).error == "invalid_arguments"
    assert selection.nodes == ()


def test_finish_gives_what_was_selected(tools: dict[str, Tool]) -> None:
    seen = call(tools, "finish")
    assert (seen.text, seen.answer) == ("Exploration finished.", ())
    call(tools, "add_to_answer", answer_nodes=[{"node_index": 3, "reasoning": ""}])
    seen = call(tools, "finish", comment="I am done.")
    assert (seen.text, seen.answer) == ("Exploration finished. Agent's comment: I am done.", (3,))


def test_each_attempt_selects_for_itself(graph: Graph) -> None:
    first, second = Selection(), Selection()
    for selection, node in ((first, 1), (second, 2)):
        tools = ark_tools(graph, RELEASED, selection)
        call(tools, "add_to_answer", answer_nodes=[{"node_index": node, "reasoning": ""}])
    assert (first.nodes, second.nodes) == ((1,), (2,))


def test_no_tool_has_the_name_of_another(graph: Graph, tools: dict[str, Tool]) -> None:
    assert not set(tools) & set(graph_tools(graph, RELEASED))
