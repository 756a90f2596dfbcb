"""Columns of a block of CSV at once, where it is regular; Python's csv module reads the rest, row by row."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

_QUOTE, _LF = 34, 10
Bytes = NDArray[np.uint8]


def columns(block: bytes, width: int, delimiter: str) -> list[list[str]] | None:
    """The columns of `block`, whole lines of UTF-8; None where it is not regular.

    Regular is a block whose every line is a row of `width` cells, none empty, with quotes around whole cells only and
    no line feed within them. Lines may end with CRLF.
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    empty_lines = b"\n\n" in block or block[:1] == b"\n"
    if b"\r" in block or empty_lines or not delimiter.isascii():
        return None
    data = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    separators = np.flatnonzero((data == ord(delimiter)) | (data == _LF))
    if len(quotes):
        if not _around_cells(data, quotes, ord(delimiter)):
            return None
        separators = separators[np.searchsorted(quotes, separators) & 1 == 0]  # those that are not within quotes
    if not _rectangular(data[separators], width) or len(separators) != width * block.count(b"\n"):
        return None
    return _unquoted(block, delimiter) if len(quotes) else _split(block, width, delimiter)


def _around_cells(data: Bytes, quotes: NDArray[np.intp], delimiter: int) -> bool:
    """Whether quotes open at the start of cells and close at their end, or are doubled."""
    if len(quotes) % 2:
        return False
    allowed = (delimiter, _LF, _QUOTE)
    before = data[quotes[0::2] - 1]
    if quotes[0] == 0:
        before[0] = _LF
    after = data[quotes[1::2] + 1]  # a block ends with a line feed
    return bool(np.isin(before, allowed).all() and np.isin(after, allowed).all())


def _rectangular(separators: Bytes, width: int) -> bool:
    if len(separators) % width:
        return False
    rows = separators.reshape(-1, width)
    return bool((rows[:, :-1] != _LF).all() and (rows[:, -1] == _LF).all())


def _split(block: bytes, width: int, delimiter: str) -> list[list[str]]:
    cells = block.decode("utf-8").replace("\n", delimiter).split(delimiter)
    cells.pop()  # what follows the last line feed
    return [cells[index::width] for index in range(width)]


def _unquoted(block: bytes, delimiter: str) -> list[list[str]] | None:
    import polars as pl  # noqa: PLC0415 - a third of a second to import

    try:
        frame = pl.read_csv(io.BytesIO(block), has_header=False, separator=delimiter, infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
    if len(frame) != block.count(b"\n"):
        return None
    return [column.to_list() for column in frame.fill_null("").get_columns()]
