"""A saved run's commands run again, each attempt in a fresh sandbox over the same export, and compared.

What is compared is what the model saw, byte for byte. Recorded commands are as hostile as they were: they run nowhere
but in the sandbox. What has been replayed is kept in the run folder, so a replay that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from exporter import Export
from exporter.index import Index
from harness.errors import UserError
from harness.events import Reading
from harness.kb import TOOLS
from harness.kb.attempt import answers
from harness.kb.server import FOLDER, KbServer
from harness.ledger import read_ledger
from harness.messages import ToolCall
from harness.modes import Neighbors, Output, View
from harness.modes import Sandbox as SandboxSettings
from harness.observe import Observation
from harness.replay_causes import DAMAGED, explain
from harness.runfiles import read_manifest, recorded_export
from harness.settings import build
from harness.setup import sandbox_spec
from harness.spill import Spills
from harness.text import once
from harness.tools import Toolbox, ToolContext
from harness.tools.graph import Graph
from harness.tools.kit import Toolkit, make_toolbox, needs_sandbox, sandboxes_for
from sandbox import Backend, Sandbox, SandboxError

SCHEMA_VERSION = 1
REPLAYS = "replays"  # in the run folder: one file for each kind of sandbox
_EXCERPT = 160  # characters of either text from where they differ
_NOT_RUN = ("unknown_tool", "malformed_arguments", "invalid_arguments", "not_executed")
_NO_LIMIT = 1e9  # seconds; a mode's own limits on a call still hold


@dataclass(frozen=True)
class Difference:
    """A command whose result was another one. `cause` is one of `replay_causes.CAUSES`, None if none is known.

    `recorded` and `replayed` are excerpts from `position`, the first character that differs.
    """

    file: str
    line: int
    turn: int
    tool: str
    command: str
    cause: str | None
    position: int
    recorded: str
    replayed: str


@dataclass(frozen=True)
class AttemptReplay:
    """One attempt replayed. `sha256` is its trajectory's; `error` says why it could not be replayed to the end."""

    file: str
    sha256: str
    commands: int
    matched: int
    differences: tuple[Difference, ...] = ()
    error: str | None = None
    damaged: tuple[int, ...] = ()  # lines of the trajectory that can't be read: their commands were not run again

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> AttemptReplay:
        """Read a line back. Raises TypeError, KeyError for one that is none."""
        differences = tuple(Difference(**difference) for difference in table["differences"])
        damaged = tuple(table.get("damaged", ()))
        parts = (table["file"], table["sha256"], table["commands"], table["matched"], differences, table["error"])
        return cls(*parts, damaged)


@dataclass
class RunReplay:
    """All attempts of a run that were replayed."""

    run: str
    sandbox: str
    python: Mapping[str, str | None] = field(default_factory=dict)  # the sandbox's version: "recorded", "replayed"
    attempts: list[AttemptReplay] = field(default_factory=list)

    @property
    def commands(self) -> int:
        """Commands that were run again."""
        return sum(attempt.commands for attempt in self.attempts)

    @property
    def matched(self) -> int:
        """Commands whose result was the same, byte for byte."""
        return sum(attempt.matched for attempt in self.attempts)

    @property
    def differences(self) -> list[Difference]:
        """The others."""
        return [difference for attempt in self.attempts for difference in attempt.differences]

    @property
    def explained(self) -> int:
        """Differences with a known cause."""
        return sum(difference.cause is not None for difference in self.differences)

    @property
    def errors(self) -> list[AttemptReplay]:
        """Attempts that could not be replayed to the end."""
        return [attempt for attempt in self.attempts if attempt.error is not None]

    @property
    def damaged(self) -> list[str]:
        """Lines that can't be read, as FILE:LINE."""
        return [f"{attempt.file}:{line}" for attempt in self.attempts for line in attempt.damaged]

    @property
    def faulty(self) -> bool:
        """Whether an attempt could not be replayed whole, or a difference has no known cause."""
        return bool(self.errors or self.damaged) or self.explained < len(self.differences)

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "run": self.run,
            "sandbox": self.sandbox,
            "python": dict(self.python),
            "attempts": len(self.attempts),
            "commands": self.commands,
            "matched": self.matched,
            "explained": self.explained,
            "differences": [asdict(difference) for difference in self.differences],
            "damaged": self.damaged,
            "errors": [{"file": attempt.file, "error": attempt.error} for attempt in self.errors],
        }


