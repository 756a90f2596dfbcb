"""What the harness looks up in a graph, besides the files that an agent reads: neighbours, names, full text.

It is built with the export, else when first used, and shared by all processes that read the same export.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from exporter.documents import document_maker
from exporter.index.adjacency import Adjacency, Direction, NodeIds
from exporter.index.baseline import Baseline, BaselineWriter
from exporter.index.labels import Labels, LabelWriter
from exporter.index.place import part
from exporter.index.text import Hit, Hits, TextIndex, TextWriter
from exporter.layout import FILES, SHARD_NODES, shard_file
from exporter.read import Export
from exporter.source import Progress

__all__ = [
    "Adjacency",
    "Baseline",
    "Direction",
    "Hit",
    "Hits",
    "Index",
    "Labels",
    "NodeIds",
    "TextIndex",
    "build_index",
    "open_baseline",
]

_TEXT_VERSION = "2"  # changes with what is indexed of a node, and how


class Index:
    """The index of one export. Safe to use from several threads."""

    def __init__(self, export: Export, adjacency: Adjacency, labels: Labels, text: TextIndex) -> None:
        self.export = export
        self.adjacency = adjacency
        self.labels = labels
        self.text = text
        self._document = document_maker(export.manifest["source"])

    @classmethod
    def open(cls, export: Export, cache: Path | None = None, progress: Progress | None = None) -> Index:
        """Open the index, built where it isn't there yet: in the export, or in `cache` where that can't be written.

        `cache` is by default in the user's cache. Raises ExportError where the export is damaged or neither place can
        be written.
        """

        adjacency, text = build_index(export, cache, progress)
        return cls(export, Adjacency(adjacency), Labels(text), TextIndex(text / "bm25"))

    def documents(self, nodes: Iterable[int]) -> Iterator[str]:
        """The documents of nodes, as they were indexed."""
        return map(self._document, self.export.records(nodes))


def build_index(export: Export, cache: Path | None = None, progress: Progress | None = None) -> tuple[Path, Path]:
    """Build what isn't there yet; returns the folders of adjacency and text. Arguments, errors as of `Index.open`."""

    def adjacency(folder: Path) -> None:
        from exporter.index import build_adjacency  # noqa: PLC0415 - what takes long to import and is rarely needed

        build_adjacency.build_adjacency(export.files, export.schema, folder, progress)

    def text(folder: Path) -> None:
        _build_text(export, folder, progress)

    return (
        part(export, "adjacency", "1", adjacency, cache=cache, progress=progress),
        part(export, "text", _TEXT_VERSION, text, cache=cache, progress=progress),
    )


def open_baseline(export: Export, cache: Path | None = None, progress: Progress | None = None) -> Baseline:
    """STaRK's BM25 baseline over the candidates' documents; arguments and errors as of `Index.open`."""

    def build(folder: Path) -> None:
        writer = BaselineWriter(folder)
        document = document_maker(export.manifest["source"])
        for record in _told(export, "BM25 baseline", progress):
            if record["is_candidate"]:
                writer.add(record["node_id"], document(record))
        writer.finish()

    return Baseline(part(export, "baseline", _TEXT_VERSION, build, cache=cache, progress=progress))


def _build_text(export: Export, folder: Path, progress: Progress | None) -> None:
    """Labels and BM25 index, in one pass over the records."""
    (folder / "bm25").mkdir()
    writer = TextWriter(folder / "bm25")
    document = document_maker(export.manifest["source"])
    types = [item["name"] for item in export.schema["node_types"]]
    with LabelWriter(folder, types) as labels:
        for record in _told(export, "text index", progress):
            labels.add(record["name"], record["node_type"])
            writer.add(record["name"], document(record))
    writer.finish()


def _told(export: Export, stage: str, progress: Progress | None) -> Iterator[dict[str, Any]]:
    """Every node's record; progress is told shard by shard."""
    files = export.manifest["files"]
    shards = [files[f"{FILES}/{shard_file(number)}"]["bytes"] for number in range(-(-export.node_count // SHARD_NODES))]
    for record in export.nodes():
        if progress is not None and record["node_id"] % SHARD_NODES == 0:
            progress(stage, sum(shards[: record["node_id"] // SHARD_NODES]), sum(shards))
        yield record
    if progress is not None:
        progress(stage, sum(shards), sum(shards))
