"""One process's work on run folders: workers that take questions from all of them, and what each run keeps of it."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exporter.index import Index
from harness.accounting import Account
from harness.agent import run_attempt
from harness.answer import Parsed
from harness.attempt import Outcome, Task
from harness.budget import Spending
from harness.errors import BackboneError, EndpointUnreached, KeyRejected, QuotaExhausted, RequestRejected
from harness.events import trajectory_path
from harness.kb import TOOLS
from harness.kb.attempt import serve_graph
from harness.kb.server import FOLDER, KbServer
from harness.ledger import AgentState, AttemptRecord, fold, read_ledger
from harness.messages import AttemptKey
from harness.names import Names, resolve
from harness.one_program import ProgramLog
from harness.prompt import system_for
from harness.questions import Question
from harness.runconfig import Listener, RunConfig, RunOutcome
from harness.rundir import RunFolder
from harness.slot import NoSlot, SandboxPool, SandboxSlot
from harness.text import once, shorten
from harness.tools.ark import Selection
from harness.tools.graph import Graph
from harness.tools.kit import Toolkit, needs_graph, sandboxes_for
from harness.trajectory import TrajectoryWriter

_VARYING = re.compile(r"\b(?:req\w*_\w+|[0-9a-f-]*\d[0-9a-f.-]*)\b")
_ID_WIDTH = 60
_STOP_SECONDS = 2.0  # how long a stopped run waits for attempts to end by themselves


@dataclass(frozen=True)
class Job:
    """One attempt that is due."""

    run: Run
    question: Question
    agent: int
    attempt: int

    @property
    def key(self) -> AttemptKey:
        return AttemptKey(self.question.id, self.agent, self.attempt)


@dataclass
class _Flight:
    """An attempt under way."""

    job: Job
    account: Account
    trajectory: str


class Run:
    """One run folder at work. Its methods are called under the session's lock, but for `attempt`."""

    def __init__(self, config: RunConfig, folder: RunFolder, listener: Listener, spending: Spending) -> None:
        self.config, self.folder, self.listener = config, folder, listener
        self.flights: dict[AttemptKey, _Flight] = {}
        self.limit: str | None = None
        records = read_ledger(folder.path)
        self._replied = any(any(record.usage.values()) or not record.is_infrastructure for record in records)
        self._rejected = 0
        self._reasons: set[str] = set()
        self._states = fold(records)
        self._spending = spending
        spending.resume(records, config.cost_of)
        names = config.mode.tools
        client = config.mode.view.client
        graph = (
            Graph(config.export, Index.open(config.export, progress=once(listener.notice)))
            if client or needs_graph(names)
            else None
        )
        self._toolkit = Toolkit(names, config.mode.neighbors, graph)
        self._client = Toolkit(TOOLS, config.mode.neighbors, graph) if client else None
        self._system = system_for(config.mode, config.export.schema)
        self._resolve = _resolver(config)

    def due(self) -> list[list[Job]]:
        """The attempts to make, per question in their order."""
        found = []
        for question in self.config.questions.questions:
            agents = []
            for agent in range(self.config.mode.agents.count):
                state = self._states.setdefault((question.id, agent), AgentState(question.id, agent))
                if state.is_open(self.config.retry, anew=True):
                    agents.append(Job(self, question, agent, len(state.records)))
            found.append(agents)
        total = len(found) * self.config.mode.agents.count
        self.listener.started(total, total - sum(map(len, found)))
        return found

    def take_off(self, job: Job, account: Account) -> _Flight:
        """Note that an attempt is under way."""
        flight = _Flight(job, account, str(trajectory_path(*job.key)))
        self.flights[job.key] = flight
        return flight

    def attempt(self, flight: _Flight, pool: SandboxPool | None) -> Outcome:
        """Make the attempt."""
        config, job, path = self.config, flight.job, self.folder.path / flight.trajectory
        labels = {"run": self.folder.path.name, "attempt": f"{path.parent.name}/{path.stem}"}
        selection = Selection() if config.mode.answer.source == "selection" else None
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(TrajectoryWriter(path, self.folder.blobs))
            mounts = {}
            served: KbServer | None = None
            if self._client is not None:
                served = serve_graph(self._client.toolbox(), config.mode.output, log, flight.account)
                mounts[FOLDER] = stack.enter_context(served).folder
            slot: SandboxSlot | NoSlot = NoSlot()
            programs = ProgramLog(log, flight.account)
            if pool and config.sandboxes:
                sandboxes = sandboxes_for(config.mode.tools, config.mode.view, config.sandboxes, programs)
                slot = pool.slot(sandboxes, config.spec(labels, mounts), flight.account.queued)
                stack.callback(pool.give_back, slot)
            task = Task(
                key=job.key, query=job.question.text, mode=config.mode, nodes=config.export,
                toolbox=self._toolkit.toolbox(selection), backbone=config.backbone, window=config.window, slot=slot,
                resolve=self._resolve, system=self._system, selection=selection,
            )  # fmt: skip
            outcome = run_attempt(task, log, flight.account)
            outcome.counts |= programs.counts()
            if served is not None:
                served.stop()  # a call that a program left behind must not be told after the end
            log.write("answer", **_answer_fields(outcome))
            log.write("end", stop_reason=outcome.stop_reason, limit=outcome.limit, error=outcome.error)
            return outcome

    def land(self, flight: _Flight, outcome: Outcome) -> Job | None:
        """Ledger an attempt that has ended, once; returns the attempt that is due after it, if any."""
        if self.flights.pop(flight.job.key, None) is None:
            return None  # already recorded when the run was stopped
        record = _record(flight, outcome)
        self.folder.ledger.append(record)
        self._spending.add(record, self.config.cost_of)
        key = (record.query_id, record.agent)
        state = replace(self._states[key], records=(*self._states[key].records, record))
        self._states[key] = state
        self.listener.attempt_finished(record, flight.job.question)
        return replace(flight.job, attempt=len(state.records)) if state.is_open(self.config.retry) else None

    def is_fatal(self, outcome: Outcome, account: Account) -> bool:
        """Whether an attempt's end means that no other can fare better, so that the runs stop.

        A rejected request is one odd question where the model has replied to another. Where it has replied to none
        yet, it is the model or its settings if a second request is rejected or none is under way. So it is with an
        endpoint that was never reached, whatever it has replied in an earlier session.
        """
        if isinstance(outcome.failure, QuotaExhausted | KeyRejected):
            return True
        self._replied = self._replied or account.replied
        unreached = isinstance(outcome.failure, EndpointUnreached)
        if not unreached and (self._replied or not isinstance(outcome.failure, RequestRejected)):
            return False
        self._rejected += 1
        flights = self.flights.values()
        return not any(flight.account.replied for flight in flights) and (self._rejected > 1 or not flights)

    def explain(self, query_id: str, failure: BackboneError) -> None:
        """Say why an attempt failed, once for each reason; figures and ids in it make it no other reason."""
        reason = _VARYING.sub("#", str(failure))
        if reason not in self._reasons:
            self._reasons.add(reason)
            self.listener.notice(f"{shorten(query_id, _ID_WIDTH)} failed: {failure}")

    def outcome(self, interrupted: bool) -> RunOutcome:
        """What the run has come to."""
        last = [state.last for state in self._states.values()]
        open_ = sum(record is None or record.stop_reason == "interrupted" for record in last)
        failed = sum(record is not None and record.is_infrastructure for record in last)
        failed -= sum(record is not None and record.stop_reason == "interrupted" for record in last)
        return RunOutcome(len(last) - open_ - failed, failed, open_, interrupted, self.limit)


