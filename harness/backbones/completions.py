"""The form of Chat Completions: entries to messages, replies to entries. No network.

An assistant's message is sent back as it came, unknown fields included, but for arguments that no server could parse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from harness.backbones import jsontext
from harness.backbones.faults import Trouble, from_error
from harness.backbones.usage import parse_usage
from harness.messages import Entry, FinishReason, ToolCall, Usage

STAND_IN: Final = 2_000  # characters of malformed arguments that are shown to the model again

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

Note = Mapping[str, Any]


@dataclass(frozen=True)
class Parsed:
    """What a reply says."""

    entry: Entry
    finish: FinishReason
    usage: Usage
    notes: tuple[Note, ...]


def wire(entry: Entry) -> bytes:
    """An entry as a Chat Completions message, encoded once."""
    encoded = entry.wire.get("chat")
    if encoded is None:
        encoded = entry.wire["chat"] = jsontext.dumps(_message(entry))
    return encoded


def parse_reply(data: bytes, turn: int, taken: set[str]) -> Parsed:
    """Read a reply. `taken` are the call ids already in the conversation; ids of new calls will differ from them.

    Raises Trouble for a reply that isn't one, and what `faults.from_error` makes of an error sent with status 200.
    """
    try:
        reply, repaired = jsontext.loads(data)
    except ValueError as error:
        raise Trouble(f"reply is not JSON: {error}") from None
    message, reason = _choice(reply)
    notes: list[Note] = [{"kind": "reply_repaired"}] if repaired else []
    calls = tuple(_calls(message, turn, taken, notes))
    refusal = _text(message.get("refusal"))
    text = _visible(_text(message.get("content")), notes) or refusal
    finish = _finish(reason, bool(calls), bool(refusal), notes)
    if not calls and not text:
        notes.append({"kind": "empty_reply"})
    entry = Entry("assistant", text, calls, raw=message)
    wire(entry)
    return Parsed(entry, finish, parse_usage(reply.get("usage")), tuple(notes))


def _message(entry: Entry) -> dict[str, Any]:
    if entry.role == "user":
        return {"role": "user", "content": entry.text}
    if entry.role == "tool":
        return {"role": "tool", "tool_call_id": entry.call_id, "content": entry.text}
    raw = cast(Mapping[str, Any], entry.raw) if isinstance(entry.raw, Mapping) else {"content": entry.text}
    message = {"role": "assistant", **raw}
    message["role"] = "assistant"
    message.pop("tool_calls", None)
    if not entry.calls:
        message["content"] = message.get("content") or ""  # null without calls is refused by strict servers
        return message
    originals = _raw_calls(raw)
    if len(originals) != len(entry.calls):
        originals = [{}] * len(entry.calls)
    message.setdefault("content", None)
    message["tool_calls"] = [_call(call, original) for call, original in zip(entry.calls, originals, strict=True)]
    return message


def _call(call: ToolCall, original: Mapping[str, Any]) -> dict[str, Any]:
    function = {**_function(original), "name": call.name, "arguments": stand_in(call.arguments)}
    return {**original, "id": call.id, "type": "function", "function": function}


def stand_in(arguments: str) -> str:
    """Arguments that a server can parse: the model's own where they are a JSON object, else one that quotes them."""
    if jsontext.is_object(arguments):
        return arguments
    return jsontext.dumps({"malformed_arguments": arguments[:STAND_IN]}).decode()


def _choice(reply: Any) -> tuple[Mapping[str, Any], Any]:
    """The reply's message and finish reason."""
    if not isinstance(reply, Mapping):
        raise Trouble("reply is not a JSON object")
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = reply.get("error") or (choice.get("error") if isinstance(choice, Mapping) else None)
    if error:
        code = error.get("code") if isinstance(error, Mapping) else None
        raise from_error(code if isinstance(code, int) and code >= 400 else 500, {"error": error}, {})
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise Trouble("reply holds no message")
    return message, choice.get("finish_reason")


def _raw_calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else {}


def _calls(message: Mapping[str, Any], turn: int, taken: set[str], notes: list[Note]) -> Iterator[ToolCall]:
    used = set(taken)
    for index, call in enumerate(_raw_calls(message)):
        function = _function(call)
        given = call.get("id")
        call_id = given if isinstance(given, str) and given else ""
        if not call_id or call_id in used:
            kind = "call_id_repeated" if call_id else "call_id_missing"
            call_id = _new_id(call_id or "call", turn, index, used)
            notes.append({"kind": kind, "call": index, "id": call_id})
        used.add(call_id)
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            notes.append({"kind": "arguments_not_text", "call": index, "id": call_id})
            arguments = "" if arguments is None else jsontext.dumps(arguments).decode()
        if not arguments.strip():
            notes.append({"kind": "arguments_empty", "call": index, "id": call_id})
            arguments = "{}"
        name = function.get("name")
        yield ToolCall(call_id, name if isinstance(name, str) else "", arguments)


def _new_id(base: str, turn: int, index: int, used: set[str]) -> str:
    made = f"{base[:32]}_{turn}_{index}"
    while made in used:
        made += "_"
    return made


def _text(content: Any) -> str:
    """Text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
    return ""


def _visible(text: str, notes: list[Note]) -> str:
    """Without reasoning that a server left in the content, between <think> tags."""
    thought, sign, rest = text.rpartition("</think>")
    if not sign or ("<think>" in thought and not thought.lstrip().startswith("<think>")):
        return text
    notes.append({"kind": "reasoning_in_content", "characters": len(thought)})
    return rest.lstrip()


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
