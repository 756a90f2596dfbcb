"""Node ids in text: whole numbers that can be one, with where they stand. Vectorised: outputs are large.

A number counts where it stands by itself: not part of a word, of a decimal number, of a date, of a source's own id
such as `NCBIGene:15` or `GO:0000012`, and without leading zeros. A small number can still be there for another
reason; the shorter a graph's ids, the more of these there are. In the results of the graph tools, whose form is known,
an id counts where that form has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_PAD = 8
_ZERO = ord("0")
_WORD = np.zeros(256, dtype=bool)
_WORD[[*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"]] = True
_WORD[128:] = True  # letters of other alphabets
_LETTER = _WORD.copy()
_LETTER[[*b"0123456789"]] = False
_NOT_BEFORE = _WORD.copy()
_NOT_BEFORE[[*b".-+"]] = True
_NOT_BEHIND = _WORD.copy()
_NOT_BEHIND[ord("%")] = True
_SPLITS = np.zeros(256, dtype=bool)  # between two digits: part of a decimal number or a date
_SPLITS[[*b".-:"]] = True
_EXTENSIONS = (b".tsv", b".jsonl", b".txt")  # `edges/03.tsv:15` is a match that rg or grep found

_LISTED, _RECORD = re.compile(rb"\[(\d{1,18})\]"), re.compile(rb'"node_id": ?(\d{1,18})')
# Where the results of these tools have ids; None: an acknowledgement or counts, which have none.
_FORMS: Mapping[str, re.Pattern[bytes] | None] = {
    "search": _LISTED, "neighbors": _LISTED, "search_in_graph": _LISTED, "search_in_neighborhood": _LISTED,
    "get_node": _RECORD, "get_schema": None, "add_to_answer": None, "answer": None, "finish": None,
}  # fmt: skip

Ids = tuple[NDArray[np.int64], NDArray[np.int64]]


def ids_of_result(tool: str, data: bytes, below: int) -> Ids:
    """As `find_ids`, in what the tool `tool` gave back."""
    if tool not in _FORMS:
        return find_ids(data, below)
    form = _FORMS[tool]
    found = [(match.start(1), int(match[1])) for match in form.finditer(data)] if form is not None else []
    known = np.array([each for each in found if each[1] < below], dtype=np.int64).reshape(-1, 2)
    return known[:, 0], known[:, 1]


def find_ids(data: bytes, below: int) -> Ids:
    """Byte offsets and values of the numbers in `data` that can be ids of a graph with `below` nodes."""
    text = np.frombuffer(b" " * _PAD + data + b" " * _PAD, dtype=np.uint8)
    digit = (text - _ZERO) < 10
    edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    fits = (ends - starts <= len(str(max(below - 1, 0)))) & ((text[starts] != _ZERO) | (ends - starts == 1))
    starts, ends = starts[fits], ends[fits]
    before, behind = text[starts - 1], text[ends]
    alone = ~_NOT_BEFORE[before] & ~_NOT_BEHIND[behind] & ~(_SPLITS[behind] & digit[ends + 1])
    alone |= (behind == ord(":")) & digit[ends + 1] & ~_NOT_BEFORE[before]  # a line number, or an edge behind it
    named = (before == ord(":")) & _LETTER[text[starts - 2]]
    if named.any():
        alone &= ~named | _after_file_name(text, starts, named)
    starts, ends = starts[alone], ends[alone]
    values = np.zeros(len(starts), dtype=np.int64)
    for position in range(int((ends - starts).max(initial=0))):
        longer = starts + position < ends
        values[longer] = values[longer] * 10 + (text[starts[longer] + position] - _ZERO)
    known = values < below
    return (starts[known] - _PAD).astype(np.int64), values[known]


def _after_file_name(text: NDArray[np.uint8], starts: NDArray[np.int64], named: NDArray[np.bool_]) -> NDArray[np.bool_]:
    found = np.zeros(len(starts), dtype=bool)
    places = np.flatnonzero(named)
    for extension in _EXTENSIONS:
        matches = np.ones(len(places), dtype=bool)
        for back, byte in enumerate(reversed(extension), 2):
            matches &= text[starts[places] - back] == byte
        found[places] |= matches
    return found
