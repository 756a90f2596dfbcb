"""Neighbours from the index against neighbours counted one by one from the edge files."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter import Export, ExportError, export_tables
from exporter.index.adjacency import Adjacency, Direction
from exporter.index.build_adjacency import build_adjacency
from tests.support.graphs import small_export, write_tables

Neighbors = dict[tuple[int, int | None, Direction], list[int]]


def build(export: Export, folder: Path, most: int = 1_000) -> Adjacency:
    folder.mkdir()
    build_adjacency(export.files, export.schema, folder, most=most)
    return Adjacency(folder)


def counted(export: Export) -> Neighbors:
    """Neighbours in ascending order, one for each edge and end."""
    found: Neighbors = defaultdict(list)
    for relation in export.schema["relations"]:
        for source, target, _ in export.edges(relation["id"]):
            ends: list[tuple[int, Direction, int]] = [(source, "out", target), (target, "in", source)]
            if relation["symmetric"]:
                ends += [(target, "out", source), (source, "in", target)] if source != target else []
                both = [(source, target), (target, source)] if source != target else [(source, source)]
            else:
                both = [(source, target), (target, source)]
            for head, direction, tail in [*ends, *((head, "both", tail) for head, tail in both)]:
                for key in (relation["id"], None):
                    found[head, key, direction].append(tail)
    return found


def agree(adjacency: Adjacency, export: Export) -> None:
    expected = counted(export)
    relations = [relation["id"] for relation in export.schema["relations"]]
    for node in range(export.node_count):
        for relation in (None, *relations):
            for direction in ("both", "out", "in"):
                found = adjacency.neighbors(node, relation, direction).tolist()
                assert sorted(found) == sorted(expected[node, relation, direction])


def test_the_sample_graph(biogo: Export, tmp_path: Path) -> None:
    agree(build(biogo, tmp_path / "index", most=1_000_000), biogo)


def test_pieces_make_the_same_files_as_the_whole(biogo: Export, tmp_path: Path) -> None:
    folders = [tmp_path / str(most) for most in (20, 700, 1_000_000)]
    for folder in folders:
        build(biogo, folder, most=int(folder.name))
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1] == files[2]
    assert set(files[0]) == {"adjacency.bin", "adjacency.json"}


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["likes", "knows", "eats"]), st.integers(0, 5)), max_size=25),
    st.booleans(),
    st.integers(1, 12),
)
def test_any_graph(edges: list[tuple[int, str, int]], doubled: bool, most: int) -> None:
    """Parallel edges, self loops, relations stored in both directions, nodes without edges."""
    rows = [(str(a), relation, str(b), "x") for a, relation, b in edges]
    rows += [(b, relation, a, x) for a, relation, b, x in rows if relation == "knows" and doubled]
    nodes = [{"id": number, "type": f"t{number % 2}", "name": ""} for number in range(6)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        header = ("source", "relation", "target", "weight")
        export = export_tables(*write_tables(folder, nodes, rows, header), folder / "graph")
        agree(build(export, folder / "index", most), export)


def test_neighbors_ascend_within_a_relation_and_direction(tmp_path: Path) -> None:
    nodes = [{"id": number, "type": "t", "name": ""} for number in range(5)]
    edges = [("2", "r", "4"), ("2", "r", "1"), ("3", "r", "2"), ("2", "r", "4"), ("0", "r", "2")]
    export = export_tables(*write_tables(tmp_path, nodes, edges), tmp_path / "graph")
    adjacency = build(export, tmp_path / "index")
    assert adjacency.neighbors(2, 0).tolist() == [1, 4, 4, 0, 3]
    assert adjacency.neighbors(2, 0, "out").tolist() == [1, 4, 4]
    assert adjacency.neighbors(2, 0, "in").tolist() == [0, 3]
    assert adjacency.neighbors(2, None, "in").dtype == "int32"


def test_a_relation_without_edges(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    empty = {"id": 2, "name": "none", "file": "edges/02.tsv", "rows": 0, "symmetric": False, "attributes": []}
    export.schema["relations"].append(empty)
    (export.files / "edges" / "02.tsv").write_text("source\ttarget\n", encoding="utf-8")
    for most in (1, 1_000):
        adjacency = build(export, tmp_path / f"index{most}", most)
        assert adjacency.neighbors(0, 2).tolist() == []
        agree(adjacency, export)


@pytest.mark.parametrize(("node", "relation"), [(-1, 0), (5, 0), (10**20, None), (0, 2), (0, -1)])
def test_what_there_is_not(tmp_path: Path, node: int, relation: int | None) -> None:
    adjacency = build(small_export(tmp_path), tmp_path / "index")
    with pytest.raises(KeyError):
        adjacency.neighbors(node, relation)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0\t5\n", "names a node that the graph doesn't have"),
        ("-1\t2\n", "names a node that the graph doesn't have"),
        ("0\n", "a row without two ids"),
        ("0\tx\n", "cannot be read"),
        ("0\t1\t2\n", "cannot be read"),
        ("0\t1\n0\t2\n", "has more than 3 edges"),
        ("", "has 2 edges, not 3"),
    ],
)
def test_a_damaged_edge_file(tmp_path: Path, line: str, problem: str) -> None:
    export = small_export(tmp_path)
    file = export.files / "edges" / "00.tsv"
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join([*lines[:-1], line]), encoding="utf-8")
    with pytest.raises(ExportError, match=problem) as caught:
        build(export, tmp_path / "index")
    assert str(file) in str(caught.value)
    assert caught.value.hint


def test_damaged_arrays(tmp_path: Path) -> None:
    build(small_export(tmp_path), tmp_path / "index")
    arrays = tmp_path / "index" / "adjacency.bin"
    arrays.write_bytes(arrays.read_bytes()[:-8])
    with pytest.raises(ExportError, match="damaged index") as caught:
        Adjacency(tmp_path / "index")
    assert caught.value.hint == "remove that folder; it is made again"


def test_progress_is_told_in_bytes(biogo: Export, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    build_adjacency(biogo.files, biogo.schema, tmp_path, lambda *step: told.append(step))
    size = sum((biogo.files / relation["file"]).stat().st_size for relation in biogo.schema["relations"])
    assert {step[0] for step in told} == {"adjacency"}
    assert all(step[2] == size for step in told)
    done = [step[1] for step in told]
    assert done == sorted(done)
    assert done[-1] == size
