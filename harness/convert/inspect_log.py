"""Inspect's evaluation log in its JSON form (log format 2): one file for a run, each attempt a sample.

A sample's id is the question's, its epoch the agent's number from 1 (attempts before its last one come behind all
agents' last ones), its target the gold ids and its scores our metrics. Gold is in this file, as it is in any Inspect
log: keep it away from agents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from harness import __version__
from harness.convert.attempts import Call, SavedAttempt, Source, Turn, iso, reasoning
from harness.ledger import AttemptRecord, total_usage
from harness.metrics import METRICS

VERSION = 2

# Our finish reasons and limits in Inspect's words.
_STOPS = {"stop": "stop", "tool_calls": "tool_calls", "length": "max_tokens", "content_filter": "content_filter",
          "refusal": "content_filter"}  # fmt: skip
# Our limits: Inspect's name, and the setting of the mode that has its value.
_LIMITS = {
    "turn_limit": ("turn", "turns"), "token_limit": ("token", "tokens"), "cost_limit": ("cost", "cost"),
    "time_limit": ("working", "seconds"), "context_overflow": ("context", ""),
}  # fmt: skip
_ERRORS = {
    "unknown_tool": "parsing", "malformed_arguments": "parsing", "invalid_arguments": "parsing",
    "file_error": "file_not_found", "not_found": "unknown", "not_executed": "limit",
}  # fmt: skip
_ENDS = {
    "timeout": "timeout", "oom": "limit", "pid_limit": "limit", "cpu_limit": "limit", "file_limit": "limit",
    "output_limit": "limit",
}  # fmt: skip


def write(source: Source, attempts: Iterator[SavedAttempt], out: Path) -> int:
    """Write the log, sample by sample; a crash leaves no file. Returns how many samples."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("wb") as file:
            header = orjson.dumps(_header(source), option=orjson.OPT_INDENT_2)
            file.write(header.rstrip()[:-1].rstrip() + b',\n  "samples": [')
            epochs = _epochs(source)
            for attempt in attempts:
                file.write(
                    (b",\n" if count else b"\n")
                    + orjson.dumps(sample(source, attempt, epochs[attempt.record.trajectory]))
                )
                count += 1
            file.write(b"\n  ]\n}\n")
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return count


def _epochs(source: Source) -> dict[str, int]:
    """Each attempt's epoch, by its trajectory; no two of a question have the same."""
    agents = int(source.manifest["mode"]["agents"].get("count", 1))
    later: dict[tuple[str, int], int] = {}
    epochs: dict[str, int] = {}
    for record in reversed(source.records):
        key = (record.query_id, record.agent)
        epochs[record.trajectory] = later.get(key, 0) * agents + record.agent + 1
        later[key] = later.get(key, 0) + 1
    return epochs


def _header(source: Source) -> dict[str, Any]:
    manifest, records = source.manifest, source.counted()
    ids = list(dict.fromkeys(record.query_id for record in records))
    created = iso(manifest["created"])
    usage = total_usage([record.usage for record in records])
    limits = manifest["mode"]["limits"]
    ended = max((record.finished for record in records), default=0.0)
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": source.run.name, "run_id": source.run.name, "created": created,
            "task": f"{manifest['graph']}-{source.mode}", "task_id": source.run.name,
            "dataset": {
                "name": manifest["graph"], "location": manifest["export"]["path"], "samples": len(ids),
                "sample_ids": ids, "shuffled": False,
            },
            "model": source.model,
            "config": {"epochs": manifest["mode"]["agents"].get("count", 1), "turn_limit": limits.get("turns")},
            "packages": {"kgshell": __version__},
            "metadata": {
                "mode": manifest["mode"], "export_digest": manifest["export"]["digest"],
                "sandbox": manifest["sandbox"],
            },
        },
        "plan": {"name": source.mode, "steps": [], "config": {}},
        "results": {
            "total_samples": len(records), "completed_samples": sum(not r.is_infrastructure for r in records),
            "scores": _results(source, records),
        },
        "stats": {
            "started_at": created, "completed_at": iso(ended) if ended else "",
            "model_usage": {source.model: _usage(usage)},
        },
    }  # fmt: skip


def _results(source: Source, records: list[AttemptRecord]) -> list[dict[str, Any]]:
    """Means over attempts, those that failed counted as misses."""
    known = [scores for record in records if (scores := source.scores(record)) is not None]
    if not known:
        return []
    return [
        {
            "name": name, "scorer": name,
            "metrics": {"mean": {"name": "mean", "value": sum(scores[name] for scores in known) / len(known)}},
        }
        for name in METRICS
    ]  # fmt: skip


