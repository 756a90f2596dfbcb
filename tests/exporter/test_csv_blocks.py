"""CSV in blocks says what Python's csv module says, whatever the text; line numbers are those of the file."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import ExportError, inputs
from exporter.csv_blocks import columns
from exporter.inputs import InputFile
from exporter.rows import BadRows, CsvTable

CELL = st.text(st.sampled_from('ab,"\n\r\té;\x00'), max_size=4)
TEXT = st.text(st.sampled_from('ab,"\n\r é'), max_size=30)


def rows_of(text: str, names: list[str]) -> tuple[list[list[str]], list[int], int]:
    """What our reader makes of `text`: rows, their lines, how many were bad."""
    bad = BadRows("skip")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(text.encode())
        with InputFile(path) as file:
            batches = list(CsvTable(file, bad, names=names).batches())
    rows = [list(cells) for batch in batches for cells in zip(*batch.columns, strict=True)]
    return rows, [line for batch in batches for line in batch.lines], bad.skipped.total()


def by_pythons_module(text: str, width: int) -> list[list[str]]:
    """The rows of that width, read on behind any that the module refuses."""
    rows = []
    reader = csv.reader([line + "\n" for line in text.removesuffix("\n").split("\n")], strict=True)
    while True:
        try:
            rows.append(next(reader))
        except StopIteration:
            return [row for row in rows if len(row) == width]
        except csv.Error:
            continue


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_what_was_written_is_read(rows: list[list[str]], end: str) -> None:
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL  # else it leaves a carriage return bare
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
    assert rows_of(text.getvalue(), ["a", "b"])[0] == rows


@given(TEXT, st.integers(1, 3))
def test_any_text_is_read_as_pythons_module_reads_it(text: str, width: int) -> None:
    if text:
        assert rows_of(text, ["x"] * width)[0] == by_pythons_module(text, width)


@given(TEXT, st.integers(1, 3))
def test_a_block_that_is_regular_is_what_the_module_says(text: str, width: int) -> None:
    text += "\n"
    found = columns(text.encode(), width, ",")
    if found is not None:
        rows = by_pythons_module(text, width)
        assert [list(cells) for cells in zip(*found, strict=True)] == rows
        assert len(rows) == text.count("\n")


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("a,b\nc,\n", [["a", "c"], ["b", ""]]),
        ('"a,1","x ""y"""\r\n"",b\r\n', [["a,1", ""], ['x "y"', "b"]]),
        ("a,b\nc\n", None),
        ('a,b"c"\nd,e\n', None),
        ('"a\nb",c\n', None),
        ("a,b\n\nc,d\n", None),
        ("a\rb,c\n", None),
    ],
)
def test_blocks(block: str, found: list[list[str]] | None) -> None:
    assert columns(block.encode(), 2, ",") == found


def test_rows_that_go_on_in_the_next_block_and_lines_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 64)
    long = "\n".join(["in a cell"] * 40)
    text = f'a,b\n1,"{long}"\n' + "2,x\n" * 50 + 'bad\n3,"y, z"\n'
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    bad = BadRows("skip")
    with InputFile(tmp_path / "x.csv") as file:
        batches = list(CsvTable(file, bad).batches())
    lines = [line for batch in batches for line in batch.lines]
    rows = [cells for batch in batches for cells in zip(*batch.columns, strict=True)]
    assert rows == [("1", long), *[("2", "x")] * 50, ("3", "y, z")]
    assert lines == [2, *range(42, 92), 93]
    assert bad.skipped == {"x.csv": 1}
    with (
        InputFile(tmp_path / "x.csv") as file,
        pytest.raises(ExportError, match="line 92: 1 cell, but the header has 2"),
    ):
        list(CsvTable(file, BadRows("stop")).batches())
