"""ATIF, the Agent Trajectory Interchange Format, version 1.4: one JSON file for each attempt.

The prompt and the harness's own messages are user steps, every reply an agent step with its calls and their results,
the system message and every clearing of old results a system step. What the format has no field for is in `extra`. Gold
is not in it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import __version__
from harness.convert.attempts import Call, SavedAttempt, Source, Turn, iso, reasoning
from harness.events import folder_name
from harness.files import write_json
from harness.text import count_of

SCHEMA_VERSION = "ATIF-v1.4"


def write(source: Source, attempts: Iterator[SavedAttempt], out: Path) -> int:
    """Write `out/<query>/<agent>-<attempt>.json` for each attempt; returns how many. A crash leaves no folder."""
    count = 0
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        part.mkdir(parents=True)
        for attempt in attempts:
            record = attempt.record
            path = part / folder_name(record.query_id) / f"{record.agent}-{record.attempt}.json"
            write_json(path, trajectory(source, attempt))
            count += 1
        part.replace(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return count


def trajectory(source: Source, attempt: SavedAttempt) -> dict[str, Any]:
    """One attempt as an ATIF document."""
    record = attempt.record
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(source, attempt), 1)]
    usage = record.usage
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": f"{source.run.name}/{attempt.name}",
        "agent": {
            "name": "kgshell", "version": __version__, "model_name": source.model,
            "extra": {"mode": source.mode, "agent": record.agent, "tools": attempt.start["tools"]},
        },
        "steps": steps,
        "final_metrics": _known(
            total_prompt_tokens=usage.get("input"), total_completion_tokens=usage.get("output"),
            total_cached_tokens=usage.get("cached"), total_cost_usd=record.cost, total_steps=len(steps),
            extra=_known(total_reasoning_tokens=usage.get("reasoning"), wall_seconds=record.times.wall),
        ),
        "extra": {
            **({"damaged_lines": list(attempt.damaged)} if attempt.damaged else {}),
            "graph": source.manifest["graph"], "query_id": record.query_id, "query": attempt.start["query"],
            "attempt": record.attempt, "stop_reason": record.stop_reason, "ids": list(record.ids),
        },
    }  # fmt: skip


def _steps(source: Source, attempt: SavedAttempt) -> Iterator[dict[str, Any]]:
    start = attempt.start
    if attempt.system:
        yield {"timestamp": iso(start["time"]), "source": "system", "message": attempt.system}
    yield {"timestamp": iso(start["time"]), "source": "user", "message": start["prompt"]}
    for turn in attempt.turns:
        for event in turn.cleared:
            text = f"{count_of(len(event['call_ids']), 'old result')} gave way to placeholders"
            extra = {key: event[key] for key in ("call_ids", "tokens_before", "tokens_after")}
            yield {"timestamp": iso(event["time"]), "source": "system", "message": text, "extra": extra}
        for event in turn.said:
            yield {"timestamp": iso(event["time"]), "source": "user", "message": event["text"]}
        yield _agent_step(source, turn)
    for event in attempt.left:
        yield {"timestamp": iso(event["time"]), "source": "user", "message": event["text"]}


def _agent_step(source: Source, turn: Turn) -> dict[str, Any]:
    reply, usage = turn.reply, turn.reply["usage"]
    results = [
        {"source_call_id": call.id, "content": call.result["text"]} for call in turn.calls if call.result is not None
    ]
    extra = _known(
        turn=reply["turn"], finish=reply["finish"], seconds=reply["latency"],
        results={call.id: _details(call) for call in turn.calls if call.result is not None} or None,
        arguments_as_written={call.id: call.text for call in turn.calls if call.arguments is None} or None,
    )  # fmt: skip
    metrics = _known(
        prompt_tokens=usage["input"], completion_tokens=usage["output"], cached_tokens=usage["cached"],
        extra=_known(reasoning_tokens=usage["reasoning"]) or None,
    )  # fmt: skip
    calls = [
        {"tool_call_id": call.id, "function_name": call.name, "arguments": dict(call.arguments or {})}
        for call in turn.calls
    ]
    return {
        "timestamp": iso(reply["time"]), "source": "agent", "model_name": source.model, "message": reply["text"],
        **_known(
            reasoning_content=reasoning(reply) or None, tool_calls=calls or None,
            observation={"results": results} if results else None, metrics=metrics or None,
        ),
        "extra": extra,
    }  # fmt: skip


def _details(call: Call) -> dict[str, Any]:
    """What the trajectory keeps of a result besides its text."""
    result: Mapping[str, Any] = call.result or {}
    kept = _known(error=result.get("error"), exec=result.get("exec"), cut=result.get("cut"), blob=result.get("blob"))
    return {**kept, "program_calls": list(call.made)} if call.made else kept


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
