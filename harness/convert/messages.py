"""Chat messages for fine-tuning: JSON Lines, an attempt a line, in the form of the Chat Completions API.

Every message has a `weight`: 1 for the model's own (the tokens to learn), 0 for all others (the loss mask). Results are
as the model saw them when they came, nothing cleared. Gold is not in it. An attempt of which lines can't be read is
left out: a conversation with a hole is no example to learn from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from harness.convert.attempts import SavedAttempt, Source, Turn


def write(source: Source, attempts: Iterator[SavedAttempt], out: Path) -> int:
    """Write one line for each attempt; a crash leaves no file. Returns how many."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("wb") as file:
            for attempt in attempts:
                if attempt.damaged:
                    continue
                file.write(orjson.dumps(conversation(source, attempt), option=orjson.OPT_APPEND_NEWLINE))
                count += 1
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return count


def conversation(source: Source, attempt: SavedAttempt) -> dict[str, Any]:
    """One attempt as a conversation with its tools."""
    tools = [{"type": "function", "function": tool} for tool in attempt.start["tools"]]
    record = attempt.record
    return {
        "messages": list(_messages(attempt)),
        "tools": tools,
        "metadata": {
            "run": source.run.name, "graph": source.manifest["graph"], "mode": source.mode, "model": source.model,
            "query_id": record.query_id, "agent": record.agent, "attempt": record.attempt,
            "stop_reason": record.stop_reason,
        },
    }  # fmt: skip


def _messages(attempt: SavedAttempt) -> Iterator[dict[str, Any]]:
    if attempt.system:
        yield {"role": "system", "content": attempt.system, "weight": 0}
    yield {"role": "user", "content": attempt.start["prompt"], "weight": 0}
    for turn in attempt.turns:
        for event in turn.said:
            yield {"role": "user", "content": event["text"], "weight": 0}
        yield _assistant(turn)
        for call in turn.calls:
            if call.result is not None:
                yield {"role": "tool", "tool_call_id": call.id, "content": call.result["text"], "weight": 0}


def _assistant(turn: Turn) -> dict[str, Any]:
    """The model's message. Calls whose arguments were no JSON object are no example to learn from: weight 0."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
        for call in turn.calls
    ]
    sound = all(call.arguments is not None for call in turn.calls)
    message = {"role": "assistant", "content": turn.reply["text"], "weight": int(sound)}
    return {**message, "tool_calls": calls} if calls else message
