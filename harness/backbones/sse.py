"""Streamed replies, put together into what the same reply would be in one piece.

A stream is read to its end before anything is made of it, so one that breaks off is a failed try like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.backbones import jsontext
from harness.backbones.faults import Trouble

_APPENDED: Final = frozenset({"content", "reasoning_content", "reasoning", "refusal"})


def is_stream(data: bytes) -> bool:
    """Whether a body is a series of server-sent events."""
    return data.lstrip()[:6].startswith((b"data:", b"event:", b"id:", b":"))


def events(data: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a stream's events (WHATWG HTML, section 9.2). Raises Trouble for data that is no JSON."""
    for block in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        text = b"\n".join(lines)
        if not text or text == b"[DONE]":
            continue
        try:
            event, _ = jsontext.loads(text)
        except ValueError:
            raise Trouble("an event of the stream is not JSON") from None
        if isinstance(event, Mapping):
            yield event


def chat_completion(data: bytes) -> dict[str, Any]:
    """A Chat Completions stream as one completion. Raises Trouble where it ended early."""
    message: dict[str, Any] = {"role": "assistant"}
    finish: Any = None
    usage: Any = None
    for chunk in events(data):
        if chunk.get("error"):
            return {"error": chunk["error"]}
        usage = chunk.get("usage") or usage  # counts so far: the last ones hold
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, Mapping):
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                _add(message, delta)
    if finish is None:
        raise Trouble("the stream ended early")
    for call in message.get("tool_calls", ()):
        del call["index"]
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def response(data: bytes) -> dict[str, Any]:
    """A Responses stream as one response. Raises Trouble where it ended early."""
    items = []
    for event in events(data):
        kind = event.get("type")
        if kind == "error" or (kind is None and event.get("error")):
            return {"error": event.get("error") or event}
        if kind == "response.output_item.done":
            items.append(event.get("item"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            whole = event.get("response")
            whole = dict(whole) if isinstance(whole, Mapping) else {}
            return {**whole, "output": whole.get("output") or items}
    raise Trouble("the stream ended early")


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        if value is None or key == "role":
            continue
        before = message.get(key)
        if key == "tool_calls":
            for part in value if isinstance(value, list) else ():
                if isinstance(part, Mapping):
                    _add_call(message.setdefault("tool_calls", []), part)
        elif isinstance(value, list):
            message[key] = [*before, *value] if isinstance(before, list) else value
        else:
            message[key] = _appended(before, value) if key in _APPENDED else value


def _appended(before: Any, value: Any) -> Any:
    return before + value if isinstance(before, str) and isinstance(value, str) else value


def _add_call(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    call = _call_for(calls, part)
    call.update({key: value for key, value in part.items() if key not in ("index", "id", "function") and value})
    if not call.get("id") and part.get("id"):
        call["id"] = part["id"]
    given = part.get("function")
    if isinstance(given, Mapping):
        function = call["function"]
        name, arguments = given.get("name"), given.get("arguments")
        if isinstance(name, str) and name and function.get("name") != name:  # some servers repeat it in each event
            function["name"] = _appended(function.get("name"), name)
        if arguments is not None:
            function["arguments"] = _appended(function.get("arguments"), arguments)


def _call_for(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> dict[str, Any]:
    """The call that a part belongs to: by index, else by id, else the last one."""
    index, call_id = part.get("index"), part.get("id")
    for call in calls:
        if call["index"] == index if index is not None else call_id is None or call.get("id") == call_id:
            found = call
            break
    else:
        found = {"index": index, "function": {}}
        calls.append(found)
    return found
