"""Tool calls that a server left in the text of a reply, because it has no parser for its model's way of writing them.

Known forms: `<tool_call>{…}</tool_call>` (Hermes, Qwen), `<function=name><parameter=key>…` (Qwen Coder),
`[TOOL_CALLS]…` (Mistral), and a text that is nothing but `{"name": …, "parameters": …}` (Llama). Only names of tools
on offer count, so that text which merely looks like a call stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from typing import Any, Final

_TAGGED: Final = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION: Final = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER: Final = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_MISTRAL: Final = re.compile(r"\[TOOL_CALLS\]\s*(.*)\Z", re.DOTALL)
_MISTRAL_NAMED: Final = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")
_PYTHON_TAG: Final = "<|python_tag|>"

Found = tuple[str, Any]  # name, arguments
_DECODER: Final = json.JSONDecoder(strict=False)


def calls_in_text(text: str, tools: Set[str]) -> tuple[list[Found], str]:
    """Calls of `tools` found in a text, and the text without them. No calls: the text as it was."""
    if not tools:
        return [], text
    for pattern, read in ((_TAGGED, _tagged), (_FUNCTION, _function), (_MISTRAL, _mistral)):
        matches = list(pattern.finditer(text))
        calls = [call for match in matches for call in read(match)]
        if calls and all(name in tools for name, _ in calls):
            return calls, pattern.sub("", text).strip()
    bare = text.strip().removeprefix(_PYTHON_TAG)
    calls = list(_objects(bare)) if bare.startswith(("{", "[")) else []
    if calls and all(name in tools for name, _ in calls):
        return calls, ""
    return [], text


def _tagged(match: re.Match[str]) -> Iterator[Found]:
    inner = match[1]
    if functions := list(_FUNCTION.finditer(inner)):
        for function in functions:
            yield from _function(function)
    else:
        yield from _objects(inner)


def _function(match: re.Match[str]) -> Iterator[Found]:
    yield match[1], {key: _value(value) for key, value in _PARAMETER.findall(match[2])}


def _value(text: str) -> Any:
    """A parameter's text; numbers and the like as such, since the form has no quotes to tell them apart."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


def _mistral(match: re.Match[str]) -> Iterator[Found]:
    rest = match[1]
    if rest.startswith(("[", "{")):
        yield from _objects(rest)
        return
    while named := _MISTRAL_NAMED.match(rest):
        try:
            arguments, end = _DECODER.raw_decode(rest, named.end())
        except (ValueError, RecursionError):
            return
        yield named[1], arguments
        rest = rest[end:].removeprefix("[TOOL_CALLS]")


def _objects(text: str) -> Iterator[Found]:
    """Calls written as one JSON object or an array of them, and nothing else behind it."""
    try:
        value, end = _DECODER.raw_decode(text := text.strip())
    except (ValueError, RecursionError):
        return
    if text[end:].strip(" ;"):
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            arguments = item.get("arguments", item.get("parameters"))
            if isinstance(arguments, dict | str):
                yield item["name"], arguments