class Session:
    """The workers, their queue, and the sandboxes and the budget that all runs share."""

    def __init__(self, runs: Sequence[Run], spending: Spending) -> None:
        self._runs = runs
        self._spending = spending
        self._limit: str | None = None
        self._cancel = threading.Event()
        self._idle = threading.Event()
        self._lock = threading.RLock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._due = 0
        self._fatal: BaseException | None = None
        first = runs[0].config
        self._workers = first.workers
        needs_sandbox = any(run.config.sandboxes for run in runs)
        self._pool = SandboxPool(first.memory_cap) if needs_sandbox else None

    def work(self) -> bool:
        """Work everything off; whether Ctrl-C cut it short. Raises what made the runs stop."""
        for job in _interleaved([run.due() for run in self._runs]):
            self._put(job)
        threads = [
            threading.Thread(target=self._worker, name=f"worker-{number}", daemon=True)
            for number in range(min(self._workers, self._due))
        ]
        interrupted = False
        try:
            for thread in threads:
                thread.start()
            while threads and not self._idle.wait(timeout=1.0):
                pass
        except KeyboardInterrupt:
            interrupted = True
            self._cancel.set()
            self._runs[0].listener.notice("stopping: attempts in flight are recorded as interrupted")
        self._stop(threads)
        if self._fatal is not None:
            raise self._fatal
        return interrupted

    def _put(self, job: Job) -> None:
        self._due += 1
        self._jobs.put(job)

    def _stop(self, threads: list[threading.Thread]) -> None:
        """Let the workers end, record what did not, close every sandbox."""
        if self._cancel.is_set():
            for backbone in {id(run.config.backbone): run.config.backbone for run in self._runs}.values():
                getattr(backbone, "close", lambda: None)()  # ends waits for rate limits, and requests
        deadline = time.monotonic() + _STOP_SECONDS
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            for run in self._runs:
                for flight in list(run.flights.values()):
                    run.land(flight, Outcome("interrupted", error="the run was stopped"))
        if self._pool:
            self._pool.close()

    def _worker(self) -> None:
        """Takes jobs until there is none left or the runs are being stopped."""
        while (job := self._jobs.get()) is not None:
            with self._lock:
                starts = not (self._cancel.is_set() or self._limit_reached(job.run))
            if starts:
                try:
                    self._attempt(job)
                except BaseException as error:  # noqa: BLE001 - carried to the main thread, which raises it
                    self._give_up(error)
            with self._lock:
                self._due -= 1
                if self._due == 0 or self._cancel.is_set():
                    self._idle.set()

    def _limit_reached(self, run: Run) -> bool:
        """Whether a limit of the runs forbids `run` another attempt; said once."""
        if self._limit is None:
            self._limit = self._spending.reached(flight.account for r in self._runs for flight in r.flights.values())
            if self._limit is not None:
                run.listener.notice(f"{self._limit}: no attempt starts any more, those in flight finish")
        run.limit = self._limit
        return self._limit is not None

    def _attempt(self, job: Job) -> None:
        run = job.run
        with self._lock:
            flight = run.take_off(job, Account(self._cancel, run.config.cost_of))
        outcome = run.attempt(flight, self._pool)
        flight.account.stop()
        with self._lock:
            following = run.land(flight, outcome)
            if outcome.failure is not None and run.is_fatal(outcome, flight.account):
                self._give_up(outcome.failure)
                return
            if isinstance(outcome.failure, BackboneError) and outcome.stop_reason == "backbone_error":
                run.explain(job.question.id, outcome.failure)
            if following is not None and not self._cancel.is_set():
                self._put(following)

    def _give_up(self, error: BaseException) -> None:
        """Stop the runs: nothing new starts; the error is raised in the main thread."""
        with self._lock:
            self._fatal = self._fatal or error
            self._cancel.set()


def _interleaved(due: Sequence[list[list[Job]]]) -> Iterator[Job]:
    """The first question of every run, then the second of every run, and so on."""
    for number in range(max(map(len, due), default=0)):
        for run in due:
            yield from run[number] if number < len(run) else ()


def _resolver(config: RunConfig) -> Callable[[Parsed], Parsed]:
    """How an answer's values become ids: as they are, or by the names of the graph's nodes."""
    if config.mode.answer.source != "names":
        return lambda parsed: parsed
    names = Names(config.export)
    return lambda parsed: resolve(parsed, names)


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
        finished=account.finished or time.time(),
        trajectory=flight.trajectory,
        answer={"repairs": answer.repairs, "rejected": answer.rejected} if answer else {},
        counts=outcome.counts,
    )


def _answer_fields(outcome: Outcome) -> dict[str, Any]:
    answer = outcome.answer
    if answer is None:
        return {"text": None, "ids": [], "repairs": [], "rejected": []}
    return {"text": answer.text, "ids": answer.ids, "repairs": answer.repairs, "rejected": answer.rejected}
