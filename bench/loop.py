"""What the harness itself costs: CPU per turn late in a long attempt, wall time of many attempts at once, memory.

    python -m bench.loop cpu [--attempts 5]            200 turns with results of 20,000 characters
    python -m bench.loop throughput [--questions 64]   10 turns, half as many workers, a model that answers after 0.5 s
    python -m bench.loop memory [--questions 500]

The model is a loopback endpoint in another process, the sandbox's commands are other processes too, so CPU time is the
harness's own, the SDK included. `--sandbox docker` needs a daemon.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

import sandbox
from exporter import Export, biogo_sources, export_tables
from harness.backbones.http import HttpBackbone
from harness.backbones.profiles import Profile
from harness.ledger import AttemptRecord
from harness.messages import Reply, Request
from harness.modes import load_mode
from harness.questions import Question, QuestionSet
from harness.runconfig import RunConfig
from harness.runner import execute
from harness.settings import parse_assignments
from tests.support.server import Behaviour, Received, ScriptedServer, bash, say

BYTES_PER_TOKEN = 4


class Quiet:
    """A listener that says nothing, and remembers when memory was measured."""

    def __init__(self) -> None:
        self.finished = 0
        self.memory: list[int] = []

    def started(self, total: int, done: int) -> None: ...

    def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
        assert record.stop_reason == "answered", (question.id, record.stop_reason, record.error)
        self.finished += 1
        self.memory.append(resident())

    def notice(self, text: str) -> None: ...

    def closed(self) -> None: ...


class Clocked:
    """A backbone that notes the CPU time from each request to the next, milliseconds, and the request's size, kB."""

    name = "clocked"

    def __init__(self, inner: HttpBackbone) -> None:
        self.inner, self.spent, self.sizes = inner, list[float](), list[int]()
        self._since: float | None = None

    def complete(self, request: Request) -> Reply:
        if self._since is not None:
            self.spent.append(1000 * (time.process_time() - self._since))
        self.sizes.append(self.inner.body(request).length // 1000)
        self._since = time.process_time()
        return self.inner.complete(request)


def serve(turns: int, delay: float, command: str) -> None:
    """The endpoint: usage follows the size of the request, as a real provider's does. Ends with standard input."""

    def script(received: Received) -> Behaviour:
        usage = {"prompt_tokens": len(received.raw) // BYTES_PER_TOKEN, "completion_tokens": 20}
        if received.turn < turns:
            return replace(bash(command, usage=usage), delay=delay)
        return say("ANSWER: [0]", usage=usage, delay=delay)

    server = ScriptedServer(script, keep=False).start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


@contextmanager
def endpoint(turns: int, delay: float, command: str) -> Iterator[str]:
    """`serve` in a process of its own; its URL."""
    arguments = [sys.executable, "-m", "bench.loop", "serve", str(turns), str(delay), command]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.communicate()


@contextmanager
def config(kind: str, url: str, questions: int, workers: int, *settings: str) -> Iterator[RunConfig]:
    """A run over the sample graph with made-up questions."""
    with tempfile.TemporaryDirectory() as folder:
        sources = biogo_sources()
        export: Export = export_tables(sources.nodes, sources.edges, Path(folder) / "biogo", name="biogo")
        chosen = tuple(Question(f"q{n}", f"Question number {n}?", (0,), "test") for n in range(questions))
        yield RunConfig(
            graph="biogo",
            export=export,
            mode=load_mode("files", parse_assignments(settings)),
            profile={"name": "bench"},
            backbone=HttpBackbone(Profile("bench", "m", endpoint=url, key_variable=None)),
            sandboxes=sandbox.choose(kind),
            questions=QuestionSet(chosen, "bench", "0" * 64),
            out=Path(folder) / "run",
            workers=workers,
            window=272_000,
        )


def cpu(kind: str, attempts: int) -> None:
    """CPU per turn of long attempts: all turns, and early against late ones."""
    command = "head -c 20000 /dev/urandom | base64 -w 99 | head -c 19900"
    spent: list[list[float]] = []
    sizes: list[list[int]] = []
    for _ in range(attempts):
        with endpoint(201, 0.0, command) as url, config(kind, url, 1, 1, "limits.turns=300") as run:
            clocked = Clocked(run.backbone)  # type: ignore[arg-type]
            execute(replace(run, backbone=clocked), Quiet())
        spent.append(clocked.spent)
        sizes.append(clocked.sizes)
    print(f"CPU per turn, {kind}, results of 20,000 characters, window of 272,000 tokens, {len(spent)} attempts")
    for first, last in ((1, 200), (40, 50), (190, 200)):
        each = [mean(attempt[first - 1 : last]) for attempt in spent]
        size = mean([mean(attempt[first - 1 : last]) for attempt in sizes])
        print(f"  turns {first:3}-{last}  median {median(each):.2f} ms ({min(each):.2f} to {max(each):.2f})", end="")
        print(f"  requests of {size:.0f} kB")
    ratios = [mean(attempt[189:200]) / mean(attempt[39:50]) for attempt in spent]
    print(f"  late / early: median {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def throughput(kind: str, questions: int) -> None:
    """Wall time of all questions against the ideal."""
    workers = questions // 2
    with endpoint(10, 0.5, "true") as url, config(kind, url, questions, workers) as run:
        listener = Quiet()
        start = time.monotonic()
        execute(run, listener)
        wall = time.monotonic() - start
    ideal = questions * 10 * 0.5 / workers
    print(f"{questions} questions of 10 turns, {workers} workers, {kind}: {wall:.1f} s, ideal {ideal:.0f} s,", end="")
    print(f" ratio {wall / ideal:.2f}")


def memory(kind: str, questions: int) -> None:
    """Resident memory over all questions."""
    fifth = questions // 5
    command = "head -c 20000 /dev/urandom | base64 -w 99 | head -c 19900"
    with endpoint(4, 0.0, command) as url, config(kind, url, questions, 8) as run:
        listener = Quiet()
        execute(run, listener)
    early, late = (listener.memory[n] / 2**20 for n in (fifth - 1, -1))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{questions} questions, {kind}: {early:.0f} MiB after {fifth}, {late:.0f} MiB at the end, peak {peak:.0f} MiB"
    )
    print(f"  ratio {late / early:.2f}, threads left {threading.active_count()}")


def resident() -> int:
    """Resident memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cpu", "throughput", "memory", "serve"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--sandbox", default="bwrap")
    parser.add_argument("--attempts", type=int, default=5)
    parser.add_argument("--questions", type=int, help="at least 5")
    options = parser.parse_args()
    if options.what == "serve":
        serve(int(options.rest[0]), float(options.rest[1]), options.rest[2])
    else:
        work, count = {
            "cpu": (cpu, options.attempts),
            "throughput": (throughput, options.questions or 64),
            "memory": (memory, options.questions or 500),
        }[options.what]
        work(options.sandbox, count)


if __name__ == "__main__":
    main()
