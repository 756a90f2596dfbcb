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
from exporter.csv_lines import CsvLines
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
    """The rows of that width; behind one that is bad it goes on at the next line, unless the row is ragged only and
    its second line no row by itself."""
    lines = [line + "\n" for line in text.removesuffix("\n").split("\n")]
    rows = []
    while lines:
        row, used = first_row(lines)
        if row is not None and len(row) == width:
            rows.append(row)
        elif row is None or (used > 1 and columns(lines[1].encode(), width, ",") is not None):
            used = 1
        del lines[:used]
    return rows


def first_row(lines: list[str]) -> tuple[list[str] | None, int]:
    """The row, None for one that the module refuses, and its lines."""
    coming = iter(lines)
    try:
        row = next(csv.reader(coming, strict=True))
    except csv.Error:
        return None, 1
    return row, len(lines) - len(list(coming))


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


class TestAQuoteThatIsNotClosed:
    def read(self, text: str) -> tuple[list[list[str]], list[int], list[int]]:
        """Rows, their lines, the lines that are told of."""
        bad = BadRows("skip")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.csv"
            path.write_text(text, encoding="utf-8")
            with InputFile(path) as file:
                batches = list(CsvTable(file, bad).batches())
        rows = [list(cells) for batch in batches for cells in zip(*batch.columns, strict=True)]
        assert bad.skipped.total() == len(bad.told)
        return rows, [line for batch in batches for line in batch.lines], [told["line"] for told in bad.told]

    @pytest.mark.parametrize("size", [64, inputs.BLOCK_BYTES])
    @pytest.mark.parametrize("bad", ['x,"open', 'x,"a","b', '"x,y', 'x,"a" b', '"'])
    @pytest.mark.parametrize("good", ["{n},plain", '{n},"quoted"', '{n},"two\nlines"', '{n},"a ""b"", c"'])
    @pytest.mark.parametrize("where", [(0,), (40,), (0, 7, 8, 30), (79,)])
    def test_costs_its_own_line_only(
        self, monkeypatch: pytest.MonkeyPatch, size: int, bad: str, good: str, where: tuple[int, ...]
    ) -> None:
        monkeypatch.setattr(inputs, "BLOCK_BYTES", size)
        lines = ["n,text"]
        expected, wrong = [], []
        for n in range(80):
            if n in where:
                wrong.append("\n".join(lines).count("\n") + 2)
                lines.append(bad)
            expected.append("\n".join(lines).count("\n") + 2)
            lines.append(good.format(n=n))
        rows, starts, told = self.read("\n".join(lines) + "\n")
        assert [row[0] for row in rows] == [str(n) for n in range(80)]
        assert starts == expected
        assert told == wrong

    def test_a_row_of_several_lines_with_a_cell_too_many_is_one_bad_row(self) -> None:
        rows, _, told = self.read('n,text\n1,"two\nlines",more\n2,b\n')
        assert rows == [["2", "b"]]
        assert told == [2]

    def test_lines_are_read_again_in_proportion_to_the_file(self) -> None:
        text = 'a","c\n' * 20_000  # each opens a cell that none of the others closes
        blocks = iter([text])
        lines = CsvLines(lambda: next(blocks, None), again=True)
        handed = 0
        while handed == 0 or lines:
            lines.begin()
            handed += sum(map(len, lines))
            lines.back()
        assert lines.line == 20_000
        assert handed < 16_000_000 + 20 * len(text)  # each with all behind it would be 1,200 million
