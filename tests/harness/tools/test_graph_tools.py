"""`search`, `get_node`, `get_schema`, `neighbors`: what the model sees of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from exporter import Export, export_tables
from exporter.index import Index
from harness.modes import Neighbors
from harness.tools import Tool
from harness.tools.graph import Graph
from harness.tools.graph_tools import graph_tools
from harness.tools.neighborhood import keywords
from tests.support.graph_tools import call, small_graph
from tests.support.graphs import write_tables

Tools = dict[str, Tool]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return small_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def tools(graph: Graph) -> Tools:
    return graph_tools(graph, Neighbors())


@pytest.fixture(scope="module")
def by_bm25(graph: Graph) -> Tools:
    return graph_tools(graph, Neighbors(ranking="bm25"))


@pytest.fixture(scope="module")
def biogo_graph(biogo: Export, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return Graph(biogo, Index.open(biogo, tmp_path_factory.mktemp("cache")))


def ids(text: str) -> list[int]:
    """The nodes of a list, in its order."""
    return [int(found) for found in re.findall(r"^(?:\d+\..*?)?\[(\d+)\]", text, re.MULTILINE)]


def test_none_needs_a_sandbox(tools: Tools) -> None:
    assert list(tools) == ["search", "get_node", "get_schema", "neighbors"]
    assert not any(tool.needs_sandbox for tool in tools.values())


def test_search(tools: Tools) -> None:
    seen = call(tools, "search", query="the anticoagulant analgesic", k=2)
    assert re.sub(r"\d\.\d{3}", "N", seen.text) == (
        "Found 2 nodes for query: 'the anticoagulant analgesic':\n\n"
        "[0] Aspirin (drug) - Score: N\n"
        "    Context: ...: An analgesic; it also thins **the** blood.\n\n"
        "[1] Warfarin (drug) - Score: N\n"
        "    Context: Warfarin d1 text: An **anticoagulant** that thins blood."
    )


def test_search_shows_five_by_default(biogo_graph: Graph) -> None:
    tools = graph_tools(biogo_graph, Neighbors())
    assert len(ids(call(tools, "search", query="protein binding").text)) == 5
    assert len(ids(call(tools, "search", query="protein binding", k=30).text)) == 30
    one = call(tools, "search", query="Mitochondrial transport?", k=1).text
    assert one.startswith("Found 1 node for query: 'Mitochondrial transport?':\n\n[904] mitochondrial transport (")


@pytest.mark.parametrize("query", ["", "  ", "xyzzy", '"?!', "name:\\", "日本", "a" * 5_000])
def test_a_search_without_hits(tools: Tools, query: str) -> None:
    shown = query.strip() if len(query) < 200 else "a" * 200 + "..."
    assert call(tools, "search", query=query).text == f"No nodes found for query: '{shown}'"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search", {"query": "x", "k": 0}, "k: 0 is less than the minimum of 1"),
        ("search", {"query": "x", "k": 31}, "k: 31 is greater than the maximum of 30"),
        ("search", {"query": "x", "k": "5"}, "k: '5' is not of type 'integer'"),
        ("search", {}, "'query' is a required property"),
        ("neighbors", {"node_id": 0, "k": 21}, "k: 21 is greater than the maximum of 20"),
        ("neighbors", {"node_id": "0"}, "node_id: '0' is not of type 'integer'"),
        ("neighbors", {"node_id": 0, "limit": 3}, "Additional properties are not allowed ('limit' was unexpected)"),
        ("get_node", {"node_id": 0.5}, "node_id: 0.5 is not of type 'integer'"),
        ("get_node", {"node_id": 0, "offset": -1}, "offset: -1 is less than the minimum of 0"),
    ],
)
def test_arguments_that_do_not_fit(tools: Tools, name: str, arguments: dict[str, object], told: str) -> None:
    seen = call(tools, name, **arguments)
    assert seen.error == "invalid_arguments"
    assert told in seen.text


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("get_node", {"node_id": 8}, "there is no node 8; node ids are the integers from 0 to 7"),
        ("get_node", {"node_id": -1}, "there is no node -1; node ids are the integers from 0 to 7"),
        ("neighbors", {"node_id": 10**30}, f"there is no node {10**30}; node ids are the integers from 0 to 7"),
        (
            "neighbors",
            {"node_id": 0, "relation": "treat"},
            "there is no relation 'treat'; did you mean 'treats'?"
            " relations: targets, treats, contraindicates, interacts, resembles",
        ),
        (
            "neighbors",
            {"node_id": 0, "node_type": "Drug"},
            "there is no node type 'Drug'; did you mean 'drug'? node types: drug, gene, disease",
        ),
        ("get_node", {"node_id": 0, "offset": 400}, "the offset is 400, but the record has 149 characters"),
    ],
)
def test_what_the_graph_does_not_have(tools: Tools, name: str, arguments: dict[str, object], told: str) -> None:
    seen = call(tools, name, **arguments)
    assert (seen.error, seen.text) == ("not_found", f"[error: {told}]")


def test_endless_names_are_cut_in_messages(tools: Tools) -> None:
    endless = "x" * 100_000
    for name, arguments in (("neighbors", {"node_id": 0, "relation": endless}), (endless, {})):
        assert len(call(tools, name, **arguments).text) < 1_000


def test_an_endless_query_counts_with_its_first_words(tools: Tools) -> None:
    noise = " ".join(f"n{number}" for number in range(200_000))
    assert ids(call(tools, "neighbors", node_id=0, query=f"pain {noise}").text) == [3, 4, 5]
    assert ids(call(tools, "neighbors", node_id=0, query=f"{noise} pain").text) == []
    assert "**" not in call(tools, "search", query=f"{noise} blood").text


def test_get_node_gives_the_line_of_the_file(tools: Tools, graph: Graph) -> None:
    lines = (graph.export.files / "nodes" / "0000.jsonl").read_text("utf-8").splitlines()
    assert [call(tools, "get_node", node_id=node).text for node in range(8)] == lines
    assert call(tools, "get_node", node_id=3.0).text == lines[3]


def test_a_long_record_comes_in_parts(tmp_path: Path) -> None:
    nodes = [{"id": 1, "type": "t", "name": "é" * 50, "big": 10**30, "text": "wörd " * 2_000}]
    export = export_tables(*write_tables(tmp_path, nodes, []), tmp_path / "graph")
    tools = graph_tools(Graph(export, Index.open(export)), Neighbors())
    size = len((export.files / "nodes" / "0000.jsonl").read_text("utf-8").rstrip("\n"))
    text, offset = "", 0
    for _ in range(20):
        seen = call(tools, "get_node", cap=1_500, node_id=0, offset=offset)
        assert len(seen.text) <= 1_500
        part, _, note = seen.text.rpartition("\n")
        assert seen.cut is not None
        assert seen.cut["characters"] == size - len(part)
        text += part
        going_on = re.fullmatch(rf"\[characters (\d+)-(\d+) of {size}(?:; go on with offset (\d+))?\]", note)
        assert going_on is not None
        assert int(going_on[1]) == offset
        offset = int(going_on[2])
        if going_on[3] is None:
            break
        assert int(going_on[3]) == offset
    assert json.loads(text) == export.node(0)
    assert call(tools, "get_node", node_id=0).cut is None


def test_get_schema(tools: Tools) -> None:
    assert call(tools, "get_schema").text == (
        "8 nodes, 9 edges\n\n"
        "Node types (each attribute with the share of nodes that have it):\n"
        "- drug (2 nodes): source_id 1, text 1\n"
        "- gene (3 nodes): source_id 1, text 1\n"
        "- disease (3 nodes): source_id 1, text 1\n\n"
        "Relations:\n"
        "- targets (2 edges): drug -> gene (2)\n"
        "- treats (3 edges): drug -> disease (3)\n"
        "- contraindicates (2 edges): disease -> drug (2)\n"
        "- interacts (1 edge, symmetric): drug -> drug (1)\n"
        "- resembles (1 edge): drug -> drug (1)"
    )


def test_a_long_schema_comes_in_parts(biogo_graph: Graph) -> None:
    tools = graph_tools(biogo_graph, Neighbors())
    whole = call(tools, "get_schema").text
    first = call(tools, "get_schema", cap=1_000).text.rpartition("\n")[0]
    rest = call(tools, "get_schema", cap=1_200, offset=len(first)).text.rpartition("\n")[0]
    assert first + rest == whole


def test_neighbors_in_either_direction(tools: Tools) -> None:
    """Each once, whatever joins it; never the node itself."""
    assert call(tools, "neighbors", node_id=0).text == (
        "Search around [0] Aspirin found 6 results:\n\n"
        "0. -interacts-> [1] Warfarin (drug) <-interacts-\n\n"
        "1. -targets-> [2] PTGS1 (gene)\n\n"
        "2. -targets-> [3] PTGS2 (gene)\n\n"
        "3. -treats-> [4] Migraine with aura (disease) <-contraindicates-\n\n"
        "4. -treats-> [5] (no name) (disease)\n\n"
        "5. [6] Stroke (disease) <-contraindicates-"
    )


@pytest.mark.parametrize(
    ("filters", "told", "found"),
    [
        ({"relation": "treats"}, "relation=treats", [4, 5]),
        ({"relation": "contraindicates", "node_type": ""}, "relation=contraindicates", [4, 6]),
        ({"relation": "interacts"}, "relation=interacts", [1]),
        ({"node_type": "gene"}, "node_type=gene", [2, 3]),
        ({"node_type": "gene", "relation": "targets", "query": " "}, "node_type=gene, relation=targets", [2, 3]),
        ({"k": 2}, "", [1, 2]),
        ({"query": "", "relation": "", "node_type": "", "k": 1}, "", [1]),
    ],
)
def test_filters(tools: Tools, filters: dict[str, object], told: str, found: list[int]) -> None:
    seen = call(tools, "neighbors", node_id=0, **filters).text
    assert ids(seen) == found
    assert seen.startswith(f"Search around [0] Aspirin ({told}) found" if told else "Search around [0] Aspirin found")


def test_all_relations_to_a_neighbor_are_shown_whichever_is_asked_for(tools: Tools) -> None:
    seen = call(tools, "neighbors", node_id=4, relation="contraindicates").text
    assert seen.endswith("0. -contraindicates-> [0] Aspirin (drug) <-treats-")


@pytest.mark.parametrize("arguments", [{"node_id": 7}, {"node_id": 0, "relation": "resembles"}])
def test_no_neighbors(tools: Tools, arguments: dict[str, object]) -> None:
    assert call(tools, "neighbors", **arguments).text.endswith(
        " found no results. Consider widening your search or changing the strategy."
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ptgs", [2, 3]),  # names hold the query
        ("PAIN", [3, 4, 5]),
        ("pain, of unknown origin!", [5, 3, 4]),  # most words first, then by id; punctuation doesn't count
        ("blood-thinning", [1, 2, 6]),
        ("The", []),  # says nothing
        ("a", [1, 4]),  # a single letter is looked for in names only
        ("stroke blood", [6, 1, 2]),
        ("xyzzy", []),
        ("[", []),
    ],
)
def test_the_query_filters_by_keyword(tools: Tools, query: str, found: list[int]) -> None:
    assert ids(call(tools, "neighbors", node_id=0, query=query).text) == found


def test_where_the_words_are_found(tools: Tools) -> None:
    assert call(tools, "neighbors", node_id=0, query="headache fever pain", k=2).text == (
        "Search around [0] Aspirin (query='headache fever pain') found 3 results:\n\n"
        "0. -targets-> [3] PTGS2 (gene)\n"
        "2 matches: ...le cyclooxygenase, (pain) and fever. ...t: Inducible cyclooxygenase, (pain) and fever.\n\n"
        "1. -treats-> [4] Migraine with aura (disease) <-contraindicates-\n"
        "2 matches: ...with aura s4 text: Recurring headache: pain, nausea."
        " ...s4 text: Recurring headache: pain, nausea.\n\n"
        "(Showing 2 of 3 results. You may want to refine your search.)"
    )


@pytest.mark.parametrize(
    ("query", "found"), [("pain", {3, 4, 5}), ("ptgs", set()), ("unknown PTGS1", {5, 2}), ("the", {2, 6}), ("?", set())]
)
def test_the_query_ranks_by_bm25(by_bm25: Tools, graph: Graph, query: str, found: set[int]) -> None:
    """Neighbours that share a word, in the order that a search in the whole graph has them."""
    seen = ids(call(by_bm25, "neighbors", node_id=0, query=query).text)
    assert set(seen) == found
    assert seen == [hit.node for hit in graph.index.text.search(query, 100) if hit.node in found]


def test_the_sample_graph_against_a_plain_search(biogo: Export, biogo_graph: Graph) -> None:
    """The keyword filter written out, over records and edge files."""
    records = list(biogo.nodes())
    joined: dict[int, set[int]] = {record["node_id"]: set() for record in records}
    for relation in biogo.schema["relations"]:
        for source, target, _ in biogo.edges(relation["id"]):
            if source != target:
                joined[source].add(target)
                joined[target].add(source)
    documents = dict(enumerate(biogo_graph.index.documents(range(len(records)))))
    tools = graph_tools(biogo_graph, Neighbors())
    chance = np.random.default_rng(5)
    for node in chance.integers(0, len(records), 150).tolist():
        words = chance.choice(["kinase", "binding", "of", "regulation", "cell", "protein-coding", "mito"], 2)
        query = " ".join(words.tolist())
        named = [n for n in sorted(joined[node]) if query in records[n]["name"].lower()]
        counts = {n: sum(w in documents[n].lower() for w in keywords(query)) for n in joined[node] if n not in named}
        expected = [*named, *sorted((n for n in counts if counts[n]), key=lambda n: (-counts[n], n))]
        seen = call(tools, "neighbors", cap=100_000, node_id=node, query=query).text
        assert ids(seen) == expected[:20]
        told = f"found {len(expected)} result{'s' if len(expected) != 1 else ''}:" if expected else "found no results"
        assert told in seen


def test_a_list_that_does_not_fit(biogo_graph: Graph) -> None:
    """As many whole entries as there is room for, and a note."""
    tools = graph_tools(biogo_graph, Neighbors())
    for cap in (1_000, 2_000, 5_000):
        for name, arguments in (("search", {"query": "protein", "k": 30}), ("neighbors", {"node_id": 0})):
            whole, cut = call(tools, name, **arguments), call(tools, name, cap=cap, **arguments)
            if len(whole.text) <= cap - 120:
                continue
            assert len(cut.text) <= cap
            assert cut.cut is not None
            shown = ids(cut.text)
            assert shown == ids(whole.text)[: len(shown)]
            assert re.search(rf"\(Showing {len(shown)} of \d+ results\.", cut.text)
    assert whole.cut is None


def test_names_are_shown_on_one_line(tmp_path: Path) -> None:
    nodes = [
        {"id": 0, "type": "a (b)", "name": "x\n\n[1] y\t(z)\0" + "long " * 100},
        {"id": 1, "type": "t", "name": "other"},
    ]
    export = export_tables(*write_tables(tmp_path, nodes, [("1", "r", "0")]), tmp_path / "graph")
    tools = graph_tools(Graph(export, Index.open(export)), Neighbors())
    lines = call(tools, "neighbors", node_id=1).text.split("\n")
    name = ("x [1] y (z) " + "long " * 100)[:200] + "..."
    assert lines[2].endswith(f"[0] {name} (a (b))")
