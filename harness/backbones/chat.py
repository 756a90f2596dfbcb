"""The Chat Completions API: entries to messages, replies to entries.

An assistant's message is sent back as it came, unknown fields included, but for arguments that no server could parse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

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
from harness.messages import Entry, FinishReason, ToolCall, ToolSpec

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
}


def parse_reply(data: bytes, asked: Asked) -> Parsed:
    """Read a reply.

    Raises Trouble for a reply that isn't one, and what `faults.from_error` makes of an error sent with status 200.
    """
    notes: list[Note] = []
    reply = load(data, notes)
    message, reason = _choice(reply)
    reader = CallReader(asked, notes)
    calls = tuple(
        reader.read(call.get("id"), _function(call).get("name"), _function(call).get("arguments"))
        for call in _raw_calls(message)
    )
    refusal = parts_text(message.get("refusal"), "refusal", "text")
    text = visible(parts_text(message.get("content"), "text", "refusal"), notes) or refusal
    if not calls:
        calls, text = reader.in_text(text)
    finish = _finish(reason, bool(calls), bool(refusal), notes)
    if not calls and not text:
        notes.append({"kind": "empty_reply"})
    return Parsed(Entry("assistant", text, calls, raw=message), finish, parse_usage(reply.get("usage")), tuple(notes))


def _parameters(profile: Profile) -> dict[str, Any]:
    return {
        "model": profile.model,
        "reasoning_effort": profile.effort,
        "temperature": profile.temperature,
        "top_p": profile.top_p,
        "seed": profile.seed,
        "max_completion_tokens": profile.max_output,
    }


def _tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def _messages(entry: Entry) -> list[Any]:
    if entry.role in ("system", "user"):
        return [{"role": entry.role, "content": entry.text}]
    if entry.role == "tool":
        return [{"role": "tool", "tool_call_id": entry.call_id, "content": entry.text}]
    raw = cast(Mapping[str, Any], entry.raw) if isinstance(entry.raw, Mapping) else {"content": entry.text}
    message = {"role": "assistant", **raw}
    message["role"] = "assistant"
    message.pop("tool_calls", None)
    if not entry.calls:
        message["content"] = message.get("content") or ""  # null without calls is refused by strict servers
        return [message]
    originals = _raw_calls(raw)
    if not originals:
        message["content"] = entry.text or None
    if len(originals) != len(entry.calls):
        originals = [{}] * len(entry.calls)
    message.setdefault("content", None)
    message["tool_calls"] = [_call(call, original) for call, original in zip(entry.calls, originals, strict=True)]
    return [message]


def _call(call: ToolCall, original: Mapping[str, Any]) -> dict[str, Any]:
    function = {**_function(original), "name": call.name, "arguments": stand_in(call.arguments)}
    return {**original, "id": call.id, "type": "function", "function": function}


def _choice(reply: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The reply's message and finish reason."""
    raise_error(reply.get("error"))
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise Trouble("reply holds no choice")
    raise_error(choice.get("error"))
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise Trouble("reply holds no message")
    return message, choice.get("finish_reason")


def _raw_calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else {}


def _finish(reason: Any, calls: bool, refused: bool, notes: list[Note]) -> FinishReason:
    finish = _FINISH.get(reason) if isinstance(reason, str) else None
    if finish in ("length", "content_filter", "refusal"):
        return finish
    if calls:
        return "tool_calls"
    if refused:
        return "refusal"
    if finish != "stop":
        notes.append({"kind": "finish_reason", "given": reason})
    return "stop"


CHAT: Final = Dialect(
    name="chat",
    path="chat/completions",
    parameters=_parameters,
    begin=lambda tools, parallel: begin("messages", _tools(tools), parallel),
    end=end,
    message=_messages,
    parse=parse_reply,
    streaming={"stream": True, "stream_options": {"include_usage": True}},
    assemble=sse.chat_completion,
)
