"""A small graph and run folders on it, written by hand in the formats of the contract."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporter import Export, export_tables
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, Ledger, Times
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import load_mode
from harness.observe import Observation
from harness.questions import QuestionSet, load_questions
from harness.trajectory import TrajectoryWriter

HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold]x[/bold]\u202e"  # what would drive a terminal

NODES = [
    {"id": f"X:{number}", "type": "paper" if number % 2 == 0 else "author", "name": f"node {number}"}
    for number in range(60)
]
EDGES = "source\trelation\ttarget\n" + "".join(f"X:{n}\twrites\tX:{n - 1}\n" for n in range(1, 60, 2))
QUESTIONS = [
    {"id": "q1", "query": "Which papers are first?", "answer_ids": ["X:0", "X:2"], "split": "test"},
    {"id": "q2", "query": "Which paper is fourth?", "answer_ids": ["X:4"], "split": "test"},
    {"id": "q3", "query": "Which paper is fifth?", "answer_ids": ["X:6"], "split": "test"},
    {"id": "q4", "query": "Which paper is sixth?", "answer_ids": ["X:8"], "split": "train"},
    {"id": "q5", "query": "Which paper did nobody label?", "split": "val"},
]


def jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_export(folder: Path, questions: Sequence[dict[str, Any]] = QUESTIONS, name: str = "small") -> Export:
    """Export the small graph into `folder/<name>`: 60 nodes, the even ones papers and the only candidates."""
    source = folder / f"{name}-source"
    source.mkdir(parents=True)
    nodes = jsonl(source / "nodes.jsonl", NODES)
    edges = source / "edges.tsv"
    edges.write_text(EDGES, encoding="utf-8")
    queries = jsonl(source / "queries.jsonl", questions) if questions else None
    return export_tables(nodes, edges, folder / name, queries=queries, candidates=["paper"])


def attempt(query_id: str, stop_reason: str = "answered", ids: Sequence[int] = (), **fields: Any) -> AttemptRecord:
    """A line of the ledger with plausible figures."""
    values: dict[str, Any] = {
        "agent": 0,
        "attempt": 0,
        "turns": 4,
        "usage": {"input": 1000, "cached": 400, "output": 100, "reasoning": None},
        "cost": 0.01,
        "times": Times(wall=10.0, working=8.0, model=6.0, waiting=2.0, sandbox=1.5, harness=0.5),
        **fields,
    }
    path = str(trajectory_path(query_id, values["agent"], values["attempt"]))
    return AttemptRecord(query_id, stop_reason=stop_reason, ids=tuple(ids), trajectory=path, **values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class SavedRun:
    """A run folder and the export it was made on."""

    path: Path
    export: Export


def make_run(
    path: Path, export: Export, records: Sequence[AttemptRecord], questions: QuestionSet | None = None
) -> SavedRun:
    """Write the manifest and the ledger of a run of mode files over `questions` (default: all of the export's)."""
    chosen = questions or load_questions(export, splits=["all"])
    path.mkdir(parents=True)
    manifest = {
        "schema_version": 1,
        "graph": export.name,
        "export": {"path": str(export.path), "digest": export.digest, "nodes": export.node_count, "edges": 30},
        "mode": load_mode("files").as_dict(),
        "model": {"name": "tester", "model": "tester-1"},
        "questions": {
            "source": chosen.source,
            "sha256": chosen.sha256,
            "ids": [question.id for question in chosen.questions],
        },
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    ledger = Ledger(path)
    for record in records:
        ledger.append(record)
    return SavedRun(path, export)


def write_trajectory(run: Path) -> None:
    """The trajectory of q1's first attempt: two turns, a hostile output, a cut, a clearing, a rejected id."""
    call = ToolCall("c1", "bash", json.dumps({"command": f"for n in 1 2; do echo {HOSTILE}; done", "timeout": 5}))
    output = "\n".join(f"line {number}" for number in range(100)) + "\n" + HOSTILE + "x" * 900
    cut = {"lines": 1, "characters": 5000, "spill": "outputs/001.txt", "spilled_bytes": 7000}
    ran = {
        "exit_code": 0, "total_bytes": 7000, "lines": 101, "spill": None, "termination": "exit", "wall": 1.5,
        "cpu": 1.0, "memory": 2**20,
    }  # fmt: skip
    seen = Observation(f"[exit code 0]\n{output}", exec=ran, cut=cut, spill="outputs/001.txt", whole=b"all of it")
    usage = Usage(1000, 400, 50, None)
    with TrajectoryWriter(run / trajectory_path("q1", 0, 0), run / "blobs") as log:
        log.write(
            "start", query_id="q1", agent=0, attempt=0, query="Which papers are first?", mode="files",
            prompt="\n".join(f"prompt p{number}" for number in range(40)),
            tools=[{"name": "bash", "description": "", "parameters": {}}],
        )  # fmt: skip
        request = {"entries": 1, "bytes": 900, "tokens_estimate": 300, "cleared": [], "digest": "0" * 64}
        log.write("request", turn=1, **request)
        log.reply(1, Reply(Entry("assistant", f"I look. {HOSTILE}", (call,)), "tool_calls", usage, latency=2.0))
        log.result(1, call, json.loads(call.arguments), seen)
        log.write("clear", turn=2, call_ids=["c1"], tokens_before=9000, tokens_after=400)
        log.write("request", turn=2, **{**request, "cleared": ["c1"]})
        log.write("notice", turn=2, text="5 turns are left")
        log.reply(2, Reply(Entry("assistant", "ANSWER: [0, 30]"), "stop", usage, waited=3.0, latency=1.0))
        rejected = [{"value": "99", "why": "unknown"}]
        log.write("answer", text="ANSWER: [0, 30]", ids=[0, 30], repairs=["ids with names"], rejected=rejected)
        log.write("end", stop_reason="answered", limit=None, error=None)
