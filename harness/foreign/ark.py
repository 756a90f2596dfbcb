"""ARK's result files: one JSON object for a question, with the conversation of each of its agents.

    {"question": …, "answer_indices": […], "trajectories": [{"message_history": […], "agent_answer_indices": […],
     "steps": N, "step_times": […]}, …]}

The file's name is the question's id. Messages are those of the Chat Completions API.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.foreign.session import ForeignCall, ForeignTurn, Session, make_call, text_of

_FINISH = "finish"  # the tool that ends an exploration


def is_one(beginning: bytes) -> bool:
    """Whether a file that begins like this can be one."""
    return beginning.lstrip().startswith(b"{") and b'"question"' in beginning and b'"answer_indices"' in beginning


def read(path: Path) -> list[Session]:
    """Every agent's attempt. Raises ValueError, LookupError, TypeError for a damaged file."""
    table = orjson.loads(path.read_bytes())
    finished = path.stat().st_mtime
    return [_session(path, number, entry, finished) for number, entry in enumerate(table["trajectories"])]


def _session(path: Path, agent: int, entry: Mapping[str, Any], finished: float) -> Session:
    durations = [float(value) for value in entry.get("step_times") or []]
    started = finished - sum(durations)
    prompt: list[str] = []
    turns: list[ForeignTurn] = []
    said: list[str] = []
    calls: dict[str, ForeignCall] = {}
    now = started
    for message in entry["message_history"]:
        role, text = message["role"], text_of(message.get("content"))
        if role == "assistant":
            now += durations[len(turns)] if len(turns) < len(durations) else 0.0
            found = [
                make_call(call["id"], call["function"]["name"], call["function"]["arguments"], time=now)
                for call in message.get("tool_calls") or []
            ]
            calls.update((call.id, call) for call in found)
            turns.append(ForeignTurn(now, text, found, raw=dict(message), said=said))
            said = []
        elif role == "tool":
            if message.get("tool_call_id") in calls:
                calls[message["tool_call_id"]].output = text
        elif turns:
            said.append(text)
        else:
            prompt.append(text)
    ended = any(call.name == _FINISH for turn in turns for call in turn.calls)
    return Session(
        prompt="\n\n".join(prompt), turns=turns, model="", started=started, finished=finished, agent=agent,
        query_id=path.stem, ids=tuple(int(node) for node in entry["agent_answer_indices"]),
        stop="answered" if ended else "turn_limit", left=said,
    )  # fmt: skip
