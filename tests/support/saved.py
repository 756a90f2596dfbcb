"""Run folders made with the harness's own writers: what a run would leave, without running anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporter import Export, export_tables
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, StopReason, Times
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import load_mode
from harness.observe import Observation
from harness.questions import load_questions
from harness.rundir import open_run
from harness.schemas import validator
from harness.trajectory import TrajectoryWriter

NODES = 60  # all candidates but the last ten


@dataclass(frozen=True)
class Ask:
    """A question of a test graph; `gold` holds node ids."""

    id: str
    gold: tuple[int, ...]
    split: str = "test"
    query: str = ""


@dataclass(frozen=True)
class Try:
    """One attempt as the ledger will have it. `calls` are names of tools, each called once in its own turn."""

    ids: tuple[int, ...] = ()
    stop: StopReason = "answered"
    agent: int = 0
    turns: int = 3
    cost: float | None = 0.01
    tokens: tuple[int, int] | None = (1000, 100)
    seconds: float = 10.0
    calls: tuple[str, ...] = ()
    client: tuple[str, ...] = ()  # graph tools that a program called, in the last turn with a call
    extra: Mapping[str, Any] = field(default_factory=dict)


def make_export(folder: Path, name: str, questions: Sequence[Ask]) -> Export:
    """A graph of NODES nodes in a line, with these questions."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = ["thing"] * (NODES - 10) + ["other"] * 10
    lines = [json.dumps({"id": f"{name}:{i}", "type": kind, "name": f"node {i}"}) for i, kind in enumerate(kinds)]
    (folder / "nodes.jsonl").write_text("\n".join(lines))
    edges = [f"{name}:{i}\tnext\t{name}:{i + 1}" for i in range(NODES - 1)]
    (folder / "edges.tsv").write_text("\n".join(["source\trelation\ttarget", *edges]))
    rows = [
        {"id": ask.id, "query": ask.query or f"what about {ask.id}?", "split": ask.split,
         "answer_ids": [f"{name}:{node}" for node in ask.gold]} for ask in questions
    ]  # fmt: skip
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return export_tables(
        folder / "nodes.jsonl", folder / "edges.tsv", folder / "export", queries=folder / "queries.jsonl",
        candidates=["thing"], name=name,
    )  # fmt: skip


def make_run(
    path: Path,
    export: Export,
    attempts: Mapping[str, Sequence[Try] | Try],
    *,
    mode: str = "files",
    model: str = "m",
    set_mode: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> Path:
    """A run over all questions of the export; those without attempts stay open. `mode` is only its name."""
    questions = load_questions(export, splits=("all",))
    table = {**load_mode("files").as_dict(), "name": mode, **(set_mode or {})}
    fields = {
        "graph": export.name,
        "export": {
            "path": str(export.path), "digest": export.digest, "nodes": export.node_count,
            "edges": export.schema["edges"],
        },
        "mode": table,
        "model": {"name": model},
        "questions": {
            "source": questions.source, "sha256": questions.sha256, "ids": [q.id for q in questions.questions],
        },
        "workers": 1, "retry": "infra", "sandbox": {"kind": "bwrap"}, "command": ["harness", "run"], "versions": {},
        **manifest,
    }  # fmt: skip
    with open_run(path, fields, resume=False) as folder:
        validator("manifest").validate(folder.manifest)
        for query, tries in attempts.items():
            numbers: dict[int, int] = {}
            for one in [tries] if isinstance(tries, Try) else tries:
                number = numbers.get(one.agent, 0)
                numbers[one.agent] = number + 1
                record = _record(query, number, one)
                validator("attempt").validate(json.loads(record.as_line()))
                _write_trajectory(path, record, one)
                folder.ledger.append(record)
    return path


def _record(query: str, number: int, one: Try) -> AttemptRecord:
    usage: dict[str, int | None] = {}
    if one.tokens is not None:
        usage = {"input": one.tokens[0], "cached": 0, "output": one.tokens[1], "reasoning": None}
    times = Times(wall=one.seconds + 2, working=one.seconds, model=one.seconds - 1, waiting=2.0, sandbox=1.0)
    started = 1_700_000_000.0
    return AttemptRecord(
        query, one.agent, number, one.stop, one.ids, turns=one.turns, usage=usage, cost=one.cost, times=times,
        started=started, finished=started + times.wall, trajectory=str(trajectory_path(query, one.agent, number)),
        **{"counts": {"calls": len(one.calls)} if one.calls else {}, **one.extra},
    )  # fmt: skip


def _write_trajectory(run: Path, record: AttemptRecord, one: Try) -> None:
    with TrajectoryWriter(run / record.trajectory, run / "blobs") as log:
        log.write(
            "start", query_id=record.query_id, agent=record.agent, attempt=record.attempt, query="?", mode="files",
            prompt="?", tools=[],
        )  # fmt: skip
        for turn, name in enumerate(one.calls, 1):
            call = ToolCall(f"c{turn}", name, "{}")
            log.reply(turn, Reply(Entry("assistant", "", calls=(call,)), "tool_calls", Usage(1, 0, 1, None)))
            for tool in one.client if turn == len(one.calls) else ():
                log.write(
                    "client_call", turn=turn, name=tool, arguments={}, program="p.py", characters=9, seconds=0.1,
                    error=False,
                )  # fmt: skip
            log.result(turn, call, {}, Observation("seen"))
        log.write("answer", text=None, ids=list(record.ids), repairs=[], rejected=[])
        log.write("end", stop_reason=record.stop_reason, limit=record.limit, error=record.error)


def tree_digest(folder: Path) -> str:
    """sha256 over all files below a folder: to see that nothing was changed."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    parts = (f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in found)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
