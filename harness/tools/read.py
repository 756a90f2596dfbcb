"""`read`: bytes of a file in the attempt's sandbox, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import ToolSpec
from harness.observe import Observation, decode
from harness.text import count_of
from harness.tools import ToolContext

_UTF8_MOST = 4  # bytes of the longest character


class Read:
    """Exact contents, unlike bash's output: lines are not shortened, so a long record can be paged through."""

    needs_sandbox = True
    spec = ToolSpec(
        name="read",
        description=(
            "Read part of a text file: `limit` bytes from byte `offset` on. For a long line or a large file, call"
            " again with the offset that the result names."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "relative paths start at the working directory"},
                "offset": {"type": "integer", "minimum": 0, "description": "first byte, default 0"},
                "limit": {"type": "integer", "minimum": 1, "description": "bytes at most"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        path, offset = arguments["path"], arguments.get("offset", 0)
        limit = min(arguments.get("limit", context.cap), context.cap)
        part = context.sandbox().read(path, offset, limit)
        data = part.data if offset + len(part.data) >= part.size else _whole_characters(part.data)
        end = offset + len(data)
        header = f"[bytes {offset}-{end} of {part.size}]"
        more = [f"[{count_of(part.size - end, 'byte')} more: read on with offset {end}]"] if end < part.size else []
        return Observation(text="\n".join([header, decode(data), *more]), whole=data)


def _whole_characters(data: bytes) -> bytes:
    """`data` without an unfinished UTF-8 character at its end."""
    for back in range(1, min(_UTF8_MOST, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:  # the start of the last character
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back and len(data) > back else data
    return data
