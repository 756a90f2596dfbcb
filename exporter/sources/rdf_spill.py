"""Literals and edges on disk until all resources are known: literals by shards of nodes, edges in one file."""

from __future__ import annotations

import json
import mmap
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from exporter.layout import SHARD_NODES
from exporter.rows import parse_json

_KEPT_BYTES = 64 * 1024 * 1024  # of literals in memory
_KEPT_EDGES = 1_000_000
_WIDTH = 3  # source, property, target
Literal = tuple[int, Any, str]  # code of the property, value, what its name gets behind it


class Spill:
    """Memory: at most so many bytes of literals and so many edges, and a shard of nodes while it is read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.edges = folder / "edges"
        self._lines: dict[int, list[bytes]] = {}
        self._bytes = 0
        self._rows = array("q")
        self.edges.touch()

    def add_literal(self, node: int, code: int, value: Any, suffix: str) -> None:
        try:
            line = orjson.dumps((node, code, value, suffix), option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # an integer beyond 64 bits
            line = json.dumps((node, code, value, suffix)).encode() + b"\n"
        self._lines.setdefault(node // SHARD_NODES, []).append(line)
        self._bytes += len(line)
        if self._bytes > _KEPT_BYTES:
            self._flush_literals()

    def add_edge(self, source: int, code: int, target: int) -> None:
        self._rows.extend((source, code, target))
        if len(self._rows) > _KEPT_EDGES * _WIDTH:
            self._flush_edges()

    def flush(self) -> None:
        """Put everything on disk."""
        self._flush_literals()
        self._flush_edges()

    def _flush_literals(self) -> None:
        for shard, lines in self._lines.items():
            with (self._folder / str(shard)).open("ab") as file:
                file.write(b"".join(lines))
        self._lines.clear()
        self._bytes = 0

    def _flush_edges(self) -> None:
        with self.edges.open("ab") as file:
            file.write(self._rows.tobytes())
        self._rows = array("q")

    def literals(self, nodes: int) -> Iterator[tuple[int, list[list[Literal]]]]:
        """For each shard its first node, and the literals of each of its nodes in the order they were added in."""
        for first in range(0, nodes, SHARD_NODES):
            group: list[list[Literal]] = [[] for _ in range(min(SHARD_NODES, nodes - first))]
            path = self._folder / str(first // SHARD_NODES)
            if path.exists():
                with path.open("rb") as file:
                    for line in file:
                        node, *literal = parse_json(line)
                        group[node - first].append((literal[0], literal[1], literal[2]))
                path.unlink()
            yield first, group

    def mapped_edges(self) -> mmap.mmap | None:
        """The edges, for `read_edges`; they can be read when the folder is gone. None where there are none."""
        if not self.edges.stat().st_size:
            return None
        with self.edges.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def read_edges(mapped: mmap.mmap) -> Iterator[NDArray[np.int64]]:
    """Rows of source, property and target, some at a time; what has been read leaves memory."""
    step = _KEPT_EDGES * _WIDTH * 8
    for start in range(0, len(mapped), step):
        rows = np.frombuffer(mapped, np.int64, min(step, len(mapped) - start) // 8, start)
        yield rows.reshape(-1, _WIDTH)
        mapped.madvise(mmap.MADV_DONTNEED)
