"""Triples of a file, one by one; where bad ones are skipped, reading goes on behind each.

The reader's own way on is not taken: a text or an IRI that is not closed, or that has a wrong escape, makes it read the
rest of the file inside out, and one that is never closed ends it.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any

from exporter.errors import ExportError
from exporter.inputs import InputFile

_LONGEST = 16 * 1024 * 1024  # bytes that the reader looks ahead
_KEPT = _LONGEST + 1024 * 1024
_PLACE = re.compile(r"Parser error (?:at|between) .*?: ", re.DOTALL)


def read_triples(ox: Any, file: InputFile, form: Any, bad: Callable[[int, str], None]) -> Iterator[Any]:
    """`bad` is told the line and what is wrong; it raises where bad triples aren't skipped.

    Raises ExportError where the file can't be read. Memory: 17 MB of the file.
    """
    source = _Again(file.stream)
    triples = ox.parse(source, form, without_named_graphs=True)
    first = 1  # the line at which the reader began
    while True:
        try:
            triple = next(triples, None)
        except (SyntaxError, MemoryError) as error:
            line, starts_anew, what = _told(error, first, source)
            bad(line, f"not valid RDF ({what})")
            first = source.back(line, behind=not starts_anew, statements=form == ox.RdfFormat.TURTLE)
            source.put_before(_declared(triples))
            triples = ox.parse(source, form, base_iri=triples.base_iri, without_named_graphs=True)
            continue
        except (OSError, EOFError) as error:
            raise ExportError(f"cannot read {file.path}: {error}") from error
        if triple is None:
            return
        yield triple


def _told(error: SyntaxError | MemoryError, first: int, source: _Again) -> tuple[int, bool, str]:
    """The line of an error, whether it is a good one before which a dot is missing, and what is wrong."""
    if isinstance(error, MemoryError):
        if "buffer maximal size" not in str(error):
            raise error
        return source.line_of_last(_LONGEST), False, "a text or an IRI of more than 16 MB, or one that is not closed"
    what = _PLACE.sub("", str(error.msg), count=1)
    return first + (error.lineno or 1) - 1, error.offset == 1 and "dot" in what, what


def _declared(triples: Any) -> bytes:
    """The prefixes that are known, to stand in front of a line."""
    return "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in triples.prefixes.items()).encode()


class _Again:
    """A file whose last bytes can be read once more."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._extra = b""  # handed out first, no part of the file
        self._due = io.BytesIO()  # to be handed out before more of the file
        self._kept: deque[bytes] = deque()  # what was handed out last
        self._size = 0
        self._line = 1  # of the first byte kept

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._extra:
            extra, self._extra = self._extra[:size], self._extra[size:]
            return extra
        data = self._due.read(size) or self._file.read(size)
        self._kept.append(data)
        self._size += len(data)
        while self._size - len(self._kept[0]) > _KEPT:
            gone = self._kept.popleft()
            self._size -= len(gone)
            self._line += gone.count(b"\n")
        return data

    def line_of_last(self, count: int) -> int:
        """The line of the first character that is no space in the last `count` bytes handed out."""
        kept = b"".join(self._kept)
        start = len(kept) - count
        start = len(kept) - len(kept[start:].lstrip())
        return self._line + kept.count(b"\n", 0, start)

    def back(self, line: int, behind: bool, statements: bool) -> int:
        """What is handed out next begins at `line`, or `behind` it: at the next line, or, with `statements`, at the one
        that follows the end of a statement. Returns its number."""
        kept = b"".join(self._kept) + self._due.read()
        start = 0
        for _ in range(line - self._line):
            start = kept.index(b"\n", start) + 1
        while behind and start < len(kept):
            end = kept.find(b"\n", start) + 1 or len(kept)
            behind = statements and not kept[start:end].rstrip().endswith(b".")
            start = end
            line += 1
        self._due, self._line, self._size = io.BytesIO(kept[start:]), line, 0
        self._kept.clear()
        return line

    def put_before(self, extra: bytes) -> None:
        """Hand out `extra` before all else."""
        self._extra = extra
