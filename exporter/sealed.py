"""Files as they were written: sizes and hashes, noted in a manifest or beside them, and what was changed since."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from exporter.counted import counted
from exporter.fault import Fault
from exporter.layout import SUMS, pretty
from exporter.source import Progress


def file_faults(path: Path, entries: Mapping[str, Any], progress: Progress | None = None) -> Iterator[Fault]:
    """Files below `path` that are missing, changed, or no plain files. `entries` are `bytes` and `sha256` by file."""
    total = sum(entry["bytes"] for entry in entries.values())
    done = 0
    for file, entry in entries.items():
        try:
            if not stat.S_ISREG((path / file).stat(follow_symlinks=False).st_mode):
                yield Fault(file, None, "not a regular file")
                continue
            with (path / file).open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
                size = opened.tell()
        except OSError as error:
            yield Fault(file, None, f"cannot be read: {error.strerror}")
            continue
        if size != entry["bytes"]:
            yield Fault(file, None, f"has {counted(size, 'byte')}, and had {entry['bytes']} when it was written")
        elif digest != entry["sha256"]:
            yield Fault(file, None, "the sha256 is not that of what was written: the file was changed")
        done += size
        if progress is not None:
            progress("hashes", done, total)


def seal(folder: Path) -> None:
    """Put every file of a part of the index on disk, and write down what it holds."""
    sums = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            sums[path.relative_to(folder).as_posix()] = {"bytes": file.tell(), "sha256": digest}
    with (folder / SUMS).open("xb") as file:
        file.write(pretty(sums))
        file.flush()
        os.fsync(file.fileno())


def seal_faults(folder: Path, name: str) -> Iterator[Fault]:
    """What was changed in a folder since it was sealed; files are told relative to the folder above, as `name`/…"""
    remedy = f"remove {name}, and it is made anew"
    try:
        entries = orjson.loads((folder / SUMS).read_bytes())
        found = [Fault(f"{name}/{fault.file}", None, fault.message) for fault in file_faults(folder, entries)]
        for path in folder.rglob("*"):
            file = path.relative_to(folder).as_posix()
            if file not in {*entries, SUMS} and not (path.is_dir() and not path.is_symlink()):
                found.append(Fault(f"{name}/{file}", None, "was not there when the index was made"))
    except OSError as error:
        found = [Fault(f"{name}/{SUMS}", None, f"cannot be read: {error.strerror}")]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        found = [Fault(f"{name}/{SUMS}", None, f"cannot be read: {error}")]
    for fault in found:
        yield fault._replace(remedy=remedy)
