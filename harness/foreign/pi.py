"""Pi's session files: JSON Lines, a header and then entries that form a tree; the branch of the last entry is read.

Versions 1 (no tree) to 3. Entries that the model didn't see (labels, state of extensions) are left out; summaries of a
compaction are told as messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.foreign.session import ForeignCall, ForeignTurn, Session, count, make_call, seconds, text_of
from harness.ledger import StopReason
from harness.messages import Usage

_EXIT = re.compile(r"(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)
_STOPS: Mapping[str, StopReason] = {"error": "backbone_error", "aborted": "interrupted"}


def is_one(beginning: bytes) -> bool:
    """Whether a file that begins like this can be one."""
    first = beginning.partition(b"\n")[0]
    try:
        header = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return isinstance(header, dict) and header.get("type") == "session" and "cwd" in header


def read(path: Path) -> list[Session]:
    """The session, or nothing where no model was asked. Raises ValueError, LookupError, TypeError if it's damaged."""
    lines = path.read_bytes().splitlines()
    header = orjson.loads(lines[0])
    entries = [orjson.loads(line) for line in lines[1:] if line.strip()]
    started = seconds(header.get("timestamp"), path.stat().st_mtime)
    reader = _Reader(started)
    for entry in _branch(entries):
        reader.take(entry)
    return [reader.session()] if reader.turns else []


def _branch(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries from the root to the last one."""
    by_id = {entry["id"]: entry for entry in entries if "id" in entry}
    if not by_id:
        return entries
    branch: list[dict[str, Any]] = []
    entry: dict[str, Any] | None = entries[-1]
    while entry is not None and len(branch) <= len(entries):  # a ring of parents would be damage
        branch.append(entry)
        entry = by_id.get(entry.get("parentId") or "")
    return branch[::-1]


class _Reader:
    def __init__(self, started: float) -> None:
        self.started = self.now = started
        self.prompt: list[str] = []
        self.turns: list[ForeignTurn] = []
        self.said: list[str] = []
        self.calls: dict[str, ForeignCall] = {}
        self.model = ""
        self.stop: StopReason = "answered"

    def take(self, entry: Mapping[str, Any]) -> None:
        self.now = max(self.now, seconds(entry.get("timestamp"), self.now))
        kind = entry.get("type")
        if kind == "message":
            message = entry["message"]
            {"assistant": self.reply, "toolResult": self.result}.get(message["role"], self.say)(message)
        elif kind in ("custom_message", "compaction", "branch_summary"):
            self.say({"content": entry.get("content", entry.get("summary"))})

    def say(self, message: Mapping[str, Any]) -> None:
        text = text_of(message.get("content"))
        if text:
            (self.said if self.turns else self.prompt).append(text)

    def reply(self, message: Mapping[str, Any]) -> None:
        parts = [part for part in message["content"] if isinstance(part, Mapping)]
        calls = [
            make_call(part["id"], part["name"], part["arguments"], time=self.now)
            for part in parts if part.get("type") == "toolCall"
        ]  # fmt: skip
        self.calls.update((call.id, call) for call in calls)
        texts = [part["text"] for part in parts if part.get("type") == "text"]
        usage = message.get("usage") or {}
        self.turns.append(
            ForeignTurn(
                self.now, "\n".join(texts), calls, _usage(usage), _cost(usage), raw=dict(message), said=self.said
            )
        )
        self.said = []
        self.model = message.get("model") or self.model
        self.stop = _STOPS.get(message.get("stopReason", ""), "answered")

    def result(self, message: Mapping[str, Any]) -> None:
        call = self.calls.get(message["toolCallId"])
        if call is None:
            return
        call.output, call.time = text_of(message["content"]), self.now
        if call.is_shell:
            failed = bool(message.get("isError"))
            match = _EXIT.search(call.output[-300:]) if failed else None
            call.exit_code = int(match[1]) if match else None if failed else 0

    def session(self) -> Session:
        return Session(
            "\n\n".join(self.prompt), self.turns, self.model, self.started, self.now, stop=self.stop, left=self.said
        )


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Pi counts tokens read from and written to the cache apart from the others."""
    parts = [count(usage.get(name)) for name in ("input", "cacheRead", "cacheWrite")]
    known = [part for part in parts if part is not None]
    return Usage(sum(known) if known else None, parts[1], count(usage.get("output")), None)


def _cost(usage: Mapping[str, Any]) -> float | None:
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, Mapping) else None
    return float(total) if isinstance(total, int | float) else None
