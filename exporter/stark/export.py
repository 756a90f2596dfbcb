"""Exports one of STaRK's graphs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from exporter.errors import ExportError
from exporter.read import Export
from exporter.source import Progress, Turn
from exporter.stark.datasets import DATASETS
from exporter.stark.places import Place


def export_stark(
    name: str,
    place: Place,
    out: Path,
    *,
    queries: Path | None = None,
    candidates: Collection[str] | None = None,
    reuse: bool = False,
    index: bool = False,
    progress: Progress | None = None,
    turn: Turn | None = None,
) -> Export:
    """Export the graph `name` (prime, mag or amazon) from `place` into the new folder `out`.

    `queries` replaces STaRK's questions, `candidates` its candidate types. The other arguments and what is raised are
    as of `export_tables`. What differs from the published data is in the manifest, under source and warnings.
    """
    # polars takes a third of a second to import
    from exporter.stark.source import StarkSource  # noqa: PLC0415
    from exporter.write import write_export  # noqa: PLC0415

    if name not in DATASETS:
        raise ExportError(f"STaRK has no graph '{name}'", f"graphs: {', '.join(DATASETS)}")
    dataset = DATASETS[name]
    source = StarkSource(dataset, place, out.absolute().parent, progress)
    kept = dataset.candidates if candidates is None else candidates
    return write_export(
        source, out, queries=queries, candidates=kept, name=name, reuse=reuse, index=index, progress=progress, turn=turn
    )
