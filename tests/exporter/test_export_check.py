"""`check` finds what is wrong with an export and says it by file and line; `Export.open` sees gross damage."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import Export, ExportError, check, export_tables
from exporter.index import Index
from tests.support.graphs import small_export, write_tables


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return small_export(tmp_path)


def edit(export: Export, file: str, change: Callable[[bytes], bytes], rehash: bool = True) -> None:
    """Change a file; with `rehash` the manifest follows, as if the writer had made this mistake."""
    path = export.path / file
    data = change(path.read_bytes())
    path.write_bytes(data)
    if rehash and file in export.manifest["files"]:
        manifest = json.loads((export.path / "manifest.json").read_bytes())
        manifest["files"][file] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (export.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def replace(old: str, new: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode(), 1)

    return change


def told(export: Export) -> list[str]:
    return [str(fault) for fault in check(export.path)]


NODES, WRITES, CITES = "files/nodes/0000.jsonl", "files/edges/00.tsv", "files/edges/01.tsv"
SCHEMA, QUERIES = "files/schema.json", "queries/queries.jsonl"


def test_a_sound_export_has_no_faults(export: Export) -> None:
    stages: list[tuple[str, int, int]] = []
    assert check(export.path, progress=lambda *stage: stages.append(stage)) == []
    assert stages[-1][1] == stages[-1][2] > 0


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        (NODES, '"node_id":2,', '"node_id":7,', f"{NODES}:3: node_id is 7, but 2 belongs here"),
        (NODES, '"node_id":1,', '"node_id":true,', f"{NODES}:2: node_id is True, but 1 belongs here"),
        (NODES, '"author"', '"autor"', f"{NODES}:1: node_type 'autor' is not in the schema"),
        (NODES, '"node_id":1,"node_type"', '"id":1,"node_type"', f"{NODES}:2: not an object"),
        (NODES, '"Ada"', "null", f"{NODES}:1: name must be a text"),
        (NODES, '{"source_id":"a1"}', "{}", f"{NODES}:1: attributes must be an object with source_id"),
        (NODES, '{"source_id":"a1"}', "[]", f"{NODES}:1: attributes must be an object with source_id"),
        (NODES, "}}\n", "}\n", f"{NODES}:1: not valid JSON"),
        (NODES, "true", "false", f"{NODES}:1: 'is_candidate' is not what index/candidates.npy says"),
        (NODES, "Ada", "Adam", f"{NODES}:2: begins at byte 101, but index/offsets.npy says 100"),
        (NODES, "1999", '"19"', f"{SCHEMA}: node type 'paper': 'attributes' is not what the records have"),
        (NODES, '"node_id":4', '"node_id":3', f"{NODES}:5: node_id is 3, but 4 belongs here"),
        (WRITES, "source\t", "head\t", f"{WRITES}:1: the header is not 'source\\ttarget\\n'"),
        (WRITES, "0\t3\n", "0\t5\n", f"{WRITES}:3: target 5 is not a node; ids end at 4"),
        (WRITES, "0\t3\n", "0\t\n", f"{WRITES}:3: the target is not a plain integer"),
        (WRITES, "0\t3\n", "0\t+3\n", f"{WRITES}:3: the target is not a plain integer"),
        (WRITES, "0\t3\n", "00\t3\n", f"{WRITES}:3: the source is not a plain integer"),
        (WRITES, "0\t3\n", "-1\t3\n", f"{WRITES}:3: the source is not a plain integer"),
        (WRITES, "0\t3\n", f"{2**64}\t3\n", f"{WRITES}:3: the source is not a plain integer"),
        (WRITES, "0\t3\n", "0\t3\t\n", f"{WRITES}:3: 3 cells, but the header has 2"),
        (WRITES, "0\t3\n", "0 3\n", f"{WRITES}:3: 1 cell, but the header has 2"),
        (WRITES, "0\t3\n", "\n0\t3\n", f"{WRITES}:3: 1 cell, but the header has 2"),
        (WRITES, "0\t3\n", "", f"{WRITES}: has 2 edges, but the schema says 3"),
        (WRITES, "0\t3\n", "2\t3\n", f"{WRITES}: 2 edges from 'author' to 'paper', but the schema says 3"),
        (SCHEMA, '"name": "writes"', '"name": "cites"', f"{SCHEMA}: a name occurs twice in 'relations'"),
        (SCHEMA, '"name": "author"', '"name": "paper"', f"{SCHEMA}: a name occurs twice in 'node_types'"),
        (SCHEMA, '"rows": 3', '"rows": 4', f"{SCHEMA}: 'edges' is 4, but should be 5"),
        (SCHEMA, '"count": 2', '"count": 3', f"{SCHEMA}: 'nodes' is 5, but should be 6"),
        (SCHEMA, '"symmetric": false', '"symmetric": 0', f"{SCHEMA}: $.relations[0].symmetric: 0 is not"),
        (SCHEMA, '"format": 1', '"format": 1, "more": 2', f"{SCHEMA}: $: Additional"),
        (SCHEMA, '"edges/01.tsv"', '"edges/00.tsv"', f"{SCHEMA}: relation 'cites': the file is not edges/01.tsv"),
        (SCHEMA, '"id": 1', '"id": 2', f"{SCHEMA}: the ids of 'node_types' are not 0, 1, 2, … in order"),
        (SCHEMA, "{", "", f"{SCHEMA}:2: not valid JSON"),
        ("files/DATA_FORMAT.txt", "modules to read", "to read", "files/DATA_FORMAT.txt:"),
        (QUERIES, '"answer_ids":[3]', '"answer_ids":[5]', f"{QUERIES}:1: answer 5 is not a node"),
        (QUERIES, '"q2"', '"q1"', f"{QUERIES}:2: duplicate question id 'q1'"),
        (QUERIES, "canary-", "cat-", f"{QUERIES}:1: the canary is not the manifest's"),
        (QUERIES, '"val"', '"test"', "manifest.json: 'queries' says"),
        (QUERIES, '"query"', '"text"', f"{QUERIES}:1: not a question"),
        ("manifest.json", '"nodes": 5', '"nodes": 6', "manifest.json: 'nodes' is 6, but should be 5"),
        ("manifest.json", '"canary"', '"bird"', "manifest.json: $: Additional properties"),
        ("manifest.json", '"source_rows": 3, "rows": 3', '"source_rows": 3, "rows": 2', "manifest.json: 'relations'"),
    ],
)  # fmt: skip
def test_faults_by_file_and_line(export: Export, file: str, old: str, new: str, fault: str) -> None:
    edit(export, file, replace(old, new))
    assert [line for line in told(export) if line.startswith(fault)], told(export)


def test_a_change_that_fits_is_found_by_its_hash(export: Export) -> None:
    edit(export, NODES, replace("On shells", "On shelfs"), rehash=False)
    assert told(export) == [f"{NODES}: the sha256 is not that of what was written: the file was changed"]


def test_missing_and_unknown_files(export: Export) -> None:
    (export.path / CITES).unlink()
    (export.path / "files/notes.txt").write_text("the answer is 3", encoding="utf-8")
    (export.path / "files/nodes/0001.jsonl").write_text("", encoding="utf-8")
    assert told(export) == [
        f"{CITES}: cannot be read: No such file or directory",
        "files/notes.txt: not in the manifest",
        "files/nodes/0001.jsonl: not in the manifest",
    ]


def test_a_link_in_place_of_a_file(export: Export, tmp_path: Path) -> None:
    (export.path / CITES).rename(tmp_path / "elsewhere.tsv")
    (export.path / CITES).symlink_to(tmp_path / "elsewhere.tsv")
    assert told(export) == [f"{CITES}: not a regular file"]


@pytest.mark.parametrize("place", ["files/nodes/more", "files/q", "queries/q"])
@pytest.mark.parametrize("target", ["../queries", "/", "nowhere"])
def test_a_link_more_than_was_written(export: Export, place: str, target: str) -> None:
    (export.path / place).symlink_to(target)
    assert told(export) == [f"{place}: not in the manifest"]


def test_cut_and_lengthened_shards(export: Export) -> None:
    edit(export, NODES, lambda data: data[:-1])
    assert f"{NODES}:5: no line feed at the end" in told(export)
    edit(export, NODES, lambda data: data[: data.index(b'{"node_id":4')])
    assert f"{NODES}:4: fewer than 5 records" in told(export)
    edit(export, NODES, lambda data: data * 2)
    assert f"{NODES}:6: more than 5 records" in told(export)


def test_index_files(export: Export) -> None:
    (export.path / "index/candidates.npy").unlink()
    np.save(export.path / "index/offsets.npy", np.zeros(4, np.int64))
    assert told(export) == [
        "index/offsets.npy: has 160 bytes, and had 168 when it was written",
        "index/candidates.npy: cannot be read: No such file or directory",
        "index/offsets.npy: holds (4,) int64, not one entry for each node",
    ]


def test_one_bit_or_byte_more_in_any_file_is_found(tmp_path: Path) -> None:
    """In those that an answer depends on too: candidates, offsets, the built index."""
    export = export_tables(*write_tables(tmp_path), tmp_path / "graph", index=True)
    assert told(export) == []
    files = [path for path in export.path.rglob("*") if path.is_file()]
    assert {"candidates.npy", "adjacency.bin", "sums.json", "0000.jsonl"} <= {path.name for path in files}
    for path in files:
        before = path.read_bytes()
        if not before:
            continue
        for changed in (bytes([before[0] ^ 1]) + before[1:], before[:-1] + bytes([before[-1] ^ 0x40]), before + b"\n"):
            path.chmod(0o644)
            path.write_bytes(changed)
            harmless = path.name in ("manifest.json", "sums.json") and changed == before + b"\n"
            assert bool(told(export)) is not harmless, path
        path.write_bytes(before)
    assert told(export) == []


def test_a_part_of_the_index_that_was_changed_says_what_to_remove(tmp_path: Path) -> None:
    export = export_tables(*write_tables(tmp_path), tmp_path / "graph", index=True)
    (arrays,) = (export.path / "index").glob("adjacency-*/adjacency.bin")
    arrays.unlink()
    (arrays.parent / "more").touch()
    part = arrays.parent.relative_to(export.path).as_posix()
    missing = "cannot be read: No such file or directory"
    assert told(export) == [
        f"{part}/adjacency.bin: {missing}",
        f"{part}/more: was not there when the index was made",
    ]
    assert {fault.remedy for fault in check(export.path)} == {f"remove {part}, and it is made anew"}


def test_a_part_of_the_index_without_its_sums_is_made_anew(tmp_path: Path) -> None:
    export = export_tables(*write_tables(tmp_path), tmp_path / "graph", index=True)
    (arrays,) = (export.path / "index").glob("adjacency-*/adjacency.bin")
    whole = arrays.read_bytes()
    arrays.write_bytes(b"")
    (arrays.parent / "sums.json").unlink()
    assert told(export) == []  # it is of no use to anybody
    Index.open(export)
    assert (arrays.parent / "sums.json").is_file()
    assert arrays.read_bytes() == whole


def test_escapes_in_attributes(tmp_path: Path) -> None:
    tables = write_tables(
        tmp_path,
        edges=[("a1", "w", "p1", "x"), ("a1", "w", "p2", "y")],
        header=("source", "relation", "target", "note"),
    )
    export = export_tables(*tables, tmp_path / "graph")
    for wrong in (r"\x", "\\", r"\N\N", "\r"):
        edit(export, WRITES, lambda data, wrong=wrong: data[:-2] + wrong.encode() + b"\n")  # type: ignore[misc]
        assert told(export) == [f"{WRITES}:3: not a well-formed cell: {wrong!r}"]
        edit(export, WRITES, lambda data, wrong=wrong: data[: -1 - len(wrong)] + b"y\n")  # type: ignore[misc]
    edit(export, WRITES, replace("x\n", "\\N\n"))
    edit(export, WRITES, replace("y\n", "\\\\\\t\\n\\r\n"))
    assert told(export) == []
    assert list(export.edges(0)) == [(0, 2, (None,)), (0, 3, ("\\\t\n\r",))]
    edit(export, WRITES, lambda data: data[:-2] + b"\xff\n")
    assert told(export) == [f"{WRITES}:3: not UTF-8"]
    with pytest.raises(ExportError, match=r"00\.tsv: line 3: not UTF-8"):
        list(export.edges(0))


def test_order_in_a_symmetric_relation(tmp_path: Path) -> None:
    edges = [("a1", "knows", "a2"), ("a2", "knows", "a1"), ("p1", "knows", "a1"), ("a1", "knows", "p1")]
    export = export_tables(*write_tables(tmp_path, edges=edges), tmp_path / "graph")
    assert sorted(export.edges(0)) == [(0, 1, ()), (0, 2, ())]
    edit(export, WRITES, replace("0\t1\n", "1\t0\n"))
    assert told(export) == [f"{WRITES}:2: the relation is symmetric, but the higher node comes first"]


def test_many_faults_of_one_file_are_cut(tmp_path: Path) -> None:
    nodes = [{"id": i, "type": "t", "name": "Ada"} for i in range(100)]
    export = export_tables(*write_tables(tmp_path, nodes, []), tmp_path / "graph")
    edit(export, NODES, lambda data: data.replace(b'"Ada"', b"null"))
    faults = told(export)
    assert len(faults) == 21
    assert faults[-1] == f"{NODES}: more than 20 faults; the others are not listed"


def test_no_export_at_all(tmp_path: Path) -> None:
    for open_it in (check, Export.open):
        with pytest.raises(ExportError, match=r"is not an export: it has no manifest\.json"):
            open_it(tmp_path)
    with pytest.raises(ExportError, match="no such folder"):
        Export.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (NODES, lambda data: data[:-1], r"0000\.jsonl has \d+ bytes, not \d+"),
        (SCHEMA, lambda data: b"", r"schema\.json is not valid JSON"),
        ("manifest.json", lambda data: data[:100], r"manifest\.json is not valid JSON"),
        ("manifest.json", lambda data: b"[]", r"manifest\.json is not a JSON object"),
        ("manifest.json", lambda data: data.replace(b'"format": 1', b'"format": 2'), "format 2, but this version"),
        ("manifest.json", lambda data: data.replace(b'"nodes"', b'"knots"'), r"manifest\.json has no nodes"),
        ("manifest.json", lambda data: data.replace(b'"nodes": 5', b'"nodes": 3'), "has 3 nodes, the schema 5"),
        ("index/offsets.npy", lambda data: data[:-1], r"offsets\.npy has 167 bytes, not 168"),
        ("index/candidates.npy", lambda data: b"", r"candidates\.npy has 0 bytes, not 133"),
        ("index/candidates.npy", lambda data: data.replace(b"(5,)", b"(4,)"), r"candidates\.npy does not belong"),
    ],
)
def test_opening_a_damaged_export(export: Export, file: str, change: Callable[[bytes], bytes], message: str) -> None:
    edit(export, file, change, rehash=False)
    with pytest.raises(ExportError, match=message) as caught:
        Export.open(export.path)
    assert caught.value.hint


@pytest.mark.parametrize("file", [CITES, QUERIES, "index/offsets.npy", "index/candidates.npy"])
def test_opening_an_export_with_a_file_gone(export: Export, file: str) -> None:
    (export.path / file).unlink()
    with pytest.raises(ExportError, match=rf"damaged export: .*{re.escape(file)}.* No such file"):
        Export.open(export.path)


@pytest.mark.parametrize(
    ("file", "use", "message"),
    [
        ("index/offsets.npy", lambda export: export.node(1), r"cannot read .*offsets\.npy"),
        ("index/candidates.npy", lambda export: export.is_candidate(1), r"cannot read .*candidates\.npy"),
        (NODES, lambda export: export.node(1), r"0000\.jsonl: no record of node 1"),
        (WRITES, lambda export: list(export.edges(0)), r"00\.tsv: line 1: "),
    ],
)
def test_reading_a_damaged_export(export: Export, file: str, use: Callable[[Export], Any], message: str) -> None:
    size = (export.path / file).stat().st_size
    (export.path / file).write_bytes(b"\n" * size)
    message = message.replace("line 1", r"line \d")
    with pytest.raises(ExportError, match=message):
        use(Export.open(export.path))


def test_an_index_that_is_not_this_graphs(export: Export) -> None:
    np.save(export.path / "index/offsets.npy", np.zeros(7, np.int64))
    with pytest.raises(ExportError, match="does not belong to this graph"):
        export.node(1)
    np.save(export.path / "index/offsets.npy", np.zeros(5, np.int64))
    with pytest.raises(ExportError, match="no record of node 1 at byte 0"):
        Export.open(export.path).node(1)


def test_records_that_changed_places(tmp_path: Path) -> None:
    nodes = [{"id": i, "type": "t", "name": "n"} for i in range(2)]
    export = export_tables(*write_tables(tmp_path, nodes, []), tmp_path / "graph")
    edit(export, NODES, lambda data: b"".join(reversed(data.splitlines(keepends=True))))
    with pytest.raises(ExportError, match="another node than 1 at byte"):
        export.node(1)


def test_reading_nodes(export: Export) -> None:
    for unknown in (-1, 5):
        with pytest.raises(KeyError):
            export.node(unknown)
    again = Export.open(export.path)
    assert (again.digest, again.name, again.node_count) == (export.digest, "graph", 5)
    assert re.fullmatch("[0-9a-f]{64}", export.digest)


def test_threads_read_nodes_together(tmp_path: Path) -> None:
    nodes = [{"id": i, "type": "t", "name": f"n{i}" * (i % 50)} for i in range(12_000)]
    export = export_tables(*write_tables(tmp_path, nodes, []), tmp_path / "graph")
    wrong: list[int] = []

    def read(start: int) -> None:
        for i in range(start, 12_000, 40):
            if export.node(i)["name"] != f"n{i}" * (i % 50):
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
