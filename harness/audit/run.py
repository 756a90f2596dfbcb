"""A whole run audited: its trajectories one after the other, in several processes where it's large."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporter import Export
from harness.audit.checks import SECTIONS, Check, Measure, answers, behaviour, cost, trust
from harness.audit.checks import run as run_checks
from harness.audit.checks.answers import error_class
from harness.audit.checks.run import AttemptLine, RunFacts, Variant
from harness.audit.facts import AttemptFacts
from harness.audit.tally import Place, Spread, Tally
from harness.audit.walk import Context, Job, walk
from harness.errors import UserError
from harness.ledger import AttemptRecord, fold, read_ledger
from harness.rundir import is_in_use
from harness.runfiles import line_cap, read_manifest, recorded_export, recorded_questions, sandbox_kind
from harness.schemas import check_records

CHECKS: tuple[Check, ...] = (*behaviour.CHECKS, *answers.CHECKS, *trust.CHECKS, *cost.CHECKS)
MEASURES: tuple[Measure, ...] = (*behaviour.MEASURES, *answers.MEASURES, *cost.MEASURES)

SCHEMA_VERSION = 1
Setup = tuple[Path, Mapping[str, Any], Path | None]  # of `context_of`
_OUR_SANDBOXES = ("docker", "bwrap", "none")  # what an imported run has there names where it is from
_CHUNK = 16  # trajectories that a process is given at a time
_WORTH_PROCESSES = 20_000_000  # bytes of trajectories from which more than one process is used


@dataclass
class Part:
    """What a number of attempts add up to."""

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    variants: Counter[Variant] = field(default_factory=Counter)
    variant_files: dict[Variant, str] = field(default_factory=dict)
    attempts: list[AttemptLine] = field(default_factory=list)
    bytes: int = 0

    def add(self, facts: AttemptFacts) -> None:
        """Add one attempt."""
        for check in CHECKS:
            if facts.counted or check.scope == "all":
                for row in check.rows(facts):
                    self.tallies.setdefault((check.name, row.label), Tally()).add(row)
        for measure in MEASURES:
            if facts.counted or measure.scope == "all":
                values = ((value, Place(facts.file, line)) for value, line in measure.values(facts))
                self.spreads.setdefault(measure.name, Spread()).add(values)
        variant = Variant(facts.prompt, facts.tools, facts.mode)
        if facts.prompt:
            self.variants[variant] += 1
            self.variant_files.setdefault(variant, facts.file)
        self.attempts.append(_line(facts))
        self.bytes += facts.bytes

    def merge(self, other: Part) -> None:
        """Add the attempts of another part, which come behind this one's."""
        for key, tally in other.tallies.items():
            self.tallies.setdefault(key, Tally()).merge(tally)
        for name, spread in other.spreads.items():
            self.spreads.setdefault(name, Spread()).merge(spread)
        self.variants += other.variants
        self.variant_files = {**other.variant_files, **self.variant_files}
        self.attempts += other.attempts
        self.bytes += other.bytes


@dataclass(frozen=True)
class Audit:
    """Everything that `harness audit` says about a run."""

    run: str
    graph: str
    mode: str
    model: str
    facts: RunFacts
    part: Part
    run_rows: dict[str, dict[str, Tally]]
    in_flight: int = 0  # attempts that a run which goes on has not finished, and that are left out

    @property
    def missing(self) -> int:
        """How many attempts of the ledger have no trajectory."""
        audited = {line.file for line in self.part.attempts}
        return sum(record.trajectory not in audited for record in self.facts.records)

    def rows(self, name: str) -> dict[str, Tally]:
        """The rows of a check by their labels."""
        if name in self.run_rows:
            return self.run_rows[name]
        return {label: tally for (check, label), tally in self.part.tallies.items() if check == name}

    def spread(self, name: str) -> Spread:
        """The values of a measure."""
        return self.part.spreads.get(name, Spread())

    def alarms(self) -> list[tuple[str, str, Tally]]:
        """What is worth a look before the run is trusted: title, label and row of every check that says so."""
        titles = {check.name: check.title for check in CHECKS if check.alarm}
        titles |= {check.name: check.title for check in run_checks.CHECKS if check.alarm}
        return [
            (title, label, tally)
            for name, title in titles.items()
            for label, tally in self.rows(name).items()
            if tally.count
        ]

    def as_dict(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{key: getattr(self, key) for key in ("run", "graph", "mode", "model")},
            "attempts": len(self.part.attempts),
            "questions": len({line.query_id for line in self.part.attempts}),
            "missing": self.missing,
            "in_flight": self.in_flight,
            "bytes": self.part.bytes,
            "unknown": self.facts.unknown,
            "servers": self.facts.manifest.get("servers", []),
            "sections": {
                section: {
                    "title": title,
                    "checks": [
                        *(self._check(check, sampled=True) for check in CHECKS if check.section == section),
                        *(self._check(check, sampled=False) for check in run_checks.CHECKS if section == "trust"),
                    ],
                    "measures": [
                        {"name": m.name, "title": m.title, "unit": m.unit, **self.spread(m.name).as_dict()}
                        for m in MEASURES
                        if m.section == section
                    ],
                }
                for section, title in SECTIONS.items()
            },
            "list": [vars(line) for line in self.part.attempts],
        }

    def _check(self, check: Check | run_checks.RunCheck, *, sampled: bool) -> dict[str, Any]:
        rows = []
        for label, tally in self.rows(check.name).items():
            row = {"label": label, **tally.as_dict()}
            rows.append(row if sampled else {**row, "interval": None})
        kept = {key: getattr(check, key) for key in ("name", "title", "unit", "alarm", "zeros")}
        return {**kept, "rows": rows}


