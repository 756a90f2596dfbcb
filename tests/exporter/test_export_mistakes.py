"""Bad input: every mistake is told by file and line, and leaves nothing behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from exporter import Export, ExportError, check, export_tables
from tests.support.graphs import QUERIES, small_export, write_jsonl, write_tables

NODE = '{"id": "a", "type": "t", "name": "A"}\n'
CSV = "id,type,name,x\na,t,A,1\n"
EDGES = "source\trelation\ttarget\n"


def refused(folder: Path, nodes: tuple[str, str | bytes], edges: tuple[str, str | bytes]) -> str:
    """The message of the refused export, and that it left nothing."""
    for name, content in (nodes, edges):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ExportError) as caught:
        export_tables(folder / nodes[0], folder / edges[0], folder / "deep" / "er" / "graph")
    assert sorted(path.name for path in folder.iterdir()) == before
    assert caught.value.hint or "rename" in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.jsonl", "", "n.jsonl: the file is empty"),
        ("n.jsonl", "\n\n", "n.jsonl: no nodes"),
        ("n.jsonl", NODE + '{"id": "b", "name": "B"}\n', "n.jsonl: line 2: no 'type'; keys found: id, name"),
        ("n.jsonl", NODE + "\n" + NODE, "n.jsonl: line 3: duplicate id 'a'"),
        (
            "n.jsonl",
            '{"id": 1, "type": "t", "name": ""}\n{"id": "1", "type": "t", "name": ""}\n',
            "n.jsonl: line 2: duplicate id '1'",
        ),
        ("n.jsonl", NODE + '{"id": \n', "n.jsonl: line 2: not valid JSON"),
        ("n.jsonl", "[\n" + NODE + "]\n", "n.jsonl: line 1: not valid JSON"),
        ("n.jsonl", "[]\n", "n.jsonl: line 1: not a JSON object"),
        ("n.jsonl", NODE.replace('"a"', "true"), "n.jsonl: line 1: 'id' must be a text or an integer"),
        ("n.jsonl", NODE.replace('"a"', "1.5"), "n.jsonl: line 1: 'id' must be a text or an integer"),
        ("n.jsonl", NODE.replace('"t"', "7"), "n.jsonl: line 1: 'type' must be a text"),
        ("n.jsonl", NODE.replace('"t"', '""'), "n.jsonl: line 1: the type is empty"),
        ("n.jsonl", NODE.replace('"a"', '""'), "n.jsonl: line 1: the id is empty"),
        ("n.jsonl", NODE.replace('"A"', "[]"), "n.jsonl: line 1: 'name' must be a text"),
        (
            "n.jsonl",
            NODE.replace("{", '{"source_id": 1, '),
            "n.jsonl: line 1: the key 'source_id' is reserved for the id; rename it",
        ),
        ("n.jsonl", NODE.replace('"A"', r'"\ud800"'), "n.jsonl: line 1: a text holds half of a surrogate pair"),
        ("n.jsonl", NODE.replace("{", r'{"\udfff": 1, '), "n.jsonl: line 1: a text holds half of a surrogate pair"),
        (
            "n.jsonl",
            NODE.replace("{", '{"x": ' + "[" * 300 + "]" * 300 + ", "),
            "n.jsonl: line 1: nested more than 200",
        ),
        (
            "n.jsonl",
            NODE.replace("{", '{"x": ' + "[" * 99_999 + "]" * 99_999 + ", "),
            "n.jsonl: line 1: nested more than 200",
        ),
        ("n.jsonl", NODE.replace("{", '{"x": ' + "9" * 9_999 + ", "), "n.jsonl: line 1: Exceeds the limit"),
        ("n.jsonl", NODE.encode() + b'{"id": "\xff"}\n', "n.jsonl: line 2: not UTF-8 (byte 0xff)"),
        ("n.jsonl", b"\xff\xfe" + NODE.encode("utf-16-le"), "n.jsonl: not UTF-8 but UTF-16"),
        ("n.csv", "", "n.csv: the file is empty"),
        ("n.csv", "id,type,name\n", "n.csv: no nodes"),
        ("n.csv", "id,kind,name\na,t,A\n", "n.csv: line 1: no column 'type'"),
        ("n.csv", "id,type,name,x,x\n", "n.csv: line 1: column 'x' occurs 2 times"),
        (
            "n.csv",
            "id,type,name,source_id\n",
            "n.csv: line 1: the column 'source_id' is reserved for the id; rename it",
        ),
        ("n.csv", CSV + "b,t,B\n", "n.csv: line 3: 3 cells, but the header has 4"),
        ("n.csv", CSV + '"b\n\n",t,B,1\nc,t,C\n', "n.csv: line 6: 3 cells, but the header has 4"),
        ("n.csv", CSV + 'b,t,"B"x,1\n', "n.csv: line 3: not valid CSV"),
        ("n.csv", CSV + 'b,t,"B\n\n', "n.csv: line 3: not valid CSV (unexpected end of data)"),
        ("n.csv", CSV.encode() + b"b,t,\xe4,1\n", "n.csv: line 3: not UTF-8 (byte 0xe4)"),
        ("n.tsv", CSV.replace(",", "\t") + "b\tt\tB\n", "n.tsv: line 3: 3 cells, but the header has 4"),
        ("n.tsv", CSV.replace(",", "\t") + "b\tt\tB\nc\tt\tC\t1\t2\n", "n.tsv: line 3: 3 cells, but the header has 4"),
        ("n.tsv", CSV.replace(",", "\t").encode() + b"b\tt\n\xe4\tt\tB\t1\n", "n.tsv: line 4: not UTF-8 (byte 0xe4)"),
        ("n.tsv", "\n", "n.tsv: the file is empty"),
        ("n.xlsx", CSV, "n.xlsx: cannot tell the format from the name"),
        ("n.jsonl.gz", gzip.compress(NODE.encode() * 99, mtime=0)[:-20], "n.jsonl.gz: damaged gzip data"),
        ("n.csv.gz", b"\x1f\x8b" + CSV.encode(), "n.csv.gz: damaged gzip data"),
    ],
)
def test_nodes(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    assert refused(tmp_path, (name, content), ("e.tsv", EDGES)).startswith(message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.tsv", "", "e.tsv: the file is empty"),
        ("e.tsv", "source\ttarget\n", "e.tsv: line 1: no column 'relation'"),
        ("e.tsv", EDGES + "a\tr\ta\na\tr\tb\n", "e.tsv: line 3: unknown target node 'b'"),
        ("e.tsv", EDGES + "b\tr\ta\n", "e.tsv: line 2: unknown source node 'b'"),
        ("e.tsv", EDGES + "a\t\ta\n", "e.tsv: line 2: the relation is empty"),
        ("e.tsv", EDGES + "a\tr\ta\n\na\tr\n", "e.tsv: line 4: 2 cells, but the header has 3"),
        ("e.csv", 'source,relation,target,x\na,r,a,"1\n2"\na,r,b,1\n', "e.csv: line 4: unknown target node 'b'"),
        ("e.jsonl", NODE, "e.jsonl: cannot tell the format from the name"),
    ],
)
def test_edges(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    assert refused(tmp_path, ("n.jsonl", NODE), (name, content)).startswith(message)


def test_a_bad_edge_far_into_the_file(tmp_path: Path) -> None:
    """Blocks later, the line number is still right."""
    edges = EDGES + "a\tr\ta\n" * 2_000_000 + "a\tr\tb\n"
    message = refused(tmp_path, ("n.jsonl", NODE), ("e.tsv", edges))
    assert message == "e.tsv: line 2000002: unknown target node 'b'"


def test_missing_input(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    with pytest.raises(ExportError, match=r"cannot read .*none\.jsonl: No such file"):
        export_tables(tmp_path / "none.jsonl", edges, tmp_path / "graph")
    with pytest.raises(ExportError, match=r"cannot read .*none\.tsv: No such file"):
        export_tables(nodes, tmp_path / "none.tsv", tmp_path / "graph")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ExportError, match=r"cannot read .*folder\.csv: Is a directory"):
        export_tables(tmp_path / "folder.csv", edges, tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_unknown_candidate_type(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no node has the candidate type 'papers'") as caught:
        export_tables(*write_tables(tmp_path), tmp_path / "graph", candidates=["author", "papers"])
    assert caught.value.hint == "node types: author, paper"


def test_bad_rows_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text(NODE + "{oops\n[]\n" + NODE + NODE.replace('"a"', '"b"'), encoding="utf-8")
    (tmp_path / "e.tsv").write_text(EDGES + "a\tr\tb\nb\tr\na\tr\tc\nb\ts\ta\n", encoding="utf-8")
    export = export_tables(tmp_path / "n.jsonl", tmp_path / "e.tsv", tmp_path / "graph", on_bad_row="skip")
    assert export.manifest["source"]["skipped"] == {"n.jsonl": 3, "e.tsv": 2}
    assert [record["attributes"]["source_id"] for record in export.nodes()] == ["a", "b"]
    assert [list(export.edges(i)) for i in range(2)] == [[(0, 1, ())], [(1, 0, ())]]
    assert check(export.path) == []


def test_the_first_rows_left_out_of_each_file_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text(NODE + f"[{'9' * 5_000}]\n" * 2, encoding="utf-8")
    (tmp_path / "e.tsv").write_text(EDGES + f"a\tr\t{'c' * 5_000}\n" * 500, encoding="utf-8")
    export = export_tables(tmp_path / "n.jsonl", tmp_path / "e.tsv", tmp_path / "graph", on_bad_row="skip")
    assert export.manifest["source"]["skipped"] == {"n.jsonl": 2, "e.tsv": 500}
    told = [(row["file"], row["line"]) for row in export.manifest["source"]["left_out"]]
    assert told == [("n.jsonl", 2), ("n.jsonl", 3), *(("e.tsv", line) for line in range(2, 12))]
    assert all(0 < len(row["why"]) <= 300 for row in export.manifest["source"]["left_out"])


def test_bad_csv_rows_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(CSV + 'b,t,"B"x,1\nc,t\nd,t,D,4\n', encoding="utf-8")
    (tmp_path / "e.tsv").write_text(EDGES, encoding="utf-8")
    export = export_tables(tmp_path / "n.csv", tmp_path / "e.tsv", tmp_path / "graph", on_bad_row="skip")
    assert [record["name"] for record in export.nodes()] == ["A", "D"]
    assert export.manifest["source"]["skipped"] == {"n.csv": 2}


def questions(folder: Path, name: str, content: str) -> Export:
    (folder / name).write_text(content, encoding="utf-8")
    return export_tables(*write_tables(folder), folder / "graph", queries=folder / name)


def test_questions_are_kept_in_node_ids(tmp_path: Path) -> None:
    assert list(small_export(tmp_path).queries()) == [
        {"id": "q1", "query": QUERIES[0]["query"], "answer_ids": [3], "split": "test"},
        {"id": "q2", "query": QUERIES[1]["query"], "answer_ids": [2, 3], "split": "val", "hops": 1},
    ]


def test_questions_in_csv(tmp_path: Path) -> None:
    text = "id,query,answer_ids\n1,\"two\nlines\",\"['p2', 'p1', 'p2']\"\n2,x,p3\n3,y,\n"
    assert [(q["query"], q["answer_ids"], q["split"]) for q in questions(tmp_path, "q.csv", text).queries()] == [
        ("two\nlines", [3, 2], ""),
        ("x", [4], ""),
        ("y", [], ""),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer_ids": ["p2", "p9"]}, "line 2: answer 'p9' of question 'new' is not in the graph"),
        ({"id": "old"}, "line 2: duplicate question id 'old'"),
        ({"query": " "}, "line 2: 'query' is empty or not a text"),
        ({"id": None}, "line 2: 'id' is empty or not a text"),
        ({"split": "tset"}, "line 2: unknown split 'tset'"),
        ({"spilt": "test"}, "line 2: unknown field 'spilt'; is 'split' meant?"),
        ({"answer_id": [1]}, "line 2: unknown field 'answer_id'; is 'answer_ids' meant?"),
        ({"answer_ids": {"p2": 1}}, "line 2: 'answer_ids' is not a list of ids"),
        ({"answer_ids": [1.5]}, "line 2: 'answer_ids' is not a list of ids"),
    ],
)
def test_bad_questions(tmp_path: Path, row: dict[str, object], message: str) -> None:
    lines = [{"id": "old", "query": "?"}, {"id": "new", "query": "?", **row}]
    with pytest.raises(ExportError) as caught:
        questions(tmp_path, "q.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert message in str(caught.value)
    assert not (tmp_path / "graph").exists()


def test_a_question_file_without_questions(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"q\.csv: no questions"):
        questions(tmp_path, "q.csv", "id,query\n")
    with pytest.raises(ExportError, match=r"q\.csv: line 1: no 'query' among id, question"):
        questions(tmp_path, "q.csv", "id,question\n")


def test_duplicate_gold_is_kept_once(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "q.jsonl", [{"id": 1, "query": "?", "answer_ids": ["p2", "p1", "p2"]}])
    export = export_tables(*write_tables(tmp_path), tmp_path / "graph", queries=path)
    assert [(q["id"], q["answer_ids"]) for q in export.queries()] == [("1", [3, 2])]
