"""How fast `harness audit` goes through trajectories, beside only parsing their JSON in the same run.

Trajectories are generated in the sizes of real ones: 20 turns, about 200 kB, a third of the calls Python (the programs
that the classifier is tested with), the others rg, cat and sed, their outputs node records and edge lines.

    python -m bench.audit [--trajectories 400] [--processes 2]
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from exporter import Export, export_tables
from harness.audit import audit_run
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, Ledger, Times
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import load_mode
from harness.observe import Observation
from harness.questions import load_questions
from harness.rundir import open_run
from harness.trajectory import TrajectoryWriter
from tests.support.labelled import sessions

TURNS, BYTES, NODES = 20, 200_000, 100_000
FULL = 7_108  # questions of STaRK's three test sets
WORDS = ["gene", "protein", "drug", "disease", "pathway", "kinase", "receptor", "binding", "of", "cell", "membrane"]
SEARCHES = [
    "rg -i -N '{} {}' /graph/nodes | head -40",
    "rg -N '^{0}\t' /graph/edges/03.tsv",
    "sed -n '{0},+9p' /graph/nodes/0001.jsonl",
]


def make_graph(folder: Path, questions: int) -> Export:
    """A graph with NODES nodes and as many questions as asked for."""
    nodes, edges, queries = folder / "nodes.jsonl", folder / "edges.tsv", folder / "queries.jsonl"
    rows = ({"id": f"n{i}", "type": "thing", "name": f"thing {i}"} for i in range(NODES))
    nodes.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    edges.write_text("source\trelation\ttarget\nn0\tnext\tn1\n")
    asked = (
        {"id": f"q{i}", "query": f"what about {i}?", "answer_ids": [f"n{i}"], "split": "test"} for i in range(questions)
    )
    queries.write_bytes(b"\n".join(map(orjson.dumps, asked)))
    return export_tables(nodes, edges, folder / "export", queries=queries)


def make_run(folder: Path, export: Export) -> Path:
    """A run with one attempt at each question, written by the harness's own writers."""
    questions = load_questions(export)
    manifest = {
        "graph": "bench", "export": {"path": str(export.path), "digest": export.digest, "nodes": NODES, "edges": 1},
        "mode": load_mode("files").as_dict(), "model": {"name": "bench"}, "workers": 1, "retry": "infra",
        "questions": {
            "source": questions.source, "sha256": questions.sha256, "ids": [q.id for q in questions.questions],
        },
        "sandbox": {"kind": "bwrap"}, "command": [], "versions": {}, "probe": [],
    }  # fmt: skip
    python = [call.command for calls in sessions().values() for call in calls if "python3" in call.command]
    with open_run(folder, manifest, resume=False):
        ledger = Ledger(folder)
        for number, question in enumerate(questions.questions):
            rng = random.Random(number)
            record = AttemptRecord(
                question.id, 0, 0, "answered", tuple(rng.sample(range(NODES), 10)), turns=TURNS,
                usage={"input": 9, "cached": 5, "output": 2, "reasoning": None}, times=Times(wall=1.0, working=1.0),
                trajectory=str(trajectory_path(question.id, 0, 0)),
            )  # fmt: skip
            _write(folder, record, question.text, python, rng)
            ledger.append(record)
    return folder


def _write(run: Path, record: AttemptRecord, query: str, python: list[str], rng: random.Random) -> None:
    usage = Usage(9_000, 8_000, 200, None)
    with TrajectoryWriter(run / record.trajectory, run / "blobs") as log:
        prompt = f"Answer: {query}" + "x" * 2_000
        log.write(
            "start", query_id=record.query_id, agent=0, attempt=0, query=query, mode="files", prompt=prompt, tools=[]
        )
        for turn in range(1, TURNS):
            command = rng.choice(python) if turn % 3 == 0 else rng.choice(SEARCHES).format(*rng.choices(WORDS, k=2))
            command += f"\n# {rng.random()}"  # no two attempts run the same
            call = ToolCall(f"c{turn}", "bash", orjson.dumps({"command": command}).decode())
            log.write(
                "request", turn=turn, entries=2 * turn, bytes=9_000, tokens_estimate=3_000, cleared=[], digest="0" * 64
            )
            log.reply(
                turn, Reply(Entry("assistant", "I look.", (call,), raw={"content": "I look."}), "tool_calls", usage)
            )
            ran = {"exit_code": 0, "termination": "exit", "total_bytes": 9, "lines": 1, "spill": None, "wall": 0.1,
                   "cpu": 0.1, "memory": 9}  # fmt: skip
            seen = Observation("[exit code 0]\n" + _output(rng, BYTES // TURNS - 900), exec=ran)
            log.result(turn, call, {"command": command}, seen)
        log.write("answer", text="ANSWER", ids=list(record.ids), repairs=[], rejected=[])
        log.write("end", stop_reason="answered", limit=None, error=None)


def _output(rng: random.Random, size: int) -> str:
    parts: list[str] = []
    while size > 0:
        node = rng.randrange(NODES)
        if rng.random() < 0.5:
            text = " ".join(rng.choices(WORDS, k=30))
            parts.append(
                f'{{"node_id":{node},"node_type":"thing","name":"{text[:40]}","attributes":{{"abstract":"{text}"}}}}'
            )
        else:
            parts += [f"{node}\t{rng.randrange(NODES)}" for _ in range(20)]
        size -= len(parts[-1]) + 1 if parts[-1][0] == "{" else 260
    return "\n".join(parts)


def read_plain(run: Path) -> int:
    """Parse every line of every trajectory and nothing else; the bytes read."""
    total = 0
    for path in sorted((run / "trajectories").glob("*/*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                orjson.loads(line)
                total += len(line)
    return total


def peak_memory(run: Path) -> int:
    """Peak memory in bytes of a process that audits the run."""
    code = (
        "import sys; from pathlib import Path; from harness.audit import audit_run;"
        "audit_run(Path(sys.argv[1]), processes=1); print(Path('/proc/self/status').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], check=True, capture_output=True, text=True)
    return next(int(line.split()[1]) * 1024 for line in done.stdout.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Print rates, the time for a whole STaRK test, and memory for a quarter and for all of the trajectories."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trajectories", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = {}
        for count in (arguments.trajectories // 4, arguments.trajectories):
            (folder / f"graph{count}").mkdir()
            runs[count] = make_run(folder / f"run{count}", make_graph(folder / f"graph{count}", count))
        run = runs[arguments.trajectories]
        start = time.perf_counter()
        size = read_plain(run)
        plain = time.perf_counter() - start
        count = arguments.trajectories
        print(f"{count} trajectories, {size / 1e6:.1f} MB, {size / count / 1e3:.0f} kB each")
        print(f"parsing alone: {size / plain / 1e6:.0f} MB/s")
        for processes in sorted({1, arguments.processes}):
            start, spent = time.perf_counter(), _cpu()
            audit_run(run, processes=processes)
            wall, cpu = time.perf_counter() - start, _cpu() - spent
            print(f"audit, processes: {processes}: {size / wall / 1e6:.1f} MB/s, {wall / plain:.0f} times the parsing")
            print(f"  {FULL:,} trajectories: {wall / count * FULL:.0f} s, {cpu / count * FULL:.0f} s of CPU time")
        for count, one in runs.items():
            print(f"peak memory for {count} trajectories: {peak_memory(one) / 1e6:.0f} MB")


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