@dataclass(frozen=True)
class Plan:
    """What to replay and on what. `done` are the attempts that an earlier replay in this kind of sandbox did.

    `python` is the version in the run's sandbox, None where there was none or it isn't recorded.
    """

    run: Path
    export: Export
    tools: tuple[str, ...]
    output: Output
    sandbox: SandboxSettings
    view: View
    neighbors: Neighbors
    python: str | None
    files: tuple[str, ...]
    done: tuple[AttemptReplay, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """The tools whose calls are replayed: those that run something in the sandbox."""
        return tuple(name for name in self.tools if needs_sandbox((name,)))


def plan_replay(
    run: Path, kind: str, query_ids: Sequence[str] = (), *, again: bool = False, data: Path | None = None
) -> Plan:
    """Read a run folder. `query_ids` limits the replay to some questions, `again` forgets earlier replays.
    `data` is as in `recorded_export`.

    Raises UserError: no run, another export than the run's (with both digests), a question that it doesn't have.
    """
    manifest = read_manifest(run)
    export = recorded_export(manifest, run, data)
    try:
        records = read_ledger(run)
    except ValueError as error:
        raise UserError(str(error), f"`harness check {run}` says what else is wrong") from None
    known = {record.query_id for record in records}
    for query_id in query_ids:
        if query_id not in known:
            raise UserError(f"the run has no attempt at question '{query_id}'", f"`harness show {run}` lists them")
    wanted = set(query_ids) or known
    files = tuple(sorted({record.trajectory for record in records if record.query_id in wanted}))
    mode, where = manifest["mode"], f"the mode in {run / 'manifest.json'}"
    earlier = {} if again else {attempt.file: attempt for attempt in _read_replays(run, kind)}
    done = tuple(
        earlier[file] for file in files
        if file in earlier and earlier[file].error is None and earlier[file].sha256 == _sha256(run / file)
    )  # fmt: skip
    return Plan(
        run, export, tuple(mode["tools"]), build(Output, mode["output"], where),
        build(SandboxSettings, mode["sandbox"], where), build(View, mode.get("view", {}), where),
        build(Neighbors, mode.get("neighbors", {}), where), (manifest.get("sandbox") or {}).get("python"), files, done,
    )  # fmt: skip


def replay_run(
    plan: Plan,
    backend: Backend,
    *,
    workers: int = 2,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    notice: Callable[[str], None] = lambda _: None,
) -> RunReplay:
    """Replay what isn't done yet, `workers` attempts at a time; returns it all. Raises SandboxUnavailable.

    After an interrupt (KeyboardInterrupt passes through) what was finished is in the run folder.
    """
    toolbox = make_toolbox(plan.commands)
    client = _client(plan, notice) if plan.view.client else None
    here = backend.describe().get("python")
    versions = {"recorded": plan.python, "replayed": str(here) if here is not None else None}
    result = RunReplay(str(plan.run), backend.kind, versions, list(plan.done))
    done = {attempt.file for attempt in plan.done}
    stop = threading.Event()
    store = _Store(plan.run, backend.kind, notice)

    def work(file: str) -> AttemptReplay | None:
        return None if stop.is_set() else _replay_file(plan, file, toolbox, client, backend)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="replay")
    try:
        for attempt in pool.map(work, [file for file in plan.files if file not in done]):
            if attempt is not None:
                store.keep(attempt)
                result.attempts.append(attempt)
                progress(len(result.attempts), len(plan.files))
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    result.attempts.sort(key=lambda attempt: attempt.file)
    return result


def _client(plan: Plan, notice: Callable[[str], None]) -> Toolbox:
    """What the attempts' programs call."""
    graph = Graph(plan.export, Index.open(plan.export, progress=once(notice)))
    return Toolkit(TOOLS, plan.neighbors, graph).toolbox()


