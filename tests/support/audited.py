"""Run folders with trajectories to audit: what a run would leave, event by event, with the harness's own writers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporter import Export
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, StopReason, Times
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import load_mode
from harness.observe import Observation
from harness.questions import load_questions
from harness.rundir import open_run
from harness.trajectory import TrajectoryWriter


@dataclass(frozen=True)
class Step:
    """One turn with one call. `hidden` is the part of its output that was cut away; `clear` names earlier calls
    (by their number, from 1) that become placeholders before this turn; a `bare` result is its output alone, as of
    tools that run no command."""

    command: str = ""
    output: str = ""
    exit_code: int = 0
    hidden: str = ""
    spill: str | None = None
    clear: tuple[int, ...] = ()
    says: str = ""
    tool: str = "bash"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    made: tuple[tuple[str, bool], ...] = ()  # a program's calls of the graph's tools, and whether they failed
    termination: str = "exit"
    usage: Usage = field(default_factory=Usage)
    bare: bool = False


@dataclass(frozen=True)
class Attempt:
    """One attempt: its steps and its answer."""

    steps: Sequence[Step] = ()
    ids: tuple[int, ...] = ()
    stop: StopReason = "answered"
    agent: int = 0
    prompt: str = "Answer the question: {query}"
    system: str | None = None
    query: str | None = None
    mode: str = "files"
    tools: Sequence[str] = ("bash", "read")
    extra: Mapping[str, Any] = field(default_factory=dict)


def make_audited_run(
    path: Path,
    export: Export,
    attempts: Mapping[str, Sequence[Attempt]],
    *,
    unledgered: Sequence[str] = (),
    **manifest: Any,
) -> Path:
    """A run with these attempts; those of questions in `unledgered` are not in the ledger."""
    questions = load_questions(export, splits=("all",))
    texts = {question.id: question.text for question in questions.questions}
    fields = {
        "graph": export.name,
        "export": {
            "path": str(export.path), "digest": export.digest, "nodes": export.node_count,
            "edges": export.schema["edges"],
        },
        "mode": load_mode("files").as_dict(), "model": {"name": "m"},
        "questions": {"source": questions.source, "sha256": questions.sha256, "ids": list(texts)},
        "workers": 1, "retry": "infra", "sandbox": {"kind": "bwrap"}, "command": ["harness", "run"], "versions": {},
        "probe": [{"name": "network", "passed": True, "detail": ""}], **manifest,
    }  # fmt: skip
    with open_run(path, fields, resume=False) as folder:
        for query, tries in attempts.items():
            numbers: dict[int, int] = {}
            for one in tries:
                number = numbers.get(one.agent, 0)
                numbers[one.agent] = number + 1
                record = AttemptRecord(
                    query, one.agent, number, one.stop, one.ids, turns=len(one.steps) + 1,
                    usage={"input": 1000, "cached": 600, "output": 50, "reasoning": 20},
                    times=Times(wall=10, working=9, model=6, waiting=1, sandbox=2, harness=1),
                    trajectory=str(trajectory_path(query, one.agent, number)), **one.extra,
                )  # fmt: skip
                write_attempt(path, record, one, one.query or texts[query])
                if query not in unledgered:
                    folder.ledger.append(record)
    return path


def write_attempt(run: Path, record: AttemptRecord, attempt: Attempt, query: str) -> None:
    """Write an attempt's trajectory."""
    with TrajectoryWriter(run / record.trajectory, run / "blobs") as log:
        tools = [{"name": name, "description": "", "parameters": {}} for name in attempt.tools]
        log.write(
            "start", query_id=record.query_id, agent=record.agent, attempt=record.attempt, query=query,
            mode=attempt.mode, prompt=attempt.prompt.format(query=query), tools=tools,
            **({"system": attempt.system} if attempt.system else {}),
        )  # fmt: skip
        for turn, step in enumerate(attempt.steps, 1):
            if step.clear:
                calls = [f"c{number}" for number in step.clear]
                log.write("clear", turn=turn, call_ids=calls, tokens_before=9, tokens_after=1)
            arguments = dict(step.arguments) or {"command": step.command}
            call = ToolCall(f"c{turn}", step.tool, json.dumps(arguments))
            log.reply(turn, Reply(Entry("assistant", step.says, (call,)), "tool_calls", step.usage))
            for tool, failed in step.made:
                log.write(
                    "client_call", turn=turn, name=tool, arguments={"k": 5}, program="p.py", characters=9, seconds=0.1,
                    error=failed,
                )  # fmt: skip
            log.result(turn, call, arguments, _observation(step))
        text = f"ANSWER: {list(record.ids)}"
        log.reply(len(attempt.steps) + 1, Reply(Entry("assistant", text), "stop", Usage()))
        log.write("answer", text=text, ids=list(record.ids), repairs=[], rejected=[])
        log.write("end", stop_reason=record.stop_reason, limit=record.limit, error=record.error)


def _observation(step: Step) -> Observation:
    if step.error is not None:
        return Observation(f"[error: {step.output}]", error=step.error)
    if step.bare:
        return Observation(step.output)
    whole = (step.output + step.hidden).encode()
    ran = {
        "exit_code": step.exit_code if step.termination == "exit" else None, "termination": step.termination,
        "total_bytes": len(whole), "lines": whole.count(b"\n"), "spill": step.spill, "wall": 0.1, "cpu": 0.1,
        "memory": 1,
    }  # fmt: skip
    cut = None
    text = f"[exit code {step.exit_code}]\n{step.output}"
    if step.hidden:
        cut = {"lines": 0, "characters": len(step.hidden), "spill": step.spill, "spilled_bytes": len(whole)}
        text += f"\n[cut: {len(whole):,} bytes, 1 lines in all; the whole output is in {step.spill}]"
    return Observation(text, exec=ran, cut=cut, spill=step.spill, whole=whole)
