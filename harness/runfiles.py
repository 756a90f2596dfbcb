"""What a saved run says it was run on: its manifest, its export, its questions with their gold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from exporter import Export, ExportError
from harness.errors import UserError
from harness.exports import data_directory, exports_in
from harness.questions import Question, recorded

MANIFEST = "manifest.json"
_NEEDED = {"graph", "export", "mode", "model", "questions"}


def read_manifest(run: Path) -> dict[str, Any]:
    """A run's manifest. Raises UserError where there is none or it can't be read."""
    path = run / MANIFEST
    try:
        manifest = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        inside = sorted(child.parent.name for child in run.glob(f"*/{MANIFEST}"))[:5] if run.is_dir() else []
        if not run.exists():
            raise UserError(f"there is no folder {run}", "give the folder that `harness run` named") from None
        hint = f"it holds runs: {', '.join(inside)}" if inside else "give the folder that `harness run` named"
        raise UserError(f"{run} is not a run folder: it has no {MANIFEST}", hint) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}") from None
    if not isinstance(manifest, dict) or not manifest.keys() >= _NEEDED:
        raise UserError(f"{path} is not the manifest of a run", "give the folder that `harness run` named")
    return manifest


def sandbox_kind(manifest: Mapping[str, Any]) -> str:
    """What kind of sandbox a run had, `none` where it had none; of an imported run, where it is from."""
    return str((manifest.get("sandbox") or {}).get("kind", "none"))


def line_cap(manifest: Mapping[str, Any]) -> int | None:
    """The characters to which a run's mode shortened lines of outputs, None where it didn't."""
    cap = manifest["mode"].get("output", {}).get("line_cap")
    return cap if isinstance(cap, int) else None


def recorded_export(manifest: dict[str, Any], run: Path, data: Path | None = None) -> Export:
    """The export that a run was made on, told by its digest: where the run had it, else in the data directory.

    `data` is the data directory (default: the platform's), or an export itself. The embedded graph is exported there
    if it isn't yet. Raises UserError.
    """
    path, digest = Path(manifest["export"]["path"]), manifest["export"]["digest"]
    try:
        export = Export.open(path)
    except ExportError as error:
        lacking = f"the export of {run} can't be read: {error}"
    else:
        if export.digest == digest:
            return export
        lacking = (
            f"{path} is not the export that {run} was made on: digest {export.digest[:12]}, recorded {digest[:12]}"
        )
    directory = data_directory(data)
    same = [found for found in exports_in(directory, str(manifest["graph"])) if found.digest == digest]
    if same:  # of the same graph, where there are several, the one with the run's questions
        return next((found for found in same if _has_questions(manifest, found, run)), same[0])
    raise UserError(
        f"{lacking}; nor is it in the data directory {directory}",
        f"put it back at {path}, or give --data-dir: a data directory that has it, or the export itself",
    )


def recorded_questions(manifest: dict[str, Any], export: Export, run: Path) -> tuple[Question, ...]:
    """The questions of a run with their gold, read anew from where the run had them. Raises UserError."""
    table = manifest["questions"]
    return recorded(export, table["source"], table["ids"], table["sha256"], str(run))


def _has_questions(manifest: dict[str, Any], export: Export, run: Path) -> bool:
    try:
        recorded_questions(manifest, export, run)
    except (UserError, ExportError):
        return False
    return True
