"""An export read back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from exporter.counted import counted
from exporter.edge_blocks import checked_edge_blocks
from exporter.errors import ExportError
from exporter.layout import (
    CANDIDATES,
    FILES,
    FORMAT,
    INDEX,
    MANIFEST,
    OFFSETS,
    QUERIES,
    SCHEMA,
    SHARD_NODES,
    shard_file,
)
from exporter.rows import parse_json

_MANIFEST_KEYS = {"name", "source", "nodes", "edges", "relations", "queries", "files", "canary"}
_DAMAGED = "see what is wrong with `harness check`, or make the export again"


class Export:
    """A graph as files. Opening reads the manifest and the schema and compares counts and file sizes, nothing else.

    Safe to use from several threads. What is large is read on demand: `node` and `is_candidate` look into
    memory-mapped indexes, which processes share.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], schema: dict[str, Any]) -> None:
        self.path = path
        self.files = path / FILES
        self.manifest = manifest
        self.schema = schema

    @classmethod
    def open(cls, path: Path) -> Export:
        """Open the export in the folder `path`. Raises ExportError where there is none, or it is visibly damaged."""
        path = path.absolute()
        if not path.is_dir():
            raise ExportError(f"no export at {path}: no such folder", "make one with `harness export`")
        if not (path / MANIFEST).is_file():
            raise ExportError(f"{path} is not an export: it has no {MANIFEST}", "make one with `harness export`")
        manifest = _json_object(path / MANIFEST)
        if manifest.get("format") != FORMAT:
            raise ExportError(
                f"{path / MANIFEST}: format {manifest.get('format')!r}, but this version reads format {FORMAT}",
                "make the export again with this version",
            )
        missing = _MANIFEST_KEYS - manifest.keys()
        if missing:
            raise ExportError(f"damaged export: {path / MANIFEST} has no {', '.join(sorted(missing))}", _DAMAGED)
        export = cls(path, manifest, _json_object(path / SCHEMA))
        export._compare_sizes()
        export._compare_counts()
        return export

    @property
    def _entries(self) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = self.manifest["files"]
        return entries

    def _compare_sizes(self) -> None:
        for file, entry in self._entries.items():
            try:
                size, found = entry["bytes"], (self.path / file).stat().st_size
            except OSError as error:
                raise ExportError(f"damaged export: {self.path / file}: {error.strerror}", _DAMAGED) from error
            if found != size:
                raise ExportError(
                    f"damaged export: {self.path / file} has {counted(found, 'byte')}, not {size}", _DAMAGED
                )

    def _compare_counts(self) -> None:
        told, found = self.manifest["nodes"], self.schema.get("nodes")
        if told != found:
            nodes = counted(told, "node")
            raise ExportError(f"damaged export: {self.path / MANIFEST} has {nodes}, the schema {found}", _DAMAGED)
        for file in INDEX:
            self._index(file)

    @property
    def name(self) -> str:
        """The graph's name."""
        return str(self.manifest["name"])

    @property
    def node_count(self) -> int:
        """How many nodes there are; their ids run from 0."""
        return int(self.manifest["nodes"])

    @cached_property
    def digest(self) -> str:
        """sha256 over the paths and hashes of all that lies in files/: what an agent can see."""
        entries = sorted(self._entries.items())
        seen = "".join(f"{path} {entry['sha256']}\n" for path, entry in entries if path.startswith(f"{FILES}/"))
        return hashlib.sha256(seen.encode()).hexdigest()

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each node's line begins in its shard, memory-mapped."""
        return self._index(OFFSETS)

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """Whether each node may be an answer, memory-mapped."""
        return self._index(CANDIDATES)

    def _index(self, file: str) -> NDArray[Any]:
        try:
            index: NDArray[Any] = np.load(self.path / file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ExportError(f"damaged export: cannot read {self.path / file} ({error})", _DAMAGED) from error
        if index.dtype != np.dtype(INDEX[file]) or index.shape != (self.node_count,):
            raise ExportError(f"damaged export: {self.path / file} does not belong to this graph", _DAMAGED)
        return index.view(np.ndarray)  # indexing the subclass for mapped files is slow

    def is_candidate(self, node_id: int) -> bool:
        """Whether the node may be an answer; False for an id that the graph doesn't have."""
        return 0 <= node_id < self.node_count and bool(self.candidates[node_id])

    def node(self, node_id: int) -> dict[str, Any]:
        """The full record of a node. Raises KeyError for an id that the graph doesn't have."""
        return next(self.records([node_id]))

    def records(self, node_ids: Iterable[int]) -> Iterator[dict[str, Any]]:
        """The full records of nodes, in the order of the ids; quickest where they ascend. Raises as `node`."""
        for node_id, line in self.lines(node_ids):
            try:
                record = _loads(line)
            except ValueError as error:
                raise self._misplaced("no record of node", node_id) from error
            if record["node_id"] != node_id:
                raise self._misplaced("another node than", node_id)
            yield record

    def lines(self, node_ids: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Ids, and lines as they are in the node files. Raises KeyError for an id that the graph doesn't have."""
        file: BinaryIO | None = None
        opened = -1
        try:
            for node_id in node_ids:
                if not 0 <= node_id < self.node_count:
                    raise KeyError(node_id)
                if file is None or node_id // SHARD_NODES != opened:
                    if file is not None:
                        file.close()
                    opened = node_id // SHARD_NODES
                    file = (self.files / shard_file(opened)).open("rb", buffering=0)
                start, following = int(self.offsets[node_id]), node_id + 1
                last = following == self.node_count or following % SHARD_NODES == 0
                end = os.fstat(file.fileno()).st_size if last else int(self.offsets[following])
                yield node_id, os.pread(file.fileno(), max(0, end - start), start)
        finally:
            if file is not None:
                file.close()

    def _misplaced(self, what: str, node_id: int) -> ExportError:
        path, start = self.files / shard_file(node_id // SHARD_NODES), int(self.offsets[node_id])
        return ExportError(f"damaged export: {path}: {what} {node_id} at byte {start}", _DAMAGED)

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Every record, in the order of node ids."""
        for shard in range(-(-self.node_count // SHARD_NODES)):
            with (self.files / shard_file(shard)).open("rb") as file:
                for line in file:
                    yield _loads(line)

    def edges(self, relation_id: int) -> Iterator[tuple[int, int, tuple[str | None, ...]]]:
        """Every edge of a relation: source, target, and the attributes that the schema names."""
        relation = self.schema["relations"][relation_id]
        width = 2 + len(relation["attributes"])
        for block in checked_edge_blocks(self.files / relation["file"], width):
            yield from zip(block.sources.tolist(), block.targets.tolist(), block.attributes(width), strict=True)

    def source_ids(self) -> dict[str, int]:
        """Node ids by the source's own ids, as texts. Reads all nodes."""
        return {str(record["attributes"]["source_id"]): record["node_id"] for record in self.nodes()}

    def queries(self) -> Iterator[dict[str, Any]]:
        """The graph's own questions: `id`, `query`, `answer_ids` (node ids), `split`, and what else its file had."""
        if QUERIES not in self._entries:
            return
        with (self.path / QUERIES).open("rb") as file:
            for line in file:
                question = _loads(line)
                del question["canary"]
                yield question


def _loads(line: bytes) -> dict[str, Any]:
    value = parse_json(line)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _json_object(path: Path) -> dict[str, Any]:
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ExportError(f"damaged export: cannot read {path}: {error.strerror}", _DAMAGED) from error
    except orjson.JSONDecodeError as error:
        raise ExportError(f"damaged export: {path} is not valid JSON ({error})", _DAMAGED) from error
    if not isinstance(value, dict):
        raise ExportError(f"damaged export: {path} is not a JSON object", _DAMAGED)
    return value