def _replay_file(plan: Plan, file: str, toolbox: Toolbox, client: Toolbox | None, backend: Backend) -> AttemptReplay:
    path = plan.run / file
    labels = {"run": plan.run.name, "attempt": f"replay of {file}"}
    commands, differences, error, digest = 0, [], None, ""
    reading = Reading(path)
    try:
        digest = _sha256(path)
        with contextlib.ExitStack() as stack:
            mounts = {}
            if client is not None:
                mounts[FOLDER] = stack.enter_context(KbServer(answers(client, plan.output))).folder
            spec = sandbox_spec(plan.export, plan.view, plan.sandbox, labels, mounts)
            sandbox = stack.enter_context(sandboxes_for(plan.tools, plan.view, backend).open(spec))
            replay = _Attempt(plan, file, toolbox, sandbox)
            for number, event in reading:
                for difference in replay.step(number, event):
                    commands += 1
                    if difference is not None:
                        unknown = difference.cause is None and reading.damaged
                        differences.append(replace(difference, cause=DAMAGED) if unknown else difference)
    except (SandboxError, OSError, ValueError, LookupError, TypeError) as failure:
        error = f"{type(failure).__name__}: {failure}"
    damaged = tuple(damage.line for damage in reading.damaged)
    return AttemptReplay(file, digest, commands, commands - len(differences), tuple(differences), error, damaged)


class _Attempt:
    """One attempt's events, run again in order."""

    def __init__(self, plan: Plan, file: str, toolbox: Toolbox, sandbox: Sandbox) -> None:
        self._plan, self._file, self._toolbox, self._sandbox = plan, file, toolbox, sandbox
        self._names = {spec.name for spec in toolbox.specs}
        self._spills = Spills(sandbox)
        self._results: dict[str, Observation] = {}

    def step(self, number: int, event: Mapping[str, Any]) -> Iterator[Difference | None]:
        """Do again what the event tells of; for a command, yields how its result differed (None: not at all)."""
        if event["type"] == "clear":
            self._clear(event["call_ids"])
        elif event["type"] == "result" and event["error"] not in _NOT_RUN and event["name"] in self._names:
            yield self._run(number, event)

    def _clear(self, call_ids: Sequence[str]) -> None:
        """Outputs that had no file of their own got one when they were cleared."""
        for call_id in call_ids:
            seen = self._results.get(call_id)
            if seen is not None and seen.spill is None and seen.whole is not None:
                self._spills.save(seen.whole)

    def _run(self, number: int, event: Mapping[str, Any]) -> Difference | None:
        output = self._plan.output
        context = ToolContext(lambda: self._sandbox, lambda: self._spills, output, output.cap, _NO_LIMIT)
        call = ToolCall(event["call_id"], event["name"], "")
        seen = self._toolbox.dispatch(call, event["arguments"], context)
        self._results[event["call_id"]] = seen
        if seen.text == event["text"]:
            return None
        command = _command(event)
        ended = (event["exec"] or {}).get("termination"), (seen.exec or {}).get("termination")
        cause = explain(command, (event["text"], seen.text), (self._whole(event), seen.whole), ended)
        position = _first_difference(event["text"], seen.text)
        excerpts = (text[position : position + _EXCERPT] for text in (event["text"], seen.text))
        return Difference(
            self._file, number, event["turn"], event["name"], command[:_EXCERPT], cause, position, *excerpts
        )

    def _whole(self, event: Mapping[str, Any]) -> bytes | None:
        """The recorded output: kept beside the trajectory where it was cut, else what was shown."""
        return Path(self._plan.run / "blobs" / event["blob"]).read_bytes() if event["blob"] else None


class _Store:
    """Where replayed attempts are kept, as they are finished."""

    def __init__(self, run: Path, kind: str, notice: Callable[[str], None]) -> None:
        self._path = _replays(run, kind)
        self._notice = notice
        self._told = False

    def keep(self, attempt: AttemptReplay) -> None:
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab") as file:
                line = {"schema_version": SCHEMA_VERSION, **asdict(attempt)}
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            if not self._told:
                self._notice(f"{self._path} can't be written ({error.strerror}): a replay that is stopped starts anew")
            self._told = True


def _replays(run: Path, kind: str) -> Path:
    return run / REPLAYS / f"{kind}.jsonl"


def _read_replays(run: Path, kind: str) -> Iterator[AttemptReplay]:
    """What earlier replays did; lines that can't be read are done anew."""
    path = _replays(run, kind)
    if path.exists():
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
                yield AttemptReplay.from_table(orjson.loads(line))


def _command(event: Mapping[str, Any]) -> str:
    arguments = event["arguments"] or {}
    return str(arguments.get("command", arguments.get("code", arguments.get("path", ""))))


def _first_difference(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((position for position, (one, other) in pairs if one != other), min(len(old), len(new)))


def _sha256(path: Path) -> str:
    """A file's digest, empty where it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
