"""Tab-separated text: splitting blocks of lines into columns, and PostgreSQL COPY's text escapes.

Escapes (https://www.postgresql.org/docs/current/sql-copy.html, "Text Format"): `\\\\` backslash, `\\t` tab, `\\n` line
feed, `\\r` carriage return; a cell that is `\\N` is null.
"""

from __future__ import annotations

import re

import numpy as np

NULL = r"\N"
_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_CODES = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
_CODE = re.compile(r"\\(.)", re.DOTALL)
_CELL = re.compile(r"(?:[^\\\t\n\r]|\\[\\tnr])*")
_TABLE = str.maketrans(_ESCAPES)

_TAB, _LF = 9, 10


def escape(cell: str | None) -> str:
    """One cell as it is written."""
    return NULL if cell is None else cell.translate(_TABLE)


def unescape(cell: str) -> str | None:
    """One cell as it was. Expects a well-formed cell (see `well_formed`)."""
    if "\\" not in cell:
        return cell
    return None if cell == NULL else _CODE.sub(lambda match: _CODES[match[1]], cell)


def well_formed(cell: str) -> bool:
    """Whether `cell` is null or holds nothing but text and the four escapes."""
    return cell == NULL or _CELL.fullmatch(cell) is not None


def is_rectangular(block: bytes, width: int) -> bool:
    """Whether every line of `block` (which ends with a line feed) has exactly `width` cells."""
    data = np.frombuffer(block, np.uint8)
    separators = data[np.flatnonzero((data == _TAB) | (data == _LF))]
    if len(separators) % width:
        return False
    rows = separators.reshape(-1, width)
    return bool((rows[:, :-1] == _TAB).all() and (rows[:, -1] == _LF).all())


def columns(text: str, width: int) -> list[list[str]]:
    """The columns of a rectangular block of lines."""
    cells = text.replace("\n", "\t").split("\t")
    cells.pop()  # what follows the last line feed
    return [cells[index::width] for index in range(width)]
