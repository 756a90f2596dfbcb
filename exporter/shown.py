"""An export's files as a view shows them: what lies where in the agent's graph folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from exporter.describe import data_format
from exporter.layout import DATA_FORMAT, FILES, SCHEMA, pretty
from exporter.read import Export
from exporter.view import WHOLE, View


def shown_files(export: Export, view: View, made: Path) -> dict[str, Path]:
    """Name in the graph folder -> file or folder on this machine, all readable by everyone.

    What differs from the export (DATA_FORMAT.txt, schema.json) is written below `made`, once for an export and a view,
    complete or not at all, so processes may share the folder. The shards and the edge files are the export's own.
    """
    shown = {path.name: path for path in export.files.iterdir() if view.edges or path.name != "edges"}
    if view == WHOLE:
        return shown
    folder = made / f"{export.digest[:32]}-{'edges' if view.edges else 'no-edges'}-{view.words}"
    texts = {DATA_FORMAT: data_format(export.files, export.schema, view).encode()}
    if not view.edges:
        texts[SCHEMA] = pretty(_without_relations(export.schema))
    for name, text in texts.items():
        target = folder / name.removeprefix(f"{FILES}/")
        _write(target, text)
        shown[target.name] = target
    return shown


def _without_relations(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("edges", "relations")}


def _write(target: Path, text: bytes) -> None:
    if target.exists() and target.read_bytes() == text:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text)
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
