"""A run: every question asked by workers side by side, each attempt ledgered, retried by policy, resumable.

`execute` is the whole life of a run folder: made or recovered, the sandbox probed, the open attempts worked off.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import sandbox
from exporter import Export
from harness.accounting import Account
from harness.agent import run_attempt
from harness.answer import Parsed
from harness.attempt import Outcome, Task
from harness.errors import KeyRejected, ProbeFailed, QuotaExhausted
from harness.events import trajectory_path
from harness.ledger import AgentState, AttemptRecord, RetryPolicy, fold, read_ledger
from harness.messages import AttemptKey, Backbone, Usage
from harness.modes import Mode
from harness.names import Names, resolve
from harness.questions import Question, QuestionSet
from harness.rundir import RunFolder, open_run, versions
from harness.slot import NoSlot, SandboxPool, SandboxSlot
from harness.tools import make_toolbox
from harness.trajectory import TrajectoryWriter

_STOP_SECONDS = 2.0  # how long a stopped run waits for attempts to end by themselves


class Listener(Protocol):
    """Who is told how a run goes on. Calls come from many threads, never two at once."""

    def started(self, total: int, done: int) -> None:
        """`total` attempts are due in all, `done` of them already ended in an earlier session."""
        ...

    def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
        """An attempt ended; `record` is its line in the ledger."""
        ...

    def notice(self, text: str) -> None:
        """Something the user should know."""
        ...

    def closed(self) -> None:
        """Nothing more will come."""
        ...


@dataclass(frozen=True)
class RunConfig:
    """All that a run needs. `profile` is the model's description for the manifest (no key in it).

    `sandboxes` may be None in modes whose tools need no sandbox. `window` is the context window in tokens, None if
    unknown; `cost_of` prices one request's usage;
    `memory_cap` bounds the memory that open sandboxes really use together, bytes.
    """

    graph: str
    export: Export
    mode: Mode
    profile: dict[str, Any]
    backbone: Backbone
    sandboxes: sandbox.Backend | None
    questions: QuestionSet
    out: Path
    command: Sequence[str] = ()
    workers: int = 1
    retry: RetryPolicy = "infra"
    resume: bool = False
    window: int | None = None
    cost_of: Callable[[Usage], float | None] = lambda _: None
    memory_cap: int | None = None

    def manifest(self) -> dict[str, Any]:
        """What the run folder records of this configuration."""
        return {
            "graph": self.graph,
            "export": {
                "path": str(self.export.path.resolve()),
                "digest": self.export.digest,
                "nodes": self.export.node_count,
                "edges": self.export.schema["edges"],
                "source": self.export.manifest["source"],
                "queries": self.export.manifest["queries"],
            },
            "mode": self.mode.as_dict(),
            "model": self.profile,
            "questions": {
                "source": self.questions.source,
                "sha256": self.questions.sha256,
                "ids": [question.id for question in self.questions.questions],
            },
            "workers": self.workers,
            "retry": self.retry,
            "sandbox": self.sandboxes.describe() if self.sandboxes else {"kind": "none"},
            "command": list(self.command),
            "versions": versions(),
        }


@dataclass(frozen=True)
class RunOutcome:
    """What `execute` leaves behind: per (query, agent) how many are scored, failed for infrastructure, still open."""

    scored: int
    failed: int
    open: int
    interrupted: bool


def execute(config: RunConfig, listener: Listener) -> RunOutcome:
    """Run or resume; returns when every due attempt has ended, or after Ctrl-C with the state saved.

    Raises UserError (the folder), ProbeFailed, QuotaExhausted, KeyRejected, SandboxUnavailable.
    """
    with open_run(config.out, config.manifest(), resume=config.resume) as folder:
        for sentence in folder.recover():
            listener.notice(sentence)
        if config.sandboxes is not None:
            listener.notice(f"probing the isolation of the {config.sandboxes.kind} sandbox")
            _probe(config, config.sandboxes, folder)
        session = _Session(config, folder, listener)
        try:
            return session.run()
        finally:
            listener.closed()


def _probe(config: RunConfig, backend: sandbox.Backend, folder: RunFolder) -> None:
    """Try the sandbox's isolation before the first question; the results go into the manifest."""
    canary = config.export.manifest.get("canary")
    results = sandbox.probe(backend, _spec(config, {"run": folder.path.name}), [canary] if canary else [])
    folder.update_manifest(probe=[vars(result) for result in results], probed=time.time())
    failed = [result for result in results if not result.passed]
    if failed:
        what = "; ".join(f"{result.name}: {result.detail}" for result in failed)
        raise ProbeFailed(f"the {backend.kind} sandbox does not isolate: {what}", "see `harness doctor`")


