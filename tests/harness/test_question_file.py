"""Question files: what is read, and every mistake with its file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.question_file import Row, read_rows
from harness.questions import SPLITS

GOOD = '{"id": "a", "query": "Which?", "answer_ids": ["X:1", "X:2"], "split": "test", "hops": 3}\n'


def read(folder: Path, name: str, content: str | bytes) -> list[Row]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_rows(path, SPLITS[:-1])


def test_json_lines(tmp_path: Path) -> None:
    rows = read(
        tmp_path, "q.jsonl", GOOD + "\n" + '{"id": 7, "query": "line\\u2028and\\nbreak", "answer_ids": [5, 5, 6]}'
    )
    assert rows == [
        Row(1, "a", "Which?", ("X:1", "X:2"), "test"),
        Row(3, "7", "line\u2028and\nbreak", ("5", "6"), ""),
    ]


@pytest.mark.parametrize("answers", ["[1, 2]", "['1', '2']", '["1", "2"]'])
def test_csv_as_stark_writes_it(tmp_path: Path, answers: str) -> None:
    quoted = answers.replace('"', '""')
    text = f'id,query,answer_ids\r\n0,"Two\nlines, one question",\r\n1,"Which?","{quoted}"\r\n'
    assert read(tmp_path, "q.csv", text) == [
        Row(2, "0", "Two\nlines, one question", (), ""),
        Row(4, "1", "Which?", ("1", "2"), ""),
    ]


def test_csv_with_one_bare_id(tmp_path: Path) -> None:
    assert read(tmp_path, "q.csv", "id,query,answer_ids\n1,Which?,GO:0001\n")[0].gold == ("GO:0001",)


def test_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    assert read(tmp_path, "q.csv.gz", gzip.compress(b"\xef\xbb\xbfid,query\nx,Which?\n")) == [
        Row(2, "x", "Which?", (), "")
    ]


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"),
    [
        ("q.jsonl", "", "is empty", "needs an id"),
        ("q.jsonl", "\n\n", "is empty", "needs an id"),
        ("q.csv", "id,query\n", "is empty", "needs an id"),
        ("q.csv", "", "is empty", "needs an id"),
        ("q.jsonl", GOOD + GOOD, "line 2: id 'a' is that of line 1 too", "an id of its own"),
        ("q.jsonl", GOOD + "{oops\n", "line 2: not JSON", "for example"),
        ("q.jsonl", "[1]\n", "line 1: not a JSON object but list", ""),
        ("q.jsonl", '{"id": "a", "qurey": "Which?"}\n', "line 1: unknown column 'qurey'", "did you mean 'query'?"),
        ("q.csv", "id,query,answer_id\na,b,1\n", "line 1: unknown column 'answer_id'", "did you mean 'answer_ids'?"),
        ("q.csv", "id,query,spilt\na,b,test\n", "line 1: unknown column 'spilt'", "did you mean 'split'?"),
        ("q.csv", "question,identity\nx,y\n", "line 1: there is no 'id'", "columns: id, query"),
        ("q.jsonl", '{"id": "a", "query": "  "}\n', "line 1: the query of 'a' is empty", ""),
        ("q.jsonl", '{"id": "", "query": "b"}\n', "line 1: the id is ''", "text or a whole number"),
        ("q.jsonl", '{"id": true, "query": "b"}\n', "line 1: the id is True", "text or a whole number"),
        ("q.jsonl", '{"id": "a", "query": "b", "split": "tset"}\n', "line 1: unknown split 'tset'", "did you mean"),
        ("q.jsonl", '{"id": "a", "query": "b", "answer_ids": {"x": 1}}\n', "line 1: answer_ids is {'x': 1}", "a list"),
        ("q.csv", 'id,query,answer_ids\na,b,"[1, open(2)]"\n', "line 2: answer_ids is '[1, open(2)]'", "a list of ids"),
        ("q.csv", "id,query\na,b,c\n", "line 2: 3 columns where the header has 2", "double quotes"),
        ("q.csv", 'id,query\na,"b\n', "line 2: ", ""),
        ("q.jsonl", GOOD.encode() + b"\xff\n", "line 2: not UTF-8", "save it as UTF-8"),
        ("q.txt", GOOD, "unknown kind of file", ".jsonl or .csv"),
        ("q.jsonl.gz", b"not gzip", "not a gzipped file", ""),
    ],
)
def test_mistakes(tmp_path: Path, name: str, content: str | bytes, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, name, content)
    assert str(tmp_path / name) in str(caught.value)
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no question file"):
        read_rows(tmp_path / "none.jsonl", SPLITS)
    with pytest.raises(UserError, match="is a directory"):
        (tmp_path / "folder.jsonl").mkdir()
        read_rows(tmp_path / "folder.jsonl", SPLITS)
