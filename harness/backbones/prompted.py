"""Chat Completions for models that were not taught to call tools.

The tools are described in a system message, and the server holds the model to a JSON Schema made from theirs
(`response_format`; llama.cpp turns it into a grammar), so that every whole reply is a well-formed call or an answer:
`{"name": "bash", "arguments": {…}}` or `{"answer": [12, 34]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.backbones import chat, jsontext
from harness.backbones.dialect import Asked, CallReader, Dialect, Note, Parsed
from harness.messages import Entry, Request, ToolSpec

LONGEST_TEXT: Final = 600  # characters of an argument: a small model knows no end
MOST_IDS: Final = 20

_CALL_FORM: Final = 'call a tool with {"name": TOOL, "arguments": {...}}, or answer with {"answer": [id, id, ...]}'
_ANSWER_FORM: Final = 'answer with {"answer": [id, id, ...]}'


def parse_reply(data: bytes, asked: Asked) -> Parsed:
    """Read a reply; as `chat.parse_reply`.

    What isn't one of the two forms was cut off, or the server doesn't hold replies to them: then calls may be in it in
    a form of the model's own, else it stays text.
    """
    parsed = chat.parse_reply(data, replace(asked, tools=frozenset()))
    try:
        said, _ = jsontext.loads(parsed.entry.text.encode("utf-8", "replace"))
    except ValueError:
        return chat.parse_reply(data, asked)
    if isinstance(said, dict) and isinstance(said.get("answer"), list):
        text = f"ANSWER: {jsontext.dumps(said['answer']).decode()}"
        return replace(parsed, entry=replace(parsed.entry, text=text))
    if not (isinstance(said, dict) and "name" in said and "arguments" in said and asked.tools):
        return chat.parse_reply(data, asked)
    notes: list[Note] = []
    arguments = jsontext.dumps(said["arguments"]).decode()
    call = CallReader(asked, notes).read(f"call_{asked.turn}", said["name"], arguments)
    finish = "tool_calls" if parsed.finish == "stop" else parsed.finish
    return replace(parsed, entry=replace(parsed.entry, text="", calls=(call,)), finish=finish)


def reply_schema(tools: Sequence[ToolSpec], choice: str) -> dict[str, Any]:
    """The JSON Schema of what may be said: a call of one of the tools or an answer, as far as `choice` allows."""
    answers = {"type": "integer"} if tools else {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 100}]}
    answer = _object({"answer": {"type": "array", "items": answers, "maxItems": MOST_IDS}})
    calls = [_object({"name": {"const": tool.name}, "arguments": _bounded(tool.parameters)}) for tool in tools]
    if choice == "none" or not calls:
        return answer
    return {"anyOf": calls if choice == "required" else [*calls, answer]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _bounded(schema: Any) -> Any:
    """The schema with an end to every text."""
    if isinstance(schema, list):
        return [_bounded(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounded = {key: _bounded(value) for key, value in schema.items()}
    if schema.get("type") == "string" and not {"maxLength", "enum", "const"} & schema.keys():
        bounded["maxLength"] = LONGEST_TEXT
    return bounded


def _begin(tools: Sequence[ToolSpec], _: bool | None) -> bytes:
    parts = [
        f"Tool {tool.name}: {tool.description} Arguments: {jsontext.dumps(dict(tool.parameters)).decode()}"
        for tool in tools
    ]
    parts.append(f"Each of your replies is one JSON object: {_CALL_FORM if tools else _ANSWER_FORM}.")
    return b'"messages":[' + jsontext.dumps({"role": "system", "content": "\n\n".join(parts)}) + b","


def _end(request: Request) -> bytes:
    schema = {"name": "reply", "strict": True, "schema": reply_schema(request.tools, request.tool_choice)}
    return b'],"response_format":' + jsontext.dumps({"type": "json_schema", "json_schema": schema}) + b"}"


def _messages(entry: Entry) -> list[Any]:
    if entry.role == "user":
        return [{"role": "user", "content": entry.text}]
    if entry.role == "tool":
        return [{"role": "user", "content": f"Result of {entry.call_id}:\n{entry.text}"}]
    said = entry.raw.get("content") if isinstance(entry.raw, Mapping) else entry.text
    return [{"role": "assistant", "content": said if isinstance(said, str) else entry.text}]


PROMPTED: Final = Dialect(
    name="prompted",
    path=chat.CHAT.path,
    parameters=chat.CHAT.parameters,
    begin=_begin,
    end=_end,
    message=_messages,
    parse=parse_reply,
    streaming=chat.CHAT.streaming,
    assemble=chat.CHAT.assemble,
)
