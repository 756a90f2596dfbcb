"""Graphs by name: the embedded sample, exports under the data directory, and paths to exports.

The data directory holds `exports/<name>`. It may be shared and read-only once the exports are in it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs

from exporter import Export, ExportError, biogo_sources, export_tables
from harness.config import APP
from harness.errors import UserError
from harness.suggest import hint

EMBEDDED = "biogo"
STARK = ("prime", "mag", "amazon")
_CHUNK = 1 << 20

Notice = Callable[[str], None]


@dataclass(frozen=True)
class Graph:
    """A graph that can be asked: what to call it, and its export."""

    name: str
    export: Export


@dataclass(frozen=True)
class Listing:
    """One line of `harness graphs`. `state` is ready, embedded (exported when first used), absent or damaged."""

    name: str
    state: str
    path: str
    nodes: int | None = None
    edges: int | None = None
    questions: dict[str, int] | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def data_directory(named: Path | None) -> Path:
    """`named` (from a flag, the environment or the config), else the platform's folder for user data."""
    return named or platformdirs.user_data_path(APP)


def open_graph(name: str, data: Path, notice: Notice) -> Graph:
    """The export that `name` stands for; the embedded sample is exported when first used. Raises UserError."""
    if os.sep in name:
        return _open(Path(name))
    place = data / "exports" / name
    if place.is_dir():
        return Graph(name, _open(place).export)
    if name == EMBEDDED:
        return Graph(name, _export_embedded(place, notice))
    if name in STARK:
        raise UserError(
            f"graph '{name}' is not there: no folder {place}",
            f"STaRK graphs are read from an export: put one at {place}, or give its path to --graph",
        )
    if (Path(name) / "manifest.json").is_file():
        return _open(Path(name))
    raise UserError(f"unknown graph '{name}'", hint(name, graph_names(data), "graphs") + ", or a path to an export")


def graph_names(data: Path) -> list[str]:
    """Every name that can be given: the embedded sample, STaRK's graphs, and what lies in the data directory."""
    exports = data / "exports"
    found = sorted(path.name for path in exports.iterdir() if _is_export(path)) if exports.is_dir() else []
    return list(dict.fromkeys((EMBEDDED, *STARK, *found)))


def list_graphs(data: Path) -> list[Listing]:
    """What each name stands for at the moment. Nothing is exported for it."""
    return [_listing(name, data / "exports" / name) for name in graph_names(data)]


def verify(export: Export) -> None:
    """Compare every file that an agent or a score depends on with the manifest. Raises UserError at the first fault."""
    entries = export.manifest["files"]
    for path in sorted(export.files.rglob("*")):
        name = str(path.relative_to(export.path))
        if name not in entries and not (path.is_dir() and not path.is_symlink()):
            raise _damaged(export, f"{name} was not written by the export")
    for name, entry in entries.items():
        try:
            same = _sha256(export.path / name) == entry["sha256"]
        except OSError as error:
            raise _damaged(export, f"{name}: {(error.strerror or 'unreadable').lower()}") from None
        if not same:
            raise _damaged(export, f"{name} is not as it was written")


def _damaged(export: Export, what: str) -> UserError:
    return UserError(
        f"the export {export.path} is damaged or was changed: {what}",
        f"`harness check {export.path}` lists every fault; export the graph anew",
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _open(path: Path) -> Graph:
    try:
        export = Export.open(path)
    except ExportError as error:
        raise UserError(
            str(error), error.hint or "give a path to an export, or one of the names in `harness graphs`"
        ) from None
    return Graph(export.name, export)


def _export_embedded(place: Path, notice: Notice) -> Export:
    notice(f"exporting the embedded graph {EMBEDDED} to {place}")
    sources = biogo_sources()
    try:
        return export_tables(sources.nodes, sources.edges, place, queries=sources.queries, name=EMBEDDED, reuse=True)
    except ExportError as error:
        raise UserError(str(error), f"{error.hint} with --data-dir or HARNESS_DATA") from None


def _is_export(path: Path) -> bool:
    return (path / "manifest.json").is_file()


def _listing(name: str, place: Path) -> Listing:
    if not place.is_dir():
        if name == EMBEDDED:
            return Listing(name, "embedded", str(place), note="exported when first used")
        return Listing(name, "absent", str(place), note="put an export there")
    try:
        export = Export.open(place)
    except ExportError as error:
        return Listing(name, "damaged", str(place), note=str(error))
    splits = {split or "all": count for split, count in export.manifest["queries"]["splits"].items()}
    return Listing(name, "ready", str(place), export.node_count, export.schema["edges"], splits)
