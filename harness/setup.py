"""The sandbox that a mode's agent gets: what it sees of the export, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from exporter import Export
from exporter.shown import shown_files
from exporter.view import WHOLE
from harness.errors import UserError
from harness.modes import Sandbox, View
from sandbox import GRAPH, Spec


def sandbox_spec(
    export: Export,
    view: View,
    limits: Sandbox,
    labels: Mapping[str, str],
    mounts: Mapping[str, Path] | None = None,
) -> Spec:
    """What to open for one attempt; `mounts` are shown besides the graph. Raises UserError, ExportError."""
    shown: dict[str, Path] = {}
    graph = export.files if view.files else None
    if view.files and view.of_export != WHOLE:
        graph = None
        made = platformdirs.user_cache_path("kgshell") / "views"
        try:
            parts = shown_files(export, view.of_export, made)
        except OSError as error:
            raise UserError(
                f"can't write {made}: {error.strerror}", "set XDG_CACHE_HOME to a folder of yours"
            ) from None
        shown = {f"{GRAPH}/{name}": path for name, path in parts.items()}
    return Spec(
        graph=graph,
        limits=limits.limits(),
        labels=labels,
        mounts={**shown, **(mounts or {})},
        programs=view.programs,
    )
