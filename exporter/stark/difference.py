"""How the files beside an export differ from those it was made of, as far as that is quickly said."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exporter.inputs import hash_file
from exporter.stark.dataset import Dataset
from exporter.stark.places import ARCHIVE, FOLDER, Place

_SMALL = 16 * 1024 * 1024  # bytes up to which a file is hashed as a whole
_PIECE, _PIECES = 64 * 1024, 16


def difference(dataset: Dataset, place: Place, manifest: Mapping[str, Any]) -> str:
    """The first file of `place` that is another one than when the export with this manifest was made, that wasn't there
    then or that is gone, in a few words; nothing where all are the same.

    Files up to 16 MB are compared by hash, others by size and a sample. An archive isn't compared with an unpacked
    graph, nor are questions where none lie there now or the export has others.
    """
    then = {entry["file"]: entry for entry in manifest["source"]["inputs"]}
    graph = {name: entry for name, entry in then.items() if name == ARCHIVE or name.startswith(f"{FOLDER}/")}
    questions = {name: entry for name, entry in then.items() if name not in graph}
    found = ""
    if place.processed.is_file() == (ARCHIVE in graph):
        found = _differing(place.graph_files(dataset), graph)
    own_questions = not questions and manifest["queries"]["count"]
    if not found and place.qa is not None and not own_questions:
        found = _differing(place.question_files(), questions)
    return found


def _differing(now: Mapping[str, Path], then: Mapping[str, Mapping[str, Any]]) -> str:
    for name, path in now.items():
        if name not in then:
            return f"{path} was not there when it was made"
        if _is_other(path, then[name]):
            return f"{path} is another file than the one it was made of"
    gone = [name for name in then if name not in now]
    return f"{gone[0]}, which it was made of, is gone" if gone else ""


def _is_other(path: Path, then: Mapping[str, Any]) -> bool:
    size = path.stat().st_size
    if size != then["bytes"]:
        return True
    if size <= _SMALL:
        return bool(hash_file(path)["sha256"] != then["sha256"])
    return bool("sample" in then and sample(path) != then["sample"])


def sample(path: Path) -> str:
    """A hash of pieces of a file, the first and the last among them: of what zip archives say of their entries, too."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        last = max(path.stat().st_size - _PIECE, 0)
        for number in range(_PIECES):
            file.seek(last * number // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()