def _spec(config: RunConfig, labels: dict[str, str]) -> sandbox.Spec:
    return sandbox.Spec(graph=config.export.files, limits=config.mode.sandbox.limits(), labels=labels)


def _resolver(config: RunConfig) -> Callable[[Parsed], Parsed]:
    """How an answer's values become ids: as they are, or by the names of the graph's nodes."""
    if config.mode.answer.source != "names":
        return lambda parsed: parsed
    names = Names(config.export)
    return lambda parsed: resolve(parsed, names)


@dataclass(frozen=True)
class _Job:
    question: Question
    agent: int
    attempt: int

    @property
    def key(self) -> AttemptKey:
        return AttemptKey(self.question.id, self.agent, self.attempt)


@dataclass
class _Flight:
    """An attempt under way."""

    job: _Job
    account: Account
    trajectory: str


@dataclass
class _Session:
    """One process's work on a run folder."""

    config: RunConfig
    folder: RunFolder
    listener: Listener
    cancel: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    jobs: queue.SimpleQueue[_Job | None] = field(default_factory=queue.SimpleQueue)
    flights: dict[AttemptKey, _Flight] = field(default_factory=dict)
    states: dict[tuple[str, int], AgentState] = field(default_factory=dict)
    fatal: BaseException | None = None
    due: int = 0

    def run(self) -> RunOutcome:
        config = self.config
        self.toolbox = make_toolbox(config.mode.tools)
        self.resolve = _resolver(config)
        self.states = fold(read_ledger(self.folder.path))
        total = len(config.questions.questions) * config.mode.agents.count
        for question in config.questions.questions:
            for agent in range(config.mode.agents.count):
                state = self.states.setdefault((question.id, agent), AgentState(question.id, agent))
                if state.is_open(config.retry):
                    self._put(_Job(question, agent, len(state.records)))
        self.listener.started(total, total - self.due)
        self.pool = SandboxPool(config.sandboxes, config.memory_cap) if config.sandboxes else None
        idle = threading.Event()
        threads = [
            threading.Thread(target=self._work, args=(idle,), name=f"worker-{number}", daemon=True)
            for number in range(min(config.workers, self.due))
        ]
        interrupted = False
        try:
            for thread in threads:
                thread.start()
            while threads and not idle.wait(timeout=1.0):
                pass
        except KeyboardInterrupt:
            interrupted = True
            self.cancel.set()
            self.listener.notice("stopping: attempts in flight are recorded as interrupted")
        self._stop(threads)
        if self.fatal is not None:
            raise self.fatal
        return self._outcome(interrupted)

    def _put(self, job: _Job) -> None:
        self.due += 1
        self.jobs.put(job)

    def _stop(self, threads: list[threading.Thread]) -> None:
        """Let the workers end, record what did not, close every sandbox."""
        if self.cancel.is_set():
            getattr(self.config.backbone, "close", lambda: None)()  # ends waits for rate limits, and requests
        deadline = time.monotonic() + _STOP_SECONDS
        for _ in threads:
            self.jobs.put(None)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self.lock:
            for flight in list(self.flights.values()):
                self._land(flight, Outcome("interrupted", error="the run was stopped"))
        if self.pool:
            self.pool.close()

    def _outcome(self, interrupted: bool) -> RunOutcome:
        last = [state.last for state in self.states.values()]
        open_ = sum(record is None or record.stop_reason == "interrupted" for record in last)
        failed = sum(record is not None and record.is_infrastructure for record in last)
        failed -= sum(record is not None and record.stop_reason == "interrupted" for record in last)
        return RunOutcome(len(last) - open_ - failed, failed, open_, interrupted)

    def _work(self, idle: threading.Event) -> None:
        """A worker: takes jobs until there is none left or the run is being stopped."""
        while (job := self.jobs.get()) is not None:
            if not self.cancel.is_set():
                try:
                    self._attempt(job)
                except BaseException as error:  # noqa: BLE001 - carried to the main thread, which raises it
                    self._give_up(error)
            with self.lock:
                self.due -= 1
                if self.due == 0 or self.cancel.is_set():
                    idle.set()

    def _attempt(self, job: _Job) -> None:
        config = self.config
        path = trajectory_path(*job.key)
        account = Account(self.cancel, config.cost_of)
        flight = _Flight(job, account, str(path))
        with self.lock:
            self.flights[job.key] = flight
        labels = {"run": self.folder.path.name, "attempt": path.parent.name + "/" + path.stem}
        slot = self.pool.slot(_spec(config, labels), account.queued) if self.pool else NoSlot()
        try:
            with TrajectoryWriter(self.folder.path / path, self.folder.blobs) as log:
                task = Task(
                    key=job.key, query=job.question.text, mode=config.mode, nodes=config.export, toolbox=self.toolbox,
                    backbone=config.backbone, window=config.window, slot=slot, resolve=self.resolve,
                )  # fmt: skip
                outcome = run_attempt(task, log, account)
                log.write("answer", **_answer_fields(outcome))
                log.write("end", stop_reason=outcome.stop_reason, limit=outcome.limit, error=outcome.error)
        finally:
            if self.pool and isinstance(slot, SandboxSlot):
                self.pool.give_back(slot)
        self._land(flight, outcome)

    def _land(self, flight: _Flight, outcome: Outcome) -> None:
        """Ledger an attempt that has ended, once, and put its question back if another attempt is due."""
        with self.lock:
            if self.flights.pop(flight.job.key, None) is None:
                return  # already recorded when the run was stopped
            record = _record(flight, outcome)
            self.folder.ledger.append(record)
            key = (record.query_id, record.agent)
            state = replace(self.states[key], records=(*self.states[key].records, record))
            self.states[key] = state
            self.listener.attempt_finished(record, flight.job.question)
            if isinstance(outcome.failure, QuotaExhausted | KeyRejected):
                self._give_up(outcome.failure)
            elif state.is_open(self.config.retry) and not self.cancel.is_set():
                self._put(_Job(flight.job.question, record.agent, len(state.records)))

    def _give_up(self, error: BaseException) -> None:
        """Stop the run: nothing new starts; the error is raised in the main thread."""
        with self.lock:
            self.fatal = self.fatal or error
            self.cancel.set()


def _record(flight: _Flight, outcome: Outcome) -> AttemptRecord:
    account, answer = flight.account, outcome.answer
    return AttemptRecord(
        *flight.job.key,
        stop_reason=outcome.stop_reason,
        ids=answer.ids if answer else (),
        limit=outcome.limit,
        error=outcome.error,
        turns=account.turn,
        usage=account.usage(),
        cost=account.cost,
        times=account.times(),
        started=account.started,
        finished=time.time(),
        trajectory=flight.trajectory,
        answer={"repairs": answer.repairs, "rejected": answer.rejected} if answer else {},
        counts=outcome.counts,
    )


def _answer_fields(outcome: Outcome) -> dict[str, Any]:
    answer = outcome.answer
    if answer is None:
        return {"text": None, "ids": [], "repairs": [], "rejected": []}
    return {"text": answer.text, "ids": answer.ids, "repairs": answer.repairs, "rejected": answer.rejected}
