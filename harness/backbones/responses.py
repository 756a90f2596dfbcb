"""The Responses API: entries to items, replies to entries.

Every item of a reply is sent back as it came, reasoning with its encrypted content before the call that it belongs to;
nothing is stored at the provider, so `previous_response_id` plays no part. Two exceptions: arguments that no server
could parse, and reasoning at the end of a reply that was cut off, which the API refuses without what it led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.backbones import sse
from harness.backbones.dialect import (
    Asked,
    CallReader,
    Dialect,
    Note,
    Parsed,
    begin,
    end,
    load,
    parts_text,
    raise_error,
    stand_in,
    visible,
)
from harness.backbones.faults import Trouble
from harness.backbones.profiles import Profile
from harness.backbones.usage import parse_usage
from harness.messages import Entry, FinishReason, ToolSpec

_INCOMPLETE: Final[Mapping[str, FinishReason]] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def parse_reply(data: bytes, asked: Asked) -> Parsed:
    """Read a reply; as `chat.parse_reply`."""
    notes: list[Note] = []
    reply = load(data, notes)
    raise_error(reply.get("error"))
    output = reply.get("output")
    if reply.get("status") == "failed" or not isinstance(output, list):
        raise Trouble(f"reply holds no output (status {reply.get('status')!r})")
    items = [item for item in output if isinstance(item, Mapping)]
    reader = CallReader(asked, notes)
    calls = tuple(reader.read(item.get("call_id"), item.get("name"), item.get("arguments")) for item in _calls(items))
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    refusal = "".join(parts_text(content, "refusal") for content in contents if isinstance(content, list))
    text = visible("".join(parts_text(content, "text") for content in contents), notes) or refusal
    if not calls:
        calls, text = reader.in_text(text)
    finish = _finish(reply, bool(calls), bool(refusal), notes)
    if not calls and not text:
        notes.append({"kind": "empty_reply"})
    if dropped := len(items) - len(_resendable(items)):
        notes.append({"kind": "reasoning_dropped", "items": dropped})
    return Parsed(Entry("assistant", text, calls, raw=items), finish, parse_usage(reply.get("usage")), tuple(notes))


def _parameters(profile: Profile) -> dict[str, Any]:
    return {
        "model": profile.model,
        "reasoning": None if profile.effort is None else {"effort": profile.effort},
        "temperature": profile.temperature,
        "top_p": profile.top_p,
        "max_output_tokens": profile.max_output,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": False,  # else optional arguments would have to be required ones
        }
        for tool in tools
    ]


def _items(entry: Entry) -> list[Any]:
    if entry.role in ("system", "user"):
        return [{"role": entry.role, "content": entry.text}]
    if entry.role == "tool":
        return [{"type": "function_call_output", "call_id": entry.call_id, "output": entry.text}]
    if not isinstance(entry.raw, list):
        said = [{"role": "assistant", "content": entry.text}] if entry.text else []
        return [
            *said,
            *({"type": "function_call", **_call(call.id, call.name, call.arguments)} for call in entry.calls),
        ]
    calls = iter(entry.calls)
    return [_item(item, calls) for item in _resendable(entry.raw)]


def _item(item: Mapping[str, Any], calls: Any) -> Mapping[str, Any]:
    if item.get("type") != "function_call":
        return item
    call = next(calls)
    return {**item, **_call(call.id, call.name, call.arguments)}


def _call(call_id: str, name: str, arguments: str) -> dict[str, str]:
    return {"call_id": call_id, "name": name, "arguments": stand_in(arguments)}


def _calls(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [item for item in items if item.get("type") == "function_call"]


def _resendable(items: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Without reasoning items at the end."""
    end = len(items)
    while end and items[end - 1].get("type") == "reasoning":
        end -= 1
    return items[:end]


def _finish(reply: Mapping[str, Any], calls: bool, refused: bool, notes: list[Note]) -> FinishReason:
    details = reply.get("incomplete_details")
    if reply.get("status") == "incomplete":
        reason = details.get("reason") if isinstance(details, Mapping) else None
        finish = _INCOMPLETE.get(reason) if isinstance(reason, str) else None
        if finish is None:
            notes.append({"kind": "finish_reason", "given": reason})
        return finish or "length"
    if calls:
        return "tool_calls"
    return "refusal" if refused else "stop"


RESPONSES: Final = Dialect(
    name="responses",
    path="responses",
    parameters=_parameters,
    begin=lambda tools, parallel: begin("input", _tools(tools), parallel),
    end=end,
    message=_items,
    parse=parse_reply,
    streaming={"stream": True},
    assemble=sse.response,
)
