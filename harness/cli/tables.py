"""Tables on stdout: as wide as they need for a file, as wide as it is for a terminal.

In a narrow terminal text wraps in its cell, then a table is set in several, each with its first columns. Columns that a
long list can do without are left out, which is said below it.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len, chop_cells

from harness.text import line, shorten

_GAP = 2
_LEAST_TEXT = 20  # cells that a column of text is squeezed to, before another table is begun for it
_NARROWEST = 40  # cells; a terminal with fewer wraps
_PIECE = re.compile(r"\S*?/(?=\S)|\S+|\s+")  # where a cell may be broken: at blanks, and behind a path's slashes


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None where it is a file or a pipe."""
    return max(_NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    form: str = "",
    *,
    first: int = 1,
    optional: Sequence[str] = (),
) -> str:
    """The table, two blanks between columns, in the terminal's width.

    `form` has a letter for each column: `r` is set flush right and not broken, `l` is not broken either, `s` is text
    that is shortened, and a blank text that wraps. The `first` columns are repeated where the table is set in several.
    `optional` columns are left out in this order until all others fit into one.
    """
    return fitted(header, rows, form, terminal_width(), first=first, optional=optional)


def fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    form: str,
    width: int | None,
    *,
    first: int = 1,
    optional: Sequence[str] = (),
) -> str:
    """The same at most `width` cells wide; None for any width."""
    columns = [
        _Column(line(title), tuple(line(row[i]) for row in rows), form[i : i + 1] or " ")
        for i, title in enumerate(header)
    ]
    if width is None or _sum(column.natural for column in columns) <= width:
        return _block(columns, [column.natural for column in columns])
    left_out: list[str] = []
    for title in optional:
        if _sum(column.least for column in columns) <= width:
            break
        columns = [column for column in columns if column.title != line(title)]
        left_out.append(line(title))
    text = "\n\n".join(_block(block, _widths(block, width)) for block in _evenly(columns, first, width))
    note = _wrapped(f"(not shown at this width: {', '.join(left_out)})", width)
    return "\n".join([text, *(note if left_out else ())])


@dataclass(frozen=True)
class _Column:
    title: str
    cells: tuple[str, ...]
    form: str

    @cached_property
    def natural(self) -> int:
        """Cells it takes unbroken."""
        return max(map(cell_len, (self.title, *self.cells)))

    @cached_property
    def least(self) -> int:
        """Cells that it takes at least: figures whole, text squeezed, the title broken at blanks."""
        words = max(map(cell_len, _pieces(self.title)), default=0)
        cells = max(map(cell_len, self.cells), default=0)
        return min(self.natural, max(words, cells)) if self.form in "lr" else min(self.natural, _LEAST_TEXT)

    def broken(self, cell: str, width: int, *, is_title: bool) -> list[str]:
        """The lines of a cell that has so much room."""
        if cell_len(cell) <= width:
            return [cell]
        return [shorten(cell, width)] if self.form == "s" and not is_title else list(_wrapped(cell, width))


def _evenly(columns: Sequence[_Column], first: int, width: int) -> list[list[_Column]]:
    """As few tables as there is room for, and none that is much narrower than the others."""
    blocks = list(_split(columns, first, width))
    if len(blocks) > 1:
        for less in range(width - 1, 0, -1):
            narrower = list(_split(columns, first, less))
            if len(narrower) > len(blocks):
                break
            blocks = narrower
    return blocks


def _split(columns: Sequence[_Column], first: int, width: int) -> Iterator[list[_Column]]:
    """Tables of at most this width, each with the first columns and as many others as there is room for."""
    named, others = list(columns[:first]), columns[first:]
    block = list(named)
    for column in others:
        if len(block) > len(named) and _sum(each.least for each in (*block, column)) > width:
            yield block
            block = list(named)
        block.append(column)
    yield block


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Cells for each column: figures what they need, text an equal share of the rest where it needs as much."""
    widths = [column.natural for column in columns]
    least = [column.least for column in columns]
    while _sum(widths) > width:
        spare = [have - need if have > need else 0 for have, need in zip(widths, least, strict=True)]
        if not any(spare):  # even squeezed they are too wide: the widest gives way
            widths[widths.index(max(widths))] -= 1
            continue
        i = max((i for i, more in enumerate(spare) if more), key=lambda i: widths[i])
        widths[i] -= 1
    return widths


def _block(columns: Sequence[_Column], widths: Sequence[int]) -> str:
    cells = [[column.title for column in columns], *map(list, zip(*(column.cells for column in columns), strict=True))]
    return "\n".join(
        text for number, row in enumerate(cells) for text in _row(columns, widths, row, is_title=number == 0)
    )


def _row(columns: Sequence[_Column], widths: Sequence[int], row: Sequence[str], *, is_title: bool) -> Iterator[str]:
    """The lines of a row: as many as its longest cell takes."""
    broken = [
        column.broken(cell, width, is_title=is_title) for column, cell, width in zip(columns, row, widths, strict=True)
    ]
    for number in range(max(map(len, broken))):
        parts = []
        for column, lines, width in zip(columns, broken, widths, strict=True):
            cell = lines[number] if number < len(lines) else ""
            blanks = " " * (width - cell_len(cell))
            parts.append(blanks + cell if column.form == "r" else cell + blanks)
        yield (" " * _GAP).join(parts).rstrip()


def _wrapped(text: str, width: int) -> Iterator[str]:
    """`text` in lines of at most `width` cells, broken inside of a word only where it is longer than that."""
    row = ""
    for piece in _pieces(text, blanks=True):
        if row and cell_len(row + piece.rstrip()) > width:
            yield row.rstrip()
            row = ""
        if not row:
            *whole, row = chop_cells(piece.lstrip(), width) or [""]
            yield from whole
        else:
            row += piece
    if row.strip():
        yield row.rstrip()


def _pieces(text: str, *, blanks: bool = False) -> list[str]:
    found = _PIECE.findall(text)
    return found if blanks else [piece for piece in found if piece.strip()]


def _sum(widths: Iterator[int] | Sequence[int]) -> int:
    each = list(widths)
    return sum(each) + _GAP * (len(each) - 1)
