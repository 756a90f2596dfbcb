"""What can be said of every export, whatever the source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from exporter.read import Export
from exporter.rows import OnBadRow
from exporter.source import Progress, Source


@dataclass(frozen=True)
class Options:
    """`queries` is a file of questions with ids in the source's own terms, `candidates` the node types that may be
    answers (all by default), `name` the graph's name (by default the folder's). With `reuse`, an export that is there
    already, or that another process makes meanwhile, is opened instead. With `index`, what the harness looks up is
    built too, which is else done when it is first needed."""

    queries: Path | None = None
    candidates: Collection[str] | None = None
    name: str | None = None
    reuse: bool = False
    index: bool = False
    on_bad_row: OnBadRow = "stop"
    progress: Progress | None = None

    def write(self, source: Source, out: Path) -> Export:
        """Export `source` into the new folder `out`. Raises ExportError and leaves nothing behind."""
        from exporter.write import write_export  # noqa: PLC0415 - polars takes a third of a second to import

        return write_export(
            source,
            out,
            queries=self.queries,
            candidates=self.candidates,
            name=self.name,
            reuse=self.reuse,
            index=self.index,
            progress=self.progress,
        )
