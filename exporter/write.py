"""The one writer: from a source to a complete export."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Collection
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from exporter.describe import data_format
from exporter.edge_files import EdgeFiles
from exporter.errors import ExportError
from exporter.folder import HashedFile, make_readable, new_folder
from exporter.layout import DATA_FORMAT, FILES, FORMAT, MANIFEST, QUERIES, SCHEMA, pretty
from exporter.node_files import NodeFiles, encode
from exporter.questions import counts
from exporter.read import Export
from exporter.source import Progress, Source, Turn


def write_export(
    source: Source,
    out: Path,
    *,
    queries: Path | None = None,
    candidates: Collection[str] | None = None,
    name: str | None = None,
    reuse: bool = False,
    index: bool = False,
    progress: Progress | None = None,
    turn: Turn | None = None,
) -> Export:
    """Write `source` into the new folder `out`; see `export_tables` for the arguments.

    Raises ExportError, and leaves nothing behind, where the source is bad or the folder can't be written or exists.
    """
    out = out.absolute()
    if out.exists() and reuse:
        return Export.open(out)

    def waiting() -> None:
        if progress is not None:
            progress(f"waiting for another process that makes {out}", 0, 0)
        if turn is not None:
            turn(False)

    with new_folder(out, waiting) as folder:
        if folder is not None:
            if turn is not None:
                turn(True)
            _fill(folder, source, queries, candidates, name or out.name)
            if index:
                _index(folder, progress)
    if folder is None and not reuse:
        raise ExportError(f"{out} exists already", "choose another folder, or remove it first")
    return Export.open(out)


def _fill(folder: Path, source: Source, queries: Path | None, candidates: Collection[str] | None, name: str) -> None:
    files = folder / FILES
    files.mkdir()
    nodes = NodeFiles(files, candidates, source.node_types)
    for node in source.nodes():
        nodes.add(node)
    index = nodes.finish(folder)
    edges = EdgeFiles(files, nodes.type_ids, source.relations)
    for block in source.edges():
        edges.add(block)
    edges.finish(source.left_out)
    schema: dict[str, Any] = {
        "format": FORMAT,
        "nodes": nodes.count,
        "edges": edges.count,
        "node_types": nodes.node_types(),
        "relations": edges.relations(nodes.type_names),
    }
    written = {f"{FILES}/{path}": entry for path, entry in sorted({**nodes.written, **edges.written}.items())}
    written |= index
    written[SCHEMA] = _written(folder / SCHEMA, pretty(schema))
    written[DATA_FORMAT] = _written(folder / DATA_FORMAT, data_format(files, schema).encode())

    canary = f"canary-{secrets.token_hex(16)}"
    (folder / QUERIES).parent.mkdir()
    asked = source.questions() if queries is None else source.questions_of(queries)
    questions = [{**question, "canary": canary} for question in asked]
    if questions:
        lines = b"".join(map(encode, questions))
        written[QUERIES] = _written(folder / QUERIES, lines)
    make_readable(files)
    manifest = {
        "format": FORMAT,
        "name": name,
        "source": _described(source, edges),
        "nodes": nodes.count,
        "edges": edges.count,
        "relations": edges.source_rows(),
        "queries": counts(questions),
        "files": written,
        "canary": canary,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "made_by": {"kgshell": _version(), "python": platform.python_version()},
    }
    _written(folder / MANIFEST, pretty(manifest))


def _described(source: Source, edges: EdgeFiles) -> dict[str, Any]:
    described = source.describe()
    if edges.warnings:
        described["warnings"] = [*described.get("warnings", ()), *edges.warnings]
    return described


def _index(folder: Path, progress: Progress | None) -> None:
    from exporter.index import build_index  # noqa: PLC0415 - tantivy is of no use to exports without an index

    build_index(Export.open(folder), progress=progress)


def _written(path: Path, data: bytes) -> dict[str, int | str]:
    file = HashedFile(path)
    file.write(data)
    return file.finish()


def _version() -> str:
    try:
        return metadata.version("kgshell")
    except metadata.PackageNotFoundError:
        return "not installed"