def sample(source: Source, attempt: SavedAttempt, epoch: int) -> dict[str, Any]:
    """One attempt as a sample. One that failed for infrastructure reasons has an error."""
    record, start = attempt.record, attempt.start
    messages = list(_messages(source, attempt))
    last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    answer = str(list(record.ids))
    failure = f"{record.stop_reason}: {record.error or 'no reason is recorded'}"
    return {
        "id": record.query_id,
        "epoch": epoch,
        "input": start["query"],
        "target": [str(node) for node in attempt.gold or ()],
        "messages": messages,
        "output": {
            "model": source.model,
            "choices": [{"message": last, "stop_reason": _STOPS[attempt.turns[-1].reply["finish"]]}] if last else [],
            "usage": _usage(record.usage),
            **({"error": record.error} if record.error else {}),
        },
        "scores": {name: {"value": value, "answer": answer} for name, value in (attempt.scores or {}).items()},
        "metadata": {
            **({"damaged_lines": list(attempt.damaged)} if attempt.damaged else {}),
            "ids": list(record.ids), "stop_reason": record.stop_reason, "attempt": record.attempt,
            "trajectory": record.trajectory, "cost": record.cost,
        },
        "events": [],
        "model_usage": {source.model: _usage(record.usage)},
        "started_at": iso(record.started or start["time"]),
        "completed_at": iso(record.finished or start["time"]),
        "total_time": record.times.wall,
        "working_time": record.times.working,
        "uuid": attempt.name,
        **({"error": _error(failure)} if record.is_infrastructure else {}),
        **_limit(source, record),
    }  # fmt: skip


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _limit(source: Source, record: AttemptRecord) -> dict[str, Any]:
    """The limit that an attempt ran into, if it did, with its value where the mode has one."""
    limit = record.limit or record.stop_reason
    if limit not in _LIMITS:
        return {}
    kind, setting = _LIMITS[limit]
    value = source.manifest["mode"]["limits"].get(setting)
    return {"limit": {"type": kind, "limit": value or 0, "reason": limit}}


def _messages(source: Source, attempt: SavedAttempt) -> Iterator[dict[str, Any]]:
    if attempt.system:
        yield {"role": "system", "content": attempt.system, "source": "input"}
    yield {"role": "user", "content": attempt.start["prompt"], "source": "input"}
    for turn in attempt.turns:
        for event in turn.said:
            yield {"role": "user", "content": event["text"], "source": "input"}
        yield _assistant(source, turn)
        for call in turn.calls:
            if call.result is not None:
                yield _tool(call, call.result)
    for event in attempt.left:
        yield {"role": "user", "content": event["text"], "source": "input"}


def _assistant(source: Source, turn: Turn) -> dict[str, Any]:
    reply, thought = turn.reply, reasoning(turn.reply)
    content: Any = reply["text"]
    if thought:
        content = [{"type": "reasoning", "reasoning": thought}, {"type": "text", "text": reply["text"]}]
    message = {"role": "assistant", "content": content, "source": "generate", "model": source.model}
    calls = [
        {
            "id": call.id, "function": call.name, "arguments": dict(call.arguments or {}), "type": "function",
            **({"parse_error": f"not a JSON object: {call.text[:500]}"} if call.arguments is None else {}),
        }
        for call in turn.calls
    ]  # fmt: skip
    return {**message, "tool_calls": calls} if calls else message


def _tool(call: Call, result: Mapping[str, Any]) -> dict[str, Any]:
    message = {"role": "tool", "content": result["text"], "tool_call_id": call.id, "function": call.name}
    if call.made:
        message["metadata"] = {"program_calls": list(call.made)}
    kind = result["error"]
    if kind is None:
        ended = str((result["exec"] or {}).get("termination"))
        limited = {"error": {"type": _ENDS[ended], "message": f"ended by a limit: {ended}"}} if ended in _ENDS else {}
        return {**message, **limited}
    return {**message, "error": {"type": _ERRORS.get(kind, "unknown"), "message": result["text"][:500]}}


def _usage(usage: Mapping[str, int | None]) -> dict[str, Any]:
    """Inspect counts tokens read from the cache apart from input tokens; unknown figures are 0 or left out."""
    given, made, cached = usage.get("input") or 0, usage.get("output") or 0, usage.get("cached")
    counts = {"input_tokens": given - (cached or 0), "output_tokens": made, "total_tokens": given + made}
    if cached is not None:
        counts["input_tokens_cache_read"] = cached
    if usage.get("reasoning") is not None:
        counts["reasoning_tokens"] = usage["reasoning"] or 0
    return counts
