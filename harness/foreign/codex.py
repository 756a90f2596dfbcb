"""Codex's session files (rollouts): JSON Lines of {"timestamp", "type", "payload"}.

`response_item`s are the conversation, in the items of the Responses API; `event_msg`s of type `token_count` have the
tokens; `turn_context` has the model. What else there is repeats these or is bookkeeping. Files from before the envelope
(bare items behind a line of metadata) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.foreign.session import ForeignCall, ForeignTurn, Session, count, make_call, seconds, text_of
from harness.messages import Usage

_EXIT = re.compile(r"(?:Process exited with code|Exit code:|exited with code) (-?\d+)")
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def is_one(beginning: bytes) -> bool:
    """Whether a file that begins like this can be one."""
    try:
        first = orjson.loads(beginning.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return b'"session_meta"' in beginning[:200]  # a first line longer than what was read: it has the instructions
    if not isinstance(first, dict):
        return False
    return first.get("type") in _ENVELOPES or {"id", "timestamp", "instructions"} <= first.keys()


def read(path: Path) -> list[Session]:
    """The session, or nothing where no model was asked. Raises ValueError, LookupError, TypeError if it's damaged."""
    reader = _Reader(path.stat().st_mtime)
    for line in path.read_bytes().splitlines():
        if line.strip():
            reader.take(orjson.loads(line))
    return [reader.session()] if reader.turns else []


class _Reader:
    def __init__(self, otherwise: float) -> None:
        self.started: float | None = None
        self.now = otherwise
        self.prompt: list[str] = []
        self.turns: list[ForeignTurn] = []
        self.said: list[str] = []
        self.calls: dict[str, ForeignCall] = {}
        self.model = ""
        self.open = False  # the last turn may still get items
        self.items: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "message": self.message, "reasoning": self.reasoning, "function_call": self.call,
            "custom_tool_call": self.call, "local_shell_call": self.call, "function_call_output": self.output,
            "custom_tool_call_output": self.output,
        }  # fmt: skip

    def take(self, line: Mapping[str, Any]) -> None:
        self.now = seconds(line.get("timestamp"), self.now)
        self.started = self.now if self.started is None else self.started
        kind, payload = line.get("type"), line.get("payload")
        if kind == "response_item" or kind not in _ENVELOPES:
            item = payload if isinstance(payload, Mapping) else line
            handler = self.items.get(item.get("type", ""))
            if handler is not None:
                handler(item)
        elif isinstance(payload, Mapping):
            self.model = str(payload.get("model") or self.model) if kind == "turn_context" else self.model
            if kind == "event_msg" and payload.get("type") == "token_count" and self.turns:
                self.tokens(payload)
            if kind == "compacted":
                self.said.append(str(payload.get("message", "")))

    def turn(self) -> ForeignTurn:
        """The turn that an item of the model's belongs to."""
        if not self.open:
            self.turns.append(ForeignTurn(self.now, raw=[], said=self.said))
            self.said, self.open = [], True
        return self.turns[-1]

    def message(self, item: Mapping[str, Any]) -> None:
        text = text_of(item.get("content"))
        if item.get("role") == "assistant":
            turn = self.turn()
            turn.text = f"{turn.text}\n{text}" if turn.text else text
            turn.raw.append(dict(item))
            return
        self.open = False
        (self.said if self.turns else self.prompt).append(text)

    def reasoning(self, item: Mapping[str, Any]) -> None:
        self.turn().raw.append(dict(item))

    def call(self, item: Mapping[str, Any]) -> None:
        identity = str(item.get("call_id") or item.get("id") or f"call-{len(self.calls)}")
        action = item.get("action")
        if isinstance(action, Mapping):
            call = make_call(identity, "local_shell", dict(action), time=self.now)
        elif "input" in item:  # a custom tool takes free text
            call = make_call(identity, item["name"], {"input": item["input"]}, time=self.now)
        else:
            call = make_call(identity, item["name"], item["arguments"], time=self.now)
        turn = self.turn()
        turn.calls.append(call)
        turn.raw.append(dict(item))
        self.calls[identity] = call

    def output(self, item: Mapping[str, Any]) -> None:
        self.open = False
        call = self.calls.get(str(item.get("call_id")))
        if call is not None:
            call.output, call.exit_code = _output(item.get("output"))
            call.time = self.now

    def tokens(self, payload: Mapping[str, Any]) -> None:
        """The tokens of the last request."""
        info = payload.get("info")
        last = info.get("last_token_usage") if isinstance(info, Mapping) else None
        if isinstance(last, Mapping):
            names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
            self.turns[-1].usage = Usage(*(count(last.get(name)) for name in names))

    def session(self) -> Session:
        started = self.now if self.started is None else self.started
        return Session("\n\n".join(self.prompt), self.turns, self.model, started, self.now, left=self.said)


def _output(output: Any) -> tuple[str, int | None]:
    """A result's text and exit code: a text, a text that is JSON with both, or parts."""
    text = text_of(output)
    if isinstance(output, Mapping):
        text = text_of(output.get("content", output.get("output")))
    try:
        table = orjson.loads(text) if text.startswith("{") else None
    except orjson.JSONDecodeError:
        table = None
    if isinstance(table, dict) and isinstance(table.get("output"), str) and isinstance(table.get("metadata"), dict):
        code = table["metadata"].get("exit_code")
        return table["output"], code if isinstance(code, int) else None
    match = _EXIT.search(text[:500])
    return text, int(match[1]) if match else None
