"""Whether quotes stand around the cells of a TSV file, or belong to its text.

TSV proper has no quoting (https://www.iana.org/assignments/media-types/text/tab-separated-values), and KGX writes and
reads it so. csv.writer, pandas, polars, R and Excel put quotes around cells that hold a quote, a tab or a line feed,
and double those within; some around every text. A file is one or the other throughout, and its cells mostly tell which.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from exporter.errors import ExportError
from exporter.inputs import InputFile

_WHOLE = re.compile(r'"([^"]*(?:""[^"]*)*)"')  # as a writer puts quotes around a cell
_OPEN = re.compile(r'"[^"]*(?:""[^"]*)*')  # the same up to a tab or a line feed within
_LINE = re.compile(rb'^[^"\n]*"[^\n]*', re.MULTILINE)
_NO_TEXT = re.compile(r"|\\N|NA|[Nn]a[Nn]|null|NULL|true|false|True|False|TRUE|FALSE|[-+]?[\d.]+(?:[eE][-+]?\d+)?")
_QUOTED_BY_SOME = re.compile(r'[,;]|^"\s|\s"$')  # Excel puts quotes around such cells in TSV too
_SHOWN = 80  # characters of a cell in messages
_TRIED = 16  # open cells whose end is looked for
_FOLLOWED = 10_000  # lines that such a cell may have


def stand_around(cell: str) -> bool:
    """Whether the cell is one that a writer has put quotes around."""
    return _WHOLE.fullmatch(cell) is not None


def quotes_cells(path: Path, width: int) -> bool:
    """Whether the file at `path`, with `width` columns, puts quotes around cells. Raises ExportError where its cells
    can be read either way.

    The first cell counts that can be meant in one way only: with quotes around it and doubled ones or a carriage return
    within, or cut off by a tab or a line feed and closed behind it, so that the row has its width, it is quoted; with a
    quote elsewhere it is text. Where there is none, `""` is an empty cell, and quotes around a text belong to it unless
    all texts of the file have them.
    """
    opened: list[int] = []  # lines of the right width with a cell that may be cut off
    tried = 0
    empty = False
    around: tuple[int, str] | None = None  # a cell with quotes around it, the first that some writers put there
    for line, cells in _rows_with_quotes(path):
        whole = len(cells) == width
        for cell in cells:
            if '"' not in cell:
                continue
            found, opens = _WHOLE.fullmatch(cell), _OPEN.fullmatch(cell) is not None
            if not whole:
                if opens and not found and tried < _TRIED:
                    tried += 1
                    if _closes(path, line, width):
                        return True
            elif not found:
                if not opens:
                    return False
                opened.append(line)
            elif '"' in found[1] or "\r" in found[1]:
                return True
            elif not found[1]:
                empty = True
            elif around is None or (_QUOTED_BY_SOME.search(cell) and not _QUOTED_BY_SOME.search(around[1])):
                around = line, cell
    if opened:
        return any(_closes(path, line, width) for line in opened[:_TRIED])
    return empty or (around is not None and _around_all(path, *around))


def _closes(path: Path, line: int, width: int) -> bool:
    """Whether what begins in this line is a row of `width` cells, as a writer puts quotes around them."""
    with InputFile(path) as file:
        lines = (each.decode("utf-8", "replace") for each in islice(file.lines(), line - 1, line - 1 + _FOLLOWED))
        try:
            return len(next(csv.reader(lines, delimiter="\t", strict=True), [])) == width
        except csv.Error:
            return False


def _around_all(path: Path, line: int, cell: str) -> bool:
    """Whether all texts of the file have quotes around them, as `cell` in line `line` has. Raises ExportError where
    they haven't, but it may be one that a writer puts them around."""
    with InputFile(path) as file:
        file.header()
        cells = (cell for line in file.lines() for cell in _cells(line))
        if all(cell.startswith('"') or _NO_TEXT.fullmatch(cell) for cell in cells):
            return True
    if _QUOTED_BY_SOME.search(cell):
        raise ExportError(
            f"{path}: line {line}: the quotes around {cell[:_SHOWN]} may belong to the text or not: other texts have"
            " none, and no cell of the file shows which is meant",
            "give the table as CSV or Parquet, where that is plain",
        )
    return False


def _rows_with_quotes(path: Path) -> Iterator[tuple[int, list[str]]]:
    with InputFile(path) as file:
        file.header()
        line = 2
        for block in file.blocks():
            counted = 0
            for found in _LINE.finditer(block):
                line += block.count(b"\n", counted, found.start())
                counted = found.start()
                yield line, _cells(found[0])
            line += block.count(b"\n", counted)


def _cells(line: bytes) -> list[str]:
    return line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