def worth_showing(check: Mapping[str, Any], row: Mapping[str, Any] | None) -> bool:
    """Whether a table shows this row of a check: there is something, or it's a 0 that one wants to see."""
    return row is not None and bool(row["count"] or ((check["alarm"] or check["zeros"]) and row["of"]))


def audit_run(
    run: Path,
    *,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    data: Path | None = None,
) -> Audit:
    """Audit the run folder `run`. Needs no sandbox, no key, no network.

    Without the run's export or questions, what needs gold is left out and `unknown` says why. `progress` is told how
    many trajectories are done, out of how many. `data` is as in `recorded_export`. Raises UserError.
    """
    manifest = read_manifest(run)
    try:
        records = read_ledger(run)
    except ValueError as error:
        raise UserError(str(error), f"`harness check {run}` says what else is wrong") from None
    gold, export, unknown = _gold(run, manifest, data)
    found = list(_jobs(run, records, gold))
    jobs = [job for job in found if job.record is not None] if is_in_use(run) else found
    setup = (run, manifest, export)
    part = Part()
    done = 0
    for more in _parts(jobs, setup, _processes(run, jobs, processes)):
        part.merge(more)
        done += len(more.attempts)
        progress(done, len(jobs))
    facts = RunFacts(
        manifest, records, unknown, list(check_records(run)), part.variants, part.variant_files, part.attempts
    )
    rows: dict[str, dict[str, Tally]] = {}
    for check in run_checks.CHECKS:
        rows[check.name] = {}
        for row in check.rows(facts):
            rows[check.name].setdefault(row.label, Tally()).add(row)
    mode, model = manifest["mode"], manifest["model"]
    return Audit(
        str(run), manifest["graph"], str(mode["name"]), str(model["name"]), facts, part, rows, len(found) - len(jobs)
    )


def _gold(
    run: Path, manifest: dict[str, Any], data: Path | None
) -> tuple[dict[str, tuple[int, ...]], Path | None, list[str]]:
    """Gold by question, where the export is, and what is not known."""
    try:
        export = recorded_export(manifest, run, data)
        questions = recorded_questions(manifest, export, run)
    except UserError as error:
        return {}, None, [str(error)]
    return {question.id: question.gold for question in questions}, export.path, []


def _jobs(run: Path, records: Sequence[AttemptRecord], gold: dict[str, tuple[int, ...]]) -> Iterator[Job]:
    """Every trajectory of the run in the order of file names."""
    counted = {state.last.trajectory for state in fold(records).values() if state.last is not None}
    by_file = {record.trajectory: record for record in records}
    found = {str(path.relative_to(run)) for path in (run / "trajectories").glob("*/*.jsonl")}
    for file in sorted(found):
        record = by_file.get(file)
        yield Job(file, record, file in counted, gold.get(record.query_id) if record is not None else None)


def _processes(run: Path, jobs: Sequence[Job], wanted: int | None) -> int:
    size = sum((run / job.file).stat().st_size for job in jobs)
    if size < _WORTH_PROCESSES and wanted is None:
        return 1
    return min(wanted or len(os.sched_getaffinity(0)), max(1, -(-len(jobs) // _CHUNK)))


def _parts(jobs: list[Job], setup: Setup, processes: int) -> Iterator[Part]:
    chunks = [jobs[start : start + _CHUNK] for start in range(0, len(jobs), _CHUNK)]
    if processes == 1:
        context = context_of(*setup)
        yield from (_audit_chunk(chunk, context) for chunk in chunks)
        return
    with _pool(processes, setup) as pool:
        yield from pool.map(_work, chunks)


@contextmanager
def _pool(processes: int, setup: Setup) -> Iterator[ProcessPoolExecutor]:
    start = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=start, initializer=_start_worker, initargs=setup)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_worker_context: list[Context] = []  # of this process, set once by `_start_worker`


def _start_worker(run: Path, manifest: Mapping[str, Any], export: Path | None) -> None:
    _worker_context.append(context_of(run, manifest, export))


def _work(chunk: list[Job]) -> Part:
    return _audit_chunk(chunk, _worker_context[-1])


def context_of(run: Path, manifest: Mapping[str, Any], export_path: Path | None) -> Context:
    """What the trajectories of a run share; without its export no id is known to be no candidate."""
    nodes, cap = int(manifest["export"]["nodes"]), line_cap(manifest)
    ours = sandbox_kind(manifest) in _OUR_SANDBOXES
    if export_path is None:
        return Context(run, nodes, None, line_cap=cap, prompt_is_ours=ours)
    export = Export.open(export_path)
    canary = export.manifest.get("canary")
    return Context(run, nodes, str(canary).encode() if canary else None, export.is_candidate, cap, ours)


def _audit_chunk(chunk: list[Job], context: Context) -> Part:
    part = Part()
    for job in chunk:
        part.add(walk(job, context))
    return part


def _line(facts: AttemptFacts) -> AttemptLine:
    first = answers.first_gold(facts)
    hardest = next((row.label for row in behaviour.hardest_operation(facts) if row.count), "")
    return AttemptLine(
        file=facts.file, query_id=facts.query_id, agent=facts.agent, attempt=facts.attempt, counted=facts.counted,
        error_class=error_class(facts), hit=facts.hit,
        stop_reason=facts.record.stop_reason if facts.record is not None else "interrupted",
        turns=facts.record.turns if facts.record is not None else 0, calls=len(facts.calls),
        programs=len(facts.programs), hardest=hardest, first_gold_turn=first.turn if first is not None else None,
        answer_line=facts.answer_line,
    )  # fmt: skip
