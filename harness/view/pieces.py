"""Texts cut into pieces for the page: code by what its tokens are, outputs by the node ids in them, and no more at
once than can be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers import BashLexer, PythonLexer
from pygments.token import Token, _TokenType

from harness.audit.numbers import ids_of_result
from harness.text import plain

_WORD_END = re.compile(r"\W")
_BORDER = 40  # characters that a page may be longer, not to end within a word
_KINDS: dict[_TokenType, str] = {
    Token.Comment: "c", Token.Keyword: "k", Token.Operator.Word: "k", Token.Literal.String: "s",
    Token.Literal.Number: "n", Token.Name.Builtin: "b", Token.Name.Function: "f", Token.Name.Class: "f",
    Token.Name.Decorator: "f", Token.Name.Variable: "v",
}  # fmt: skip
_LEXERS: dict[str, Lexer] = {
    "bash": BashLexer(stripnl=False, ensurenl=False),
    "python": PythonLexer(stripnl=False, ensurenl=False),
}
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_PYTHON = re.compile(r"python3?\b|\.py\b")


def code_pieces(code: str, language: str) -> list[list[str]]:
    """Code as (kind, text): kinds are c comment, k keyword, s string, n number, b builtin, f definition, v variable."""
    pieces: list[list[str]] = []
    for language_, part in _by_language(plain(code), language):
        for token, text in _LEXERS[language_].get_tokens(part):
            kind = _kind(token)
            if pieces and pieces[-1][0] == kind:
                pieces[-1][1] += text
            else:
                pieces.append([kind, text])
    return pieces


def _kind(token: _TokenType) -> str:
    """What the token, or the next wider kind that is shown as one, is shown as."""
    at: _TokenType | None = token
    while at is not None and at not in _KINDS:
        at = at.parent
    return _KINDS.get(at, "") if at is not None else ""


def _by_language(code: str, language: str) -> Iterator[tuple[str, str]]:
    """Parts of a command: here-documents that are Python, run or written to a .py file, and what is around them."""
    lines = code.split("\n")
    done = 0
    for number, line in enumerate(lines if language == "bash" else ()):
        here = _HERE.search(line) if number >= done and _PYTHON.search(line) else None
        if here is None:
            continue
        end = next((at for at in range(number + 1, len(lines)) if lines[at].strip(" \t") == here[2]), None)
        if end is not None:
            yield "bash", "\n".join(lines[done : number + 1]) + "\n"
            yield "python", "".join(f"{text}\n" for text in lines[number + 1 : end])
            done = end
    yield language, "\n".join(lines[done:])


def id_pieces(text: str, nodes: int, tool: str = "bash") -> list[str | list[Any]]:
    """Text as strings, and [text, node id] where a number can be the id of one of the graph's `nodes` nodes.

    `tool` is the one whose result it is.
    """
    data = plain(text).encode()
    pieces: list[str | list[Any]] = []
    done = 0
    positions, values = ids_of_result(tool, data, nodes)
    for start, node in zip(positions.tolist(), values.tolist(), strict=True):
        written = str(node)  # ids have no leading zeros
        if start > done:
            pieces.append(data[done:start].decode())
        pieces.append([written, node])
        done = start + len(written)
    if done < len(data):
        pieces.append(data[done:].decode())
    return pieces


def page_of(text: str, start: int, size: int) -> tuple[str, int | None]:
    """At most about `size` characters of a text from `start`, and where the next page starts (None at the end)."""
    end = start + size
    if end >= len(text):
        return text[start:], None
    border = _WORD_END.search(text, end, end + _BORDER)
    end = border.start() if border else end
    return text[start:end], end if end < len(text) else None


def head_of(text: str, lines: int, characters: int) -> str:
    """The first lines of a text, not more than so many characters."""
    rows = text[: characters + 1].split("\n")
    return "\n".join(rows[:lines])[:characters]
