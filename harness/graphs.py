"""Graphs by name: the embedded sample, STaRK's graphs, exports under the data directory, and paths to exports.

The data directory holds `exports/<name>`. It may be shared and read-only once the exports are in it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exporter import Export, ExportError, Progress, UnwritableError, check_files, export_stark
from exporter.stark import DATASETS
from harness import stark
from harness.errors import UserError
from harness.exports import EMBEDDED, data_directory, export_embedded, is_export, waiting_for
from harness.suggest import hint

__all__ = ["Graph", "Listing", "data_directory", "graph_names", "list_graphs", "open_graph", "verify"]

Notice = Callable[[str], None]


@dataclass(frozen=True)
class Graph:
    """A graph that can be asked: what to call it, and its export."""

    name: str
    export: Export


@dataclass(frozen=True)
class Listing:
    """One line of `harness graphs`.

    `state` is exported, stale (exported of other data than is here now), damaged, embedded or downloaded (here, and
    exported when first used), downloadable, or not here.
    """

    name: str
    state: str
    path: str
    nodes: int | None = None
    edges: int | None = None
    questions: dict[str, int] | None = None
    bytes: int | None = None
    created: str | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def open_graph(
    name: str, data: Path, notice: Notice, *, progress: Progress | None = None, download: bool = True
) -> Graph:
    """The export that `name` stands for. Raises UserError, and InfrastructureError where a download fails.

    The embedded sample and STaRK's graphs are exported when first used; these are downloaded before where they aren't
    on this machine, unless `download` is False, which is the user's mistake then.
    """
    if os.sep in name:
        return _open(Path(name))
    place = data / "exports" / name
    if place.is_dir():
        graph = Graph(name, _open(place).export)
        if name in DATASETS:
            _warn(graph, stark.is_stale(name, graph.export, stark.locate(name, data)), notice)
        return graph
    if name == EMBEDDED:
        return Graph(name, export_embedded(place, notice))
    if name in DATASETS:
        graph = Graph(name, _export_stark(name, place, data, notice, progress, download))
        _warn(graph, "", notice)
        return graph
    if (Path(name) / "manifest.json").is_file():
        return _open(Path(name))
    raise UserError(f"unknown graph '{name}'", hint(name, graph_names(data), "graphs") + ", or a path to an export")


def graph_names(data: Path) -> list[str]:
    """Every name that can be given: the embedded sample, STaRK's graphs, and what lies in the data directory."""
    exports = data / "exports"
    found = sorted(path.name for path in exports.iterdir() if is_export(path)) if exports.is_dir() else []
    return list(dict.fromkeys((EMBEDDED, *DATASETS, *found)))


def list_graphs(data: Path) -> list[Listing]:
    """What each name stands for at the moment. Nothing is exported for it, and no network asked."""
    return [_listing(name, data / "exports" / name, data) for name in graph_names(data)]


def verify(export: Export) -> None:
    """Raise UserError for the first fault that `harness check` finds without parsing nodes and edges."""
    try:
        faults = check_files(export.path)
    except ExportError as error:
        raise UserError(str(error), error.hint) from None
    if faults:
        raise UserError(
            f"the export {export.path} is damaged or was changed: {faults[0]}",
            f"`harness check {export.path}` lists every fault; {faults[0].remedy or 'export the graph anew'}",
        )


def _open(path: Path) -> Graph:
    try:
        export = Export.open(path)
    except ExportError as error:
        raise UserError(
            str(error), error.hint or "give a path to an export, or one of the names in `harness graphs`"
        ) from None
    return Graph(export.name, export)


def _export_stark(
    name: str, place: Path, data: Path, notice: Notice, progress: Progress | None, download: bool
) -> Export:
    if not download and stark.locate(name, data) is None:
        raise UserError(
            f"graph '{name}' is not on this machine",
            f"harness run downloads it ({stark.size_of(name)}), a dry run doesn't",
        )
    files = stark.fetch(name, data, notice)

    def turn(ours: bool) -> None:
        notice(f"exporting {name} from {files.processed} to {place}" if ours else waiting_for(place))

    try:
        return export_stark(name, files, place, reuse=True, index=True, progress=progress, turn=turn)
    except UnwritableError as error:
        command = shlex.join(["harness", "export", "stark", name, "--data-dir", str(data), "--out", name])
        raise UserError(str(error), f"`{command}` exports it to a folder here; then give --graph ./{name}") from None
    except ExportError as error:
        raise UserError(str(error), error.hint) from None


def _warn(graph: Graph, stale: str, notice: Notice) -> None:
    """Say where a graph is not what was published, or no longer what its files say."""
    for warning in graph.export.manifest["source"].get("warnings", ()):
        notice(f"{graph.name}: {warning}")
    if stale:
        notice(f"{graph.name}: the export is stale, {stale}; to have it made anew, remove {graph.export.path}")


def _listing(name: str, place: Path, data: Path) -> Listing:
    if not place.is_dir():
        return _not_exported(name, place, data)
    try:
        export = Export.open(place)
    except ExportError as error:
        return Listing(name, "damaged", str(place), note=str(error))
    stale = stark.is_stale(name, export, stark.locate(name, data)) if name in DATASETS else ""
    return Listing(
        name,
        "stale" if stale else "exported",
        str(place),
        export.node_count,
        export.schema["edges"],
        {split or "all": count for split, count in export.manifest["queries"]["splits"].items()},
        sum(entry["bytes"] for entry in export.manifest["files"].values()),
        export.manifest["created"],
        stale,
    )


def _not_exported(name: str, place: Path, data: Path) -> Listing:
    if name == EMBEDDED:
        return Listing(name, "embedded", str(place), note="exported when first used")
    files = stark.locate(name, data)
    if files is not None:
        size = sum(path.stat().st_size for path in files.files(DATASETS[name]))
        return Listing(name, "downloaded", str(files.processed), bytes=size, note="exported when first used")
    note = f"{stark.size_of(name)}, downloaded when first used"
    if stark.is_offline():
        return Listing(name, "not here", str(place), note="HF_HUB_OFFLINE forbids to download it")
    return Listing(name, "downloadable", str(place), note=note)
