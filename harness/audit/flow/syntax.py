"""Python source -> syntax tree, for source of unknown origin."""

from __future__ import annotations

import ast
import warnings

_LONGEST = 200_000  # characters; a longer program is not read


def parse_python(source: str) -> ast.Module | None:
    """The syntax tree, None where the text is not Python (or too large or too deep to be read)."""
    if len(source) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the agent's texts are its own business
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
