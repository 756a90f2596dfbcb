"""One of STaRK's graphs as a source of the writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from exporter.counted import counted
from exporter.edge_arrays import ascending
from exporter.plain import check_size
from exporter.questions import mapped_questions
from exporter.rows import bad_questions
from exporter.source import EdgeBlock, Node, Progress
from exporter.stark.dataset import Dataset, text_of
from exporter.stark.files import ProcessedFiles
from exporter.stark.places import NODES, Place
from exporter.stark.questions import StarkQuestions
from exporter.stark.reader import READER
from exporter.torch_file import Array

_RESERVED = "source_id"


class StarkSource:
    """Node ids, type ids and relation ids are STaRK's own; edges keep the direction in which they are stored.

    Raises ExportError that names the file where something can't be read or doesn't fit together. What differs from the
    published data is a warning in `describe`. Memory: all of the nodes' data, which is unpickled at once.
    """

    def __init__(self, dataset: Dataset, place: Place, scratch: Path, progress: Progress | None = None) -> None:
        self._dataset = dataset
        self._files = ProcessedFiles(dataset, place.processed, scratch, progress)
        self._progress = progress
        self._types: Array = np.zeros(0, np.int64)
        self._questions = StarkQuestions(place.qa, self._is_node, self._is_candidate) if place.qa else None
        self._warnings: list[str] = []

    @cached_property
    def node_types(self) -> Sequence[str]:
        return self._names("node_type_dict.pkl", self._dataset.node_types)

    @cached_property
    def relations(self) -> Sequence[str]:
        return self._names("edge_type_dict.pkl", self._dataset.relations)

    def _names(self, file: str, otherwise: Sequence[str]) -> Sequence[str]:
        """Names by id: the file's, and the dataset's where there is no file, as with MAG."""
        if not self._files.has(file):
            return otherwise
        names = self._files.pickled(file)
        if not isinstance(names, dict) or sorted(names, key=str) != sorted(range(len(names)), key=str):
            raise self._files.refused(f"{file} is not a dict of names by id, counted from 0")
        ordered = [names[number] for number in range(len(names))]
        if not all(isinstance(name, str) and name for name in ordered) or len(set(ordered)) < len(ordered):
            raise self._files.refused(f"{file} has a name that is no text, empty or there twice")
        return ordered

    @property
    def left_out(self) -> int:
        return 0

    def _node_id(self, source_id: str) -> int | None:
        known = source_id.isascii() and source_id.isdecimal() and self._is_node(int(source_id))
        return int(source_id) if known else None

    def _is_node(self, node_id: int) -> bool:
        return 0 <= node_id < len(self._types)

    def _is_candidate(self, node_id: int) -> bool:
        return self.node_types[int(self._types[node_id])] in self._dataset.candidates

    def nodes(self) -> Iterator[Node]:
        nodes = self._files.pickled(NODES)
        if not isinstance(nodes, dict) or not nodes or not all(isinstance(info, dict) for info in nodes.values()):
            raise self._files.refused(f"{NODES} is not a dict of nodes by id")
        lacking = next((number for number in range(len(nodes)) if number not in nodes), None)
        if lacking is not None:
            raise self._files.refused(f"{NODES} has no node {lacking}, but higher ones")
        self._types = self._type_ids(len(nodes))
        self._compare("nodes", len(nodes), self._dataset.expected.nodes)
        contradicted = 0
        for node_id, type_id in enumerate(self._types.tolist()):
            info = nodes.pop(node_id)  # its memory is free once it is written
            node_type = self.node_types[type_id]
            contradicted += info.get("type", node_type) != node_type
            yield self._node(node_id, node_type, info)
        if contradicted:
            nodes = counted(contradicted, "node")
            self._warnings.append(f"{nodes} with another 'type' than node_types.pt says, which counts")

    def _node(self, node_id: int, node_type: str, info: Mapping[Any, Any]) -> Node:
        if _RESERVED in info:
            raise self._files.refused(f"node {node_id} has a key '{_RESERVED}', which is kept for the id")
        try:
            check_size(info)
        except ValueError as error:
            raise self._files.refused(f"node {node_id}: {error}") from error
        return Node(node_type, text_of(self._dataset.name_of(node_type, info)), info, node_id)

    def _type_ids(self, count: int) -> Array:
        """The type of each node; all are of the first where no file is needed: in Amazon's graph of products only."""
        if self._files.folder == self._dataset.untyped and not self._files.has("node_types.pt"):
            return np.zeros(count, np.int64)
        return self._ids("node_types.pt", (count,), len(self.node_types), f"{NODES} has {counted(count, 'node')}")

    def _ids(self, file: str, shape: tuple[int, ...], below: int, since: str = "") -> Array:
        """A tensor of ids below `below`, of that shape where its numbers aren't -1; `since` says why it should be."""
        ids = self._files.tensor(file)
        if ids.ndim == len(shape) == 1 and len(ids) != shape[0]:
            raise self._files.refused(f"{file} has {len(ids)} numbers, but {since}")
        if ids.ndim != len(shape) or any(want not in (-1, size) for want, size in zip(shape, ids.shape, strict=True)):
            wanted = " x ".join("any" if size == -1 else str(size) for size in shape)
            found = " x ".join(map(str, ids.shape)) or "a single number"
            raise self._files.refused(f"{file} is {found}, not {wanted}")
        if ids.dtype.kind == "f":
            whole = ids.astype(np.int64)
            if not np.array_equal(whole, ids):
                raise self._files.refused(f"{file} has numbers that are no ids")
            ids = whole
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= below):
            raise self._files.refused(f"{file} has ids from {ids.min()} to {ids.max()}, not 0 to {below - 1}")
        return ids

    def edges(self) -> Iterator[EdgeBlock]:
        ends = self._ids("edge_index.pt", (2, -1), len(self._types))
        count = ends.shape[1]
        types = self._ids("edge_types.pt", (count,), len(self.relations), f"edge_index.pt has {counted(count, 'edge')}")
        for number, name in enumerate(self.relations):
            rows = np.flatnonzero(types == number)
            if len(rows):
                sources, targets = (np.ascontiguousarray(side[rows], np.int64) for side in ends)
                yield EdgeBlock(name, sources, targets, whole=True)
        expected = self._dataset.expected
        if expected.undirected:
            self._compare("edges without direction", _pairs(ends, len(self._types)), expected.edges)
        else:
            self._compare("edge rows", ends.shape[1], expected.edges)

    def questions(self) -> Iterator[dict[str, Any]]:
        if self._questions is None:
            self._warnings.append("no questions found beside the graph")
            return
        yield from self._questions.read(self._progress)
        expected = self._dataset.expected
        self._compare("questions", self._questions.synthesised, expected.questions)
        for split, count in self._questions.splits.items():
            if split in expected.splits:
                self._compare(f"questions in split {split}", count, expected.splits[split])
        if self._questions.without_split:
            self._warnings.append(f"{counted(self._questions.without_split, 'question')} in no split")

    def questions_of(self, path: Path) -> Iterator[dict[str, Any]]:
        return mapped_questions(path, self._node_id, bad_questions(), "STaRK's node ids")

    def _compare(self, what: str, found: int, published: int) -> None:
        if found != published:
            self._warnings.append(f"{found:,} {what}, but the published data has {published:,}")

    def describe(self) -> dict[str, Any]:
        inputs = self._files.describe()
        sha256 = self._dataset.archive_sha256
        if len(inputs) == 1 and sha256 not in (None, inputs[0]["sha256"]):
            self._warnings.append(f"the archive's sha256 is {inputs[0]['sha256']}, but the published one's is {sha256}")
        notes: Counter[str] = Counter()
        if self._questions is not None:
            inputs += self._questions.inputs
            notes["questions with gold that is no candidate"] = self._questions.gold_no_candidate
        return {
            "kind": "stark",
            "dataset": self._dataset.name,
            "reader": READER,
            "inputs": inputs,
            "skipped": {},
            "warnings": self._warnings,
            "notes": dict(+notes),
        }


def _pairs(ends: Array, count: int) -> int:
    """How many ordered pairs of nodes are joined, whatever the direction and the relation."""
    keys = np.minimum(ends[0], ends[1]).astype(np.int64)
    keys *= count
    keys += np.maximum(ends[0], ends[1])
    keys = ascending(keys)
    distinct = keys[np.flatnonzero(np.diff(keys, prepend=-1))]
    loops = int(np.count_nonzero(distinct // count == distinct % count))
    return 2 * len(distinct) - loops
