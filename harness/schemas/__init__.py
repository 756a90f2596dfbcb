"""JSON Schemas of a run folder's files, and a check of a whole folder against them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import orjson

from harness.events import parse_event, trajectory_path
from harness.ledger import LEDGER, AttemptRecord, read_ledger
from harness.rundir import is_in_use
from harness.schemas.fast import Check, compile_schema

_TORN = "torn: its end is missing"


@dataclass(frozen=True)
class RunFault:
    """Something wrong in a run folder: the file relative to it, the line (from 1, None for the whole file), what."""

    file: str
    line: int | None
    message: str


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of `harness/schemas/NAME.schema.json`."""
    schema = orjson.loads((resources.files("harness") / "schemas" / f"{name}.schema.json").read_bytes())
    return jsonschema.Draft202012Validator(schema)


@functools.cache
def fast_check(name: str) -> Check:
    """Whether a value fits `harness/schemas/NAME.schema.json`, without a reason where it doesn't."""
    schema = validator(name).schema
    assert isinstance(schema, dict)
    return compile_schema(schema)


def check_run(run: Path) -> Iterator[RunFault]:
    """Every way in which a run folder breaks its contract: schemas, sequence, references between files.

    What a process that writes the folder has not finished is no fault, and neither is the torn last line of an
    attempt that the ledger knows as interrupted.
    """
    growing = is_in_use(run)
    yield from _check_records(run, growing)
    ledgered = {record.trajectory: record.stop_reason for record in _readable_ledger(run)}
    for path in sorted((run / "trajectories").glob("*/*.jsonl")):
        name = str(path.relative_to(run))
        in_flight = growing and name not in ledgered
        cut_short = in_flight or ledgered.get(name) == "interrupted"
        yield from _check_trajectory(run, path, may_be_torn=cut_short, may_end_early=cut_short or name not in ledgered)
        if name not in ledgered and not growing:
            yield RunFault(name, None, "is not in the ledger: in flight at a crash (resume the run)")


def check_records(run: Path) -> Iterator[RunFault]:
    """What is wrong with the manifest and the ledger; trajectories are not read."""
    yield from _check_records(run, is_in_use(run))


def _check_records(run: Path, growing: bool) -> Iterator[RunFault]:
    yield from _check_json(run, run / "manifest.json", "manifest")
    if (run / "scores.json").exists():  # derived, so it may be missing
        yield from _check_json(run, run / "scores.json", "scores")
    yield from _check_lines(run, run / LEDGER, "attempt", may_be_torn=growing)
    try:
        read_ledger(run)
    except ValueError as error:
        yield RunFault(LEDGER, None, str(error))
    for number, record in enumerate(_readable_ledger(run), 1):
        if record.trajectory != str(trajectory_path(record.query_id, record.agent, record.attempt)):
            yield RunFault(LEDGER, number, f"names the trajectory of another attempt: {record.trajectory}")
        elif not (run / record.trajectory).is_file():
            yield RunFault(LEDGER, number, f"its trajectory {record.trajectory} is missing")


def _readable_ledger(run: Path) -> list[AttemptRecord]:
    try:
        return read_ledger(run)
    except ValueError:
        return []


class TrajectoryCheck:
    """The contract of one trajectory, checked event by event; each event fits its schema."""

    def __init__(self, run: Path, name: str) -> None:
        self._run, self._name = run, name
        self._open_calls: set[str] | None = set()  # None: not known, since a line is lost that may have held the reply
        self._seq: int | None = 0  # None: not known, since two events may have been in a lost line

    def lost(self) -> None:
        """A damaged line stands here."""
        self._open_calls = self._seq = None

    def faults(self, number: int, event: dict[str, Any]) -> Iterator[RunFault]:
        """What is wrong with the event in line `number`, given those before it."""
        if self._seq is not None and event.get("seq") != self._seq:
            yield RunFault(self._name, number, f"seq is {event.get('seq')}, not {self._seq}")
        self._seq = event.get("seq", number - 1) + 1
        if event["type"] == "reply":
            self._open_calls = {call["id"] for call in event["calls"]}
        elif event["type"] == "result":
            call, blob = event["call_id"], event["blob"]
            if self._open_calls is not None:
                if call not in self._open_calls:
                    yield RunFault(self._name, number, f"a result for no open call: {call}")
                self._open_calls.discard(call)
            if blob and not (self._run / "blobs" / str(blob)).is_file():
                yield RunFault(self._name, number, f"blob {blob} is missing")


def _check_trajectory(run: Path, path: Path, *, may_be_torn: bool, may_end_early: bool) -> Iterator[RunFault]:
    name = str(path.relative_to(run))
    check, last = TrajectoryCheck(run, name), None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                if not may_be_torn:
                    yield RunFault(name, number, _TORN)
                return
            try:
                event = parse_event(line)
            except ValueError as error:
                yield RunFault(name, number, str(error))
                check.lost()
                last = "damaged"
            else:
                yield from check.faults(number, event)
                last = event["type"]
    if last != "end" and not may_end_early:
        yield RunFault(name, None, f"its last event is not the attempt's end but {last or 'missing'}")


def _check_lines(run: Path, path: Path, schema: str, *, may_be_torn: bool) -> Iterator[RunFault]:
    if not path.exists():
        return
    for number, value in _parsed_lines(path, may_be_torn):
        if isinstance(value, str):
            texts: Iterable[str] = [value]
        else:
            texts = () if fast_check(schema)(value) else schema_faults(schema, value)
        yield from (RunFault(str(path.relative_to(run)), number, text) for text in texts)


def _check_json(run: Path, path: Path, schema: str) -> Iterator[RunFault]:
    name = str(path.relative_to(run))
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        yield RunFault(name, None, f"can't be read: {error}")
        return
    yield from (RunFault(name, None, text) for text in schema_faults(schema, value))


def _parsed_lines(path: Path, may_be_torn: bool) -> Iterator[tuple[int, Any]]:
    """Each line's number and value, a text instead where it's no JSON object. A last line without its end is torn."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                if not may_be_torn:
                    yield number, _TORN
                return
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield number, f"not JSON: {error}"
                continue
            yield number, value if isinstance(value, dict) else "not a JSON object"


def schema_faults(schema: str, value: Any) -> Iterator[str]:
    """Every way in which a value does not fit `harness/schemas/SCHEMA.schema.json`."""
    for error in validator(schema).iter_errors(value):
        best = jsonschema.exceptions.best_match([error])
        where = "/".join(str(part) for part in (best or error).absolute_path)
        yield f"{where or 'the record'}: {(best or error).message[:300]}"
