"""The same behaviours of a model in the words of either API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.support.server import Behaviour, respond, say

Call = tuple[Any, str, Any]  # id, name, arguments: text, or anything for what is sent in its place
EVENTS = {"Content-Type": "text/event-stream"}


class Chat:
    """Chat Completions."""

    api = "chat"

    def says(self, text: Any, *, finish: str = "stop", usage: Mapping[str, Any] | None = None) -> Behaviour:
        """A text."""
        return say(text, finish=finish, usage=usage)

    def calls(self, *calls: Call, finish: str = "tool_calls", usage: Mapping[str, Any] | None = None) -> Behaviour:
        """Calls, in order."""
        made = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in calls
        ]
        return say(None, message={"tool_calls": made, "reasoning_content": "secret-1"}, finish=finish, usage=usage)

    def thinks_only(self) -> Behaviour:
        """Cut off while still reasoning."""
        return say(None, finish="length", message={"reasoning_content": "secret-1"})

    def cut(self, text: str) -> Behaviour:
        """Cut off in the middle of a text."""
        return say(text, finish="length")

    def filtered(self) -> Behaviour:
        """Withheld by a content filter."""
        return say("", finish="content_filter")

    def refuses(self, text: str) -> Behaviour:
        """Declines to answer."""
        return say(None, message={"refusal": text})

    def without_usage(self, text: str) -> Behaviour:
        """A text, and not a word on tokens."""
        return say(text, no_usage=True)

    def hollow(self) -> Behaviour:
        """A reply of the right form with nothing in it."""
        return Behaviour(body=b'{"id": "x", "choices": []}')

    def fails_inside(self, code: str, message: str) -> Behaviour:
        """An error with status 200."""
        return Behaviour(body=json.dumps({"error": {"code": code, "message": message}}).encode())

    def streamed(self, whole: Behaviour, **rest: Any) -> Behaviour:
        """The same reply as a stream of small pieces."""
        reply = json.loads(whole.body)
        message, finish = reply["choices"][0]["message"], reply["choices"][0]["finish_reason"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        for key in ("reasoning_content", "content"):
            deltas += [{key: piece} for piece in _pieces(message.get(key))]
        for index, call in enumerate(message.get("tool_calls") or ()):
            deltas.append({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
            arguments = call["function"]["arguments"]
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in _pieces(arguments)
            ]
        events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        half = {key: value // 2 for key, value in reply["usage"].items()}  # counts so far, as some servers send
        events[0]["usage"] = half  # type: ignore[assignment]
        events.append({"choices": [], "usage": reply["usage"]})
        return replace(whole, body=_sse(events) + b"data: [DONE]\n\n", headers=EVENTS, **rest)


class Responses:
    """The Responses API."""

    api = "responses"

    def says(self, text: Any, *, finish: str = "stop", usage: Mapping[str, Any] | None = None) -> Behaviour:
        """A text."""
        return respond(_reasoning(), _message(text), top={"usage": usage} if usage else None)

    def calls(self, *calls: Call, finish: str = "tool_calls", usage: Mapping[str, Any] | None = None) -> Behaviour:
        """Calls, in order."""
        return respond(
            _reasoning(),
            *(
                {"type": "function_call", "id": f"fc_{i}", "call_id": id_, "name": name, "arguments": arguments}
                for i, (id_, name, arguments) in enumerate(calls)
            ),
            top={"usage": usage} if usage else None,
        )

    def thinks_only(self) -> Behaviour:
        """Cut off while still reasoning."""
        return _incomplete("max_output_tokens", _reasoning())

    def cut(self, text: str) -> Behaviour:
        """Cut off in the middle of a text."""
        return _incomplete("max_output_tokens", _message(text))

    def filtered(self) -> Behaviour:
        """Withheld by a content filter."""
        return _incomplete("content_filter")

    def refuses(self, text: str) -> Behaviour:
        """Declines to answer."""
        return respond({"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": text}]})

    def without_usage(self, text: str) -> Behaviour:
        """A text, and not a word on tokens."""
        return respond(_message(text), top={"usage": None})

    def hollow(self) -> Behaviour:
        """A reply of the right form with nothing in it."""
        return respond(top={"output": None})

    def fails_inside(self, code: str, message: str) -> Behaviour:
        """An error with status 200."""
        return respond(top={"status": "failed", "error": {"code": code, "message": message}})

    def streamed(self, whole: Behaviour, **rest: Any) -> Behaviour:
        """The same reply as a stream of events."""
        reply = json.loads(whole.body)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {**reply, "output": []}}]
        for index, item in enumerate(reply["output"]):
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
            )
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": f"response.{reply['status']}", "response": reply})
        return replace(whole, body=_sse(events, named=True), headers=EVENTS, **rest)


class Prompted(Chat):
    """Chat Completions of a model that was not taught tools: a call is a JSON object in the text, one at a time."""

    api = "prompted"

    def calls(self, *calls: Call, finish: str = "stop", usage: Mapping[str, Any] | None = None) -> Behaviour:
        """One call; what else a server may send of calls can't be said in this form."""
        ((_, name, arguments),) = calls
        said = arguments if isinstance(arguments, str) else json.dumps(arguments)
        text = f'{{"name": {json.dumps(name)}, "arguments": {said}}}'
        return say(text, message={"reasoning_content": "secret-1"}, finish=finish, usage=usage)


Voice = Chat | Responses | Prompted


def _reasoning() -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret-1"}


def _message(text: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def _incomplete(reason: str, *items: Mapping[str, Any]) -> Behaviour:
    return respond(*items, top={"status": "incomplete", "incomplete_details": {"reason": reason}})


def _pieces(text: str | None) -> list[str]:
    return [text[i : i + 7] for i in range(0, len(text), 7)] if text else []


def _sse(events: Sequence[Mapping[str, Any]], named: bool = False) -> bytes:
    heads = [f"event: {event['type']}\n" if named else "" for event in events]
    return "".join(f"{head}data: {json.dumps(event)}\n\n" for head, event in zip(heads, events, strict=True)).encode()
