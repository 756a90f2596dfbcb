"""Where a part of the index lies: inside the export, or in the user's cache where the export can't be written.

A part is a folder whose name ends with a key made of the export's digest, so it is never out of date: an export that
was changed has other parts. It appears complete or not at all, and processes that want the same one build it once. Its
file `sums.json` has the size and hash of each of the others. By it `harness check`, and each run, finds what was
changed since in an export. In the cache, which is nobody's but its user's, a part that was changed is made anew, and
anywhere one without that file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import platformdirs

from exporter.folder import make_readable, new_folder
from exporter.layout import SUMS
from exporter.read import Export
from exporter.sealed import seal, seal_faults
from exporter.source import Progress

_APP = "kgshell"
_KEY_DIGITS = 16


def part(
    export: Export,
    name: str,
    version: str,
    build: Callable[[Path], None],
    *,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """The folder of the part `name`, made with `build` (which fills an empty folder) where it isn't there yet.

    `version` changes whenever the same export would give another content. `cache` is the folder for what can't be
    written into the export, by default in the user's cache. Raises ExportError where neither can be written.
    """
    key = hashlib.sha256(f"{version} {export.digest}".encode()).hexdigest()[:_KEY_DIGITS]
    own = export.path / "index"
    own_place, cached = own / f"{name}-{key}", (cache or _user_cache()) / f"{name}-{key}"

    def sound() -> bool:
        return (place / SUMS).is_file() and (place == own_place or not any(seal_faults(place, place.name)))

    for place in (own_place, cached):
        if place.is_dir() and sound():
            return place
    place = own_place if os.access(own, os.W_OK) else cached

    def waiting() -> None:
        if progress is not None:
            progress(f"waiting for another process that makes {place}", 0, 0)

    with new_folder(place, waiting, sound) as folder:
        if folder is not None:
            build(folder)
            seal(folder)
            if place == own_place:
                make_readable(folder)
    if place == own_place:
        _remove_old(own, name, keep=place)
    return place


def _user_cache() -> Path:
    return platformdirs.user_cache_path(_APP) / "index"


def _remove_old(folder: Path, name: str, keep: Path) -> None:
    """Parts of what the export was before. Who still reads one goes on: its files are open."""
    for path in folder.glob(f"{name}-*"):
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)
