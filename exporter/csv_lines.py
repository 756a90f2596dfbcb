"""Lines for Python's csv module, those of a bad row to be read once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_AHEAD = 16_000_000  # characters that a row may have where it may have to be read again
_REGAINED = 16  # characters that may be read again, for each that has been read


class CsvLines:
    """`more` gives the text of the next block of whole lines, None at the end.

    With `again`, all lines of a row but its first can be read once more. A cell that never closes swallows what follows
    it, so such a row has at most 16 million characters, and fewer where much has been read again: a file's time stays
    in proportion to its size, whatever is in it.
    """

    def __init__(self, more: Callable[[], str | None], again: bool) -> None:
        self.line = 0  # lines handed out, or read in another way
        self._more = more
        self._due: list[str] = []  # the next one last
        self._again = again
        self._row: list[str] = []
        self._size = 0  # characters of the row
        self._allowed = _AHEAD

    def __bool__(self) -> bool:
        """Whether lines are due without asking for more."""
        return bool(self._due)

    def add(self, text: str) -> None:
        """Whole lines, where none are due."""
        lines = text.split("\n")
        lines.pop()  # what follows the last line feed
        self._due = [line + "\n" for line in reversed(lines)]

    def take(self) -> str:
        """All lines that are due, to be read in another way."""
        text = "".join(reversed(self._due))
        self._due = []
        return text

    def begin(self) -> int:
        """A row begins; returns its line."""
        if self._again:
            self._allowed = min(_AHEAD, self._allowed + _REGAINED * self._size)
            self._row, self._size = [], 0
        return self.line + 1

    def __iter__(self) -> Iterator[str]:
        """Lines of the row: those that are due, and more only where it goes on behind them."""
        while True:
            while self._due:
                if self._again:
                    if self._row and self._size > self._allowed:
                        return
                    self._row.append(self._due[-1])
                    self._size += len(self._due[-1])
                self.line += 1
                yield self._due.pop()
            text = self._more()
            if text is None:
                return
            self.add(text)

    @property
    def row(self) -> list[str]:
        """The lines that the row has so far, where they can be read again."""
        return self._row

    def back(self) -> None:
        """All lines of the row but its first are due again."""
        self._due += reversed(self._row[1:])
        self.line -= len(self._row) - 1
        self._allowed -= self._size
        self._row, self._size = self._row[:1], len(self._row[0])
