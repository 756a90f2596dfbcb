"""The files that an export consists of: what an agent reads, and what must never reach it."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exporter import Export, check, export_tables
from tests.support.graphs import EDGES, NODES, small_export, write_tables


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return small_export(tmp_path)


def test_node_records(export: Export) -> None:
    lines = (export.files / "nodes/0000.jsonl").read_text("utf-8").splitlines()
    assert lines[0] == (
        '{"node_id":0,"node_type":"author","name":"Ada","is_candidate":true,"attributes":{"source_id":"a1"}}'
    )
    assert json.loads(lines[3])["attributes"] == {"source_id": "p2", "year": 2004, "tags": ["x", "y"]}
    assert json.loads(lines[4])["attributes"] == {"source_id": "p3", "year": None}
    assert [json.loads(line)["node_id"] for line in lines] == [0, 1, 2, 3, 4]


def test_edge_files(export: Export) -> None:
    assert (export.files / "edges/00.tsv").read_bytes() == b"source\ttarget\n0\t2\n0\t3\n1\t3\n"
    assert (export.files / "edges/01.tsv").read_bytes() == b"source\ttarget\n3\t2\n"


def test_edge_attributes_are_further_columns_that_csv_reads(tmp_path: Path) -> None:
    edges = [("a1", "writes", "p1", '"quoted', "1"), ("a2", "writes", "p2", "back\\slash", "")]
    tables = write_tables(tmp_path, edges=edges, header=("source", "relation", "target", "note", "rank"))
    export = export_tables(*tables, tmp_path / "graph")
    with (export.files / "edges/00.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows == [
        {"source": "0", "target": "2", "note": '"quoted', "rank": "1"},
        {"source": "1", "target": "3", "note": "back\\\\slash", "rank": ""},
    ]
    assert list(export.edges(0)) == [(0, 2, ('"quoted', "1")), (1, 3, ("back\\slash", ""))]


def test_schema(export: Export) -> None:
    assert json.loads((export.files / "schema.json").read_bytes()) == {
        "format": 1,
        "nodes": 5,
        "edges": 4,
        "node_types": [
            {
                "id": 0,
                "name": "author",
                "count": 2,
                "attributes": {"source_id": {"types": ["string"], "coverage": 1.0}},
            },
            {
                "id": 1,
                "name": "paper",
                "count": 3,
                "attributes": {
                    "source_id": {"types": ["string"], "coverage": 1.0},
                    "year": {"types": ["integer", "null"], "coverage": 1.0},
                    "tags": {"types": ["array"], "coverage": 0.3333},
                },
            },
        ],
        "relations": [
            {
                "id": 0,
                "name": "writes",
                "file": "edges/00.tsv",
                "rows": 3,
                "symmetric": False,
                "triples": [{"head": "author", "tail": "paper", "count": 3}],
                "attributes": [],
            },
            {
                "id": 1,
                "name": "cites",
                "file": "edges/01.tsv",
                "rows": 1,
                "symmetric": False,
                "triples": [{"head": "paper", "tail": "paper", "count": 1}],
                "attributes": [],
            },
        ],
    }


def test_nodes_are_split_into_shards_of_ten_thousand(tmp_path: Path) -> None:
    nodes = ({"id": i, "type": "t", "name": f"n{i}"} for i in range(20_001))
    export = export_tables(*write_tables(tmp_path, nodes, [("0", "to", "20000")]), tmp_path / "graph")
    shards = sorted(path.name for path in (export.files / "nodes").iterdir())
    assert shards == ["0000.jsonl", "0001.jsonl", "0002.jsonl"]
    assert [len((export.files / "nodes" / name).read_bytes().splitlines()) for name in shards] == [10_000, 10_000, 1]
    for node_id in (0, 9_999, 10_000, 19_999, 20_000):
        assert export.node(node_id)["name"] == f"n{node_id}"
    assert check(export.path) == []


def test_more_than_a_hundred_relations(tmp_path: Path) -> None:
    edges = [("a1", f"r{i}", "p1") for i in range(101)]
    export = export_tables(*write_tables(tmp_path, edges=edges), tmp_path / "graph")
    assert export.schema["relations"][100]["file"] == "edges/100.tsv"
    assert list(export.edges(100)) == [(0, 2, ())]
    assert check(export.path) == []


def test_a_graph_without_edges(tmp_path: Path) -> None:
    export = export_tables(*write_tables(tmp_path, edges=[]), tmp_path / "graph")
    assert export.schema["relations"] == []
    assert "no edges" in (export.files / "DATA_FORMAT.txt").read_text("utf-8")
    assert check(export.path) == []


def test_candidates_are_the_types_asked_for(tmp_path: Path) -> None:
    export = export_tables(*write_tables(tmp_path), tmp_path / "graph", candidates=["paper"])
    assert [export.is_candidate(i) for i in range(-1, 6)] == [False, False, False, True, True, True, False]
    assert [record["is_candidate"] for record in export.nodes()] == [False, False, True, True, True]


def test_questions_and_canary_stay_out_of_what_the_agent_sees(export: Export) -> None:
    canary = export.manifest["canary"]
    rows = [json.loads(line) for line in (export.path / "queries/queries.jsonl").read_bytes().splitlines()]
    assert [row["canary"] for row in rows] == [canary, canary]
    for path in export.files.rglob("*"):
        assert path.is_dir() or (canary.encode() not in path.read_bytes() and b"Which papers" not in path.read_bytes())


def test_manifest_names_every_file_with_its_hash(export: Export) -> None:
    found = {
        path.relative_to(export.path).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for top in ("files", "queries", "index")
        for path in (export.path / top).rglob("*")
        if path.is_file()
    }
    assert export.manifest["files"] == found
    assert export.manifest["queries"] == {"count": 2, "splits": {"test": 1, "val": 1}}
    assert (
        export.manifest["source"]["inputs"][0]["sha256"]
        == hashlib.sha256((export.path.parent / "nodes.jsonl").read_bytes()).hexdigest()
    )


def test_index_points_at_each_record(export: Export) -> None:
    data = (export.files / "nodes/0000.jsonl").read_bytes()
    offsets = np.load(export.path / "index/offsets.npy")
    assert [data[offset:].startswith(b'{"node_id":%d,' % i) for i, offset in enumerate(offsets.tolist())] == [True] * 5


def test_the_same_input_makes_the_same_files(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    first, second = (export_tables(*tables, tmp_path / name, name="graph") for name in ("one", "two"))
    assert first.digest == second.digest
    assert first.manifest["canary"] != second.manifest["canary"]


def test_files_are_readable_for_everybody_whatever_the_umask(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    before = os.umask(0o077)
    try:
        export = export_tables(*tables, tmp_path / "graph")
    finally:
        os.umask(before)
    for path in (export.files, *export.files.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o644), path


def test_the_commands_that_data_format_shows_find_what_they_say(tmp_path: Path) -> None:
    rg = shutil.which("rg", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if rg is None:
        pytest.skip("no rg on this machine")
    edges = [(*edge, "tab\there" if edge[1] == "cites" else "x") for edge in EDGES]
    (tmp_path / "edges.csv").write_text(
        "source,relation,target,note\n" + "".join(",".join(edge) + "\n" for edge in edges), encoding="utf-8"
    )
    nodes, _ = write_tables(tmp_path, NODES)
    export = export_tables(nodes, tmp_path / "edges.csv", tmp_path / "graph")
    text = (export.files / "DATA_FORMAT.txt").read_text("utf-8")
    commands = [line.strip().replace("WORD", "Ada") for line in text.splitlines() if line.startswith("        rg ")]
    assert len(commands) == 4
    outputs = [
        subprocess.run(
            ["bash", "-c", command.replace("rg", f"'{rg}' --no-filename", 1)],
            cwd=export.files,
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout
        for command in commands
    ]
    record = (export.files / "nodes/0000.jsonl").read_text("utf-8").splitlines()[0]
    assert outputs == [record + "\n", record + "\n", "0\t2\tx\n0\t3\tx\n", "0\t2\tx\n"]
    assert record in text
    assert "\nsource\ttarget\tnote\n0\t2\tx\n" in text
    assert text.endswith("\n\nUse shell tools or Python's json/csv modules to read these files.\n")
