"""Makes the adjacency file from an export's edge files.

Edges are put in order by transposing sparse matrices, a counting sort that takes time in proportion to their number.
A relation of more than `MOST` edges lies in a scratch file meanwhile and is put in order piece by piece, so memory
doesn't grow with the number of edges: about 25 bytes for each of `MOST` edges, and 16 a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from exporter.counted import counted
from exporter.errors import ExportError
from exporter.index.adjacency import ARRAYS, HEADER, NODE_TYPE, NodeIds
from exporter.inputs import whole_lines
from exporter.source import Progress

MOST = 20_000_000  # edges put in order at once
_BLOCK_BYTES = 16 * 1024 * 1024
_CHUNK = 1 << 20
_DAMAGED = "see what is wrong with `harness check`, or make the export again"


def build_adjacency(
    files: Path, schema: Mapping[str, Any], folder: Path, progress: Progress | None = None, most: int = MOST
) -> None:
    """Write the adjacency of all relations into `folder`: those of `schema`, whose edges lie in `files`.

    Raises ExportError where an edge file is damaged.
    """
    count = schema["nodes"]
    if count > np.iinfo(NODE_TYPE).max:
        raise ExportError(f"{files}: the index takes up to {np.iinfo(NODE_TYPE).max} nodes")
    builder = _Builder(count, folder, most)
    with (folder / ARRAYS).open("xb") as file:
        file.write(bytes(8))  # a file of no bytes can't be mapped
        relations = [builder.relation(file, blocks) for blocks in _relations(files, schema, progress)]
    (folder / HEADER).write_bytes(orjson.dumps({"nodes": count, "relations": relations}))


class _Blocks:
    """The edges of one relation, as they come out of its file."""

    def __init__(self, files: Path, relation: Mapping[str, Any], nodes: int, progress: Callable[[int], None]) -> None:
        self.path = files / relation["file"]
        self.symmetric: bool = relation["symmetric"]
        self.most = relation["rows"] * (2 if self.symmetric else 1)
        self._rows = relation["rows"]
        others = map(str, range(len(relation["attributes"])))
        self._schema = {"source": pl.Int32, "target": pl.Int32, **dict.fromkeys(others, pl.String)}
        self._nodes = nodes
        self._progress = progress

    def __iter__(self) -> Iterator[NodeIds]:
        """Arrays of two rows, sources and targets; those of a symmetric relation from both ends."""
        rows = 0
        for pairs in self._read():
            rows += pairs.shape[1]
            if rows > self._rows:
                raise self._damaged(f"has more than {counted(self._rows, 'edge')}")
            if pairs.min() < 0 or pairs.max() >= self._nodes:
                raise self._damaged("names a node that the graph doesn't have")
            yield pairs
            if self.symmetric:
                yield pairs[::-1, pairs[0] != pairs[1]]
        if rows < self._rows:
            raise self._damaged(f"has {counted(rows, 'edge')}, not {self._rows}")

    def _damaged(self, what: str) -> ExportError:
        return ExportError(f"damaged export: {self.path} {what}", _DAMAGED)

    def _read(self) -> Iterator[NodeIds]:
        try:
            with self.path.open("rb") as file:
                self._progress(len(file.readline()))
                for text in whole_lines(file, _BLOCK_BYTES):
                    yield self._parsed(text)
                    self._progress(len(text))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._damaged(f"cannot be read: {error}") from error

    def _parsed(self, text: bytes) -> NodeIds:
        frame = pl.read_csv(text, separator="\t", has_header=False, quote_char=None, schema=self._schema)
        ids = [frame["source"], frame["target"]]
        if any(column.null_count() for column in ids):
            raise self._damaged("has a row without two ids")
        return np.stack([column.to_numpy() for column in ids])


def _relations(files: Path, schema: Mapping[str, Any], progress: Progress | None) -> Iterator[_Blocks]:
    relations = schema["relations"]
    total = sum((files / relation["file"]).stat().st_size for relation in relations)
    done = 0

    def report(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress("adjacency", done, total)

    for relation in relations:
        yield _Blocks(files, relation, schema["nodes"], report)


class _Builder:
    """Puts the edges of one relation after another in order. `nodes` is how many nodes the graph has."""

    def __init__(self, nodes: int, folder: Path, most: int) -> None:
        self.nodes = nodes
        self._scratch = folder / "edges.scratch"
        self._most = most

    def relation(self, file: IO[bytes], blocks: _Blocks) -> list[dict[str, Any]]:
        """Append the arrays of a relation; returns where they lie, side by side."""
        with self._gathered(blocks) as edges:
            if edges.shape[1] > self._most:
                views = [edges] if blocks.symmetric else [edges, edges[::-1]]
                return [self._piecewise(file, view) for view in views]
            forward = self._ordered(edges[0], edges[1], self.nodes)
        matrices = [forward] if blocks.symmetric else [forward, forward.tocsr()]
        return [self._side(file, np.diff(matrix.indptr), iter([matrix.indices])) for matrix in matrices]

    @contextmanager
    def _gathered(self, blocks: _Blocks) -> Iterator[NodeIds]:
        """All edges of a relation, two rows, in memory or in a file that is mapped."""
        shape = (2, blocks.most)
        edges: NodeIds = (
            np.empty(shape, NODE_TYPE)
            if blocks.most <= self._most
            else np.memmap(self._scratch, NODE_TYPE, "w+", shape=shape)
        )
        end = 0
        for pairs in blocks:
            edges[:, end : end + pairs.shape[1]] = pairs
            end += pairs.shape[1]
        yield edges[:, :end]
        self._scratch.unlink(missing_ok=True)

    def _ordered(self, heads: NodeIds, tails: NodeIds, width: int) -> Any:
        """The edges as columns of a matrix, `heads` below `width`; every column's tails in ascending order."""
        filler = np.zeros(len(heads), np.int8)
        if _ascend(heads, tails):
            starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=width))]).astype(NODE_TYPE)
            return sparse.csc_array((filler, tails, starts), shape=(self.nodes, width))
        rows = np.arange(len(heads) + 1, dtype=NODE_TYPE)
        by_tail = sparse.csr_array((heads, tails, rows), shape=(len(heads), self.nodes)).tocsc()
        back = sparse.csr_array((filler, by_tail.data, by_tail.indptr), shape=(self.nodes, width))
        return back.tocsc()

    def _piecewise(self, file: IO[bytes], edges: NodeIds) -> dict[str, Any]:
        """One side of a relation that is too large to be put in order at once."""
        counts = np.zeros(self.nodes, np.int64)
        for chunk in _chunks(edges):
            counts += np.bincount(chunk[0], minlength=self.nodes)
        return self._side(file, counts, self._pieces(edges, counts))

    def _pieces(self, edges: NodeIds, counts: NDArray[np.int64]) -> Iterator[NodeIds]:
        """Tails in the order of their heads, for a range of heads at a time."""
        ends = np.cumsum(counts)
        low = 0
        while low < self.nodes:
            before = int(ends[low - 1]) if low else 0
            high = max(low + 1, int(ends.searchsorted(before + self._most, "right")))
            size = int(ends[high - 1]) - before
            heads, tails = np.empty(size, NODE_TYPE), np.empty(size, NODE_TYPE)
            end = 0
            for chunk in _chunks(edges):
                inside = (chunk[0] >= low) & (chunk[0] < high)
                found = int(np.count_nonzero(inside))
                heads[end : end + found] = chunk[0][inside]
                tails[end : end + found] = chunk[1][inside]
                end += found
            heads -= low
            yield self._ordered(heads, tails, high - low).indices
            low = high

    def _side(self, file: IO[bytes], counts: NDArray[Any], tails: Iterator[NodeIds]) -> dict[str, Any]:
        heads = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[heads], dtype=np.int64)])
        small = starts[-1] <= np.iinfo(np.uint32).max
        return {
            "heads": _append(file, NODE_TYPE, len(heads), iter([heads])),
            "starts": _append(file, np.dtype(np.uint32 if small else np.uint64), len(starts), iter([starts])),
            "tails": _append(file, NODE_TYPE, int(starts[-1]), tails),
        }


def _ascend(heads: NodeIds, tails: NodeIds) -> bool:
    """Whether edges are in order already: by head, then by tail."""
    later, same = heads[1:] > heads[:-1], heads[1:] == heads[:-1]
    return bool((later | (same & (tails[1:] >= tails[:-1]))).all())


def _append(file: IO[bytes], dtype: np.dtype[Any], count: int, pieces: Iterator[NDArray[Any]]) -> dict[str, Any]:
    file.write(bytes(-file.tell() % 8))
    offset = file.tell()
    for piece in pieces:
        file.write(np.ascontiguousarray(piece, dtype).data)
    return {"offset": offset, "count": count, "type": dtype.str}


def _chunks(edges: NodeIds) -> Iterator[NodeIds]:
    for start in range(0, edges.shape[1], _CHUNK):
        yield edges[:, start : start + _CHUNK]
