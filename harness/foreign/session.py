"""What all foreign formats are read into."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from harness.ledger import StopReason
from harness.messages import Usage

# Foreign names of what runs a shell command.
_SHELLS = {"bash", "shell", "shell_command", "exec_command", "container.exec", "local_shell", "exec"}
_SHELL_PROGRAMS = {"bash", "sh", "/bin/bash", "/bin/sh", "zsh"}


@dataclass
class ForeignCall:
    """One call. `arguments` is None where the model's text was no JSON object; `output` where there was no result."""

    id: str
    name: str
    text: str
    arguments: dict[str, Any] | None
    output: str | None = None
    exit_code: int | None = None
    time: float = 0.0

    @property
    def is_shell(self) -> bool:
        """Whether it runs a command."""
        return self.name == "bash"


@dataclass
class ForeignTurn:
    """One reply with its calls. `said` are messages that the model got before it, besides results."""

    time: float
    text: str = ""
    calls: list[ForeignCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    raw: Any = None
    said: list[str] = field(default_factory=list)


@dataclass
class Session:
    """One attempt. `query_id` and `ids` are None where the file doesn't say them; they are in the texts then."""

    prompt: str
    turns: list[ForeignTurn]
    model: str
    started: float
    finished: float
    agent: int = 0
    query_id: str | None = None
    ids: tuple[int, ...] | None = None
    stop: StopReason = "answered"
    left: list[str] = field(default_factory=list)


def make_call(identity: str, name: str, arguments: Any, *, time: float = 0.0) -> ForeignCall:
    """A call with arguments as text or as a table; one that runs a shell command is a call of `bash`."""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    table = arguments if isinstance(arguments, Mapping) else _table(text)
    if name in _SHELLS and table is not None:
        command = _command(table)
        if command is not None:
            return ForeignCall(identity, "bash", text, {"command": command}, time=time)
    return ForeignCall(identity, name, text, dict(table) if table is not None else None, time=time)


def text_of(content: Any) -> str:
    """The text of a message's content: a text, or a list of parts of which some have one."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def seconds(value: Any, otherwise: float) -> float:
    """Unix seconds of an ISO time, of milliseconds or of seconds; `otherwise` where it's none of them."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return otherwise
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if value > 1e11 else float(value)
    return otherwise


def count(value: Any) -> int | None:
    """A number of tokens, None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _command(table: Mapping[str, Any]) -> str | None:
    command = table.get("command", table.get("cmd"))
    if isinstance(command, str):
        return command
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        if len(command) == 3 and command[0] in _SHELL_PROGRAMS and command[1].startswith("-"):
            return str(command[2])
        return shlex.join(command)
    return None


def _table(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
