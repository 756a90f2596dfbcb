"""Quotes in TSV files: around cells as writers put them there, or part of the text, and where that can't be told."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import ExportError, export_tables, inputs
from exporter.inputs import InputFile
from exporter.rows import BadRows, open_table

HEADER = "id\ttype\tname\n"
# Something in it can be meant in one way only: quotes that are doubled where they are written with quotes around.
CELL = st.text(st.sampled_from('ab"\t\n\r ,é'), max_size=5)


def rows_of(path: Path) -> list[tuple[str, ...]]:
    with InputFile(path) as file:
        batches = list(open_table(file, "tsv", BadRows("stop")).batches())
    return [cells for batch in batches for cells in zip(*batch.columns, strict=True)]


def names(folder: Path, text: str) -> list[str]:
    path = folder / "n.tsv"
    path.write_text(HEADER + text, encoding="utf-8", newline="")
    return [row[2] for row in rows_of(path)]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(rows=st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=5))
def test_what_a_writer_puts_quotes_around_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: int, end: str
) -> None:
    rows = [["1", "t", 'say "hi"'], *rows]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", lineterminator="\r\n", quoting=quoting).writerows([["id", "type", "name"], *rows])
    path = tmp_path_factory.mktemp("written") / "n.tsv"
    written = text.getvalue() if end == "\r\n" else "\n".join(text.getvalue().split("\r\n"))
    if end == "\n" and any("\r\n" in cell for row in rows for cell in row):
        return  # a line feed in a cell would have become another one
    path.write_bytes(written.encode())
    assert rows_of(path) == [tuple(row) for row in rows]


@given(rows=st.lists(st.lists(st.text(st.sampled_from('ab" ,'), max_size=5), min_size=3, max_size=3), max_size=5))
def test_text_with_quotes_of_its_own_is_read_as_it_stands(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    rows = [["1", "t", '5" pipe'], *rows]
    path = tmp_path_factory.mktemp("literal") / "n.tsv"
    path.write_text(HEADER + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    assert rows_of(path) == [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('1\tt\t"foo" bar\n2\tt\t"Heroes"\n', ['"foo" bar', '"Heroes"']),
        ('1\tt\t"Heroes"\n2\tt\tx\n', ['"Heroes"']),  # a text that no writer puts quotes around
        ('1\tt\t"open\n', ['"open']),
        ('1\tt\t["a", "b"]\n', ['["a", "b"]']),
        ('1\tt\t"two\nlines"\n2\tt\tx\n', ["two\nlines", "x"]),
        ('1\tt\t"a\ttab"\n2\tt\tx\n', ["a\ttab", "x"]),
        ('1\t"t"\t"Smith, J."\n2\t"t"\tNA\n3\t"t"\t\n', ["Smith, J.", "NA", ""]),  # around all texts
        ('1\tt\t""\n2\tt\tx\n', ["", "x"]),
        ('1\tt\t"x\ry"\n2\tt\tz\n', ["x\ry", "z"]),  # csv.writer's
        ('1\tt\tone\n2\tt\t"a\n', ["one", '"a']),
    ],
)
def test_one_cell_tells(tmp_path: Path, text: str, found: list[str]) -> None:
    assert names(tmp_path, text)[: len(found)] == found


def test_a_header_with_quotes_tells(tmp_path: Path) -> None:
    (tmp_path / "n.tsv").write_text('"id"\t"type"\t"name"\n"1"\t"t"\t"Heroes"\n', encoding="utf-8")
    (tmp_path / "e.tsv").write_text('"source"\t"relation"\t"target"\n', encoding="utf-8")
    export = export_tables(tmp_path / "n.tsv", tmp_path / "e.tsv", tmp_path / "out")
    assert [(node["node_type"], node["name"]) for node in export.nodes()] == [("t", "Heroes")]


def test_what_polars_writes(tmp_path: Path) -> None:
    rows = [("1", "t", ""), ("2", "t", 'a "b"'), ("3", "t", "x\ty"), ("4", "t", "two\nlines"), ("5", "t", "plain")]
    frame = pl.DataFrame(rows, schema=["id", "type", "name"], orient="row")
    frame.write_csv(tmp_path / "n.tsv", separator="\t")
    assert rows_of(tmp_path / "n.tsv") == rows


def test_where_it_cannot_be_told_the_cell_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r'n\.tsv: line 4: the quotes around "Smith, J\." may belong') as caught:
        names(tmp_path, '1\tt\tx\n2\tt\t"Heroes"\n3\tt\t"Smith, J."\n')
    assert "CSV" in caught.value.hint


def test_it_is_told_by_cells_far_behind_the_first_with_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 64)
    lines = [f"{number}\tt\tplain\n" for number in range(100)]
    first, last = '"Smith, J."', '"say ""hi"""'
    lines[20], lines[80], lines[90] = f"20\tt\t{first}\n", f"80\tt\t{last}\n", '90\tt\t"two\nlines"\n'
    path = tmp_path / "n.tsv.gz"
    path.write_bytes(gzip.compress((HEADER + "".join(lines)).encode()))
    with InputFile(path) as file:
        batches = list(open_table(file, "tsv", BadRows("stop")).batches())
    found = {cells[0]: cells[2] for batch in batches for cells in zip(*batch.columns, strict=True)}
    assert (found["20"], found["80"], found["90"], len(found)) == ("Smith, J.", 'say "hi"', "two\nlines", 100)
    assert [line for batch in batches for line in batch.lines] == [*range(2, 93), *range(94, 103)]


def test_a_cell_that_contradicts_the_others_is_a_bad_row(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"n\.tsv: line 3: not valid CSV"):
        names(tmp_path, '1\tt\t"say ""hi"""\n2\tt\t"foo" bar\n')


@pytest.mark.parametrize("bad", ['2\tt\t"open\tmore', '"\t', '2\t"', '2\tt\t"\t"\t"\t"'])
def test_a_torn_row_decides_nothing(tmp_path: Path, bad: str) -> None:
    """Where what follows doesn't end the cell that it may have opened: text of the other rows stays as it stands."""
    text = f'1\tt\tx\n{bad}\n3\tt\t"foo" bar\n4\tt\t"foo"\n5\tt\tplain\n'
    (tmp_path / "n.tsv").write_text(HEADER + text, encoding="utf-8")
    with InputFile(tmp_path / "n.tsv") as file:
        read = [
            row
            for batch in open_table(file, "tsv", BadRows("skip")).batches()
            for row in zip(*batch.columns, strict=True)
        ]
    assert [row[2] for row in read] == ["x", '"foo" bar', '"foo"', "plain"]
