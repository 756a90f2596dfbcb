"""The part of the check that reads nodes: records, their order, the index, and the schema's node types."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter.counted import counted
from exporter.edge_blocks import TypeIds
from exporter.fault import Fault
from exporter.layout import CANDIDATES, FILES, INDEX, OFFSETS, RECORD_KEYS, SCHEMA, SHARD_NODES, shard_file
from exporter.node_files import AttributeStatistics
from exporter.rows import parse_json


def index_faults(path: Path, count: int) -> list[Fault]:
    """Index files of the export in `path` that are missing, or are not for `count` nodes."""
    return [fault for file in INDEX if (fault := _index(path, file, count)[1]) is not None]


def _index(path: Path, file: str, count: int) -> tuple[NDArray[Any] | None, Fault | None]:
    """The index file, memory-mapped, if it is one for `count` nodes, and else what is wrong with it."""
    try:
        loaded: NDArray[Any] = np.load(path / file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        return None, Fault(file, None, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    if loaded.dtype != np.dtype(INDEX[file]) or loaded.shape != (count,):
        return None, Fault(file, None, f"holds {loaded.shape} {loaded.dtype}, not one entry for each node")
    return loaded, None


class NodeCheck:
    """Reads every record once. After `faults` is exhausted, `type_ids` holds the type of each node.

    Where a record can't be read, `complete` is False and edges can't be checked against types.
    """

    def __init__(self, path: Path, schema: dict[str, Any]) -> None:
        self._path = path
        self._schema = schema
        self._types = {item["name"]: number for number, item in enumerate(schema["node_types"])}
        self._type_ids = array("i")
        self._statistics = AttributeStatistics()
        self.complete = True

    @property
    def type_ids(self) -> TypeIds:
        return np.frombuffer(self._type_ids, np.int32)

    def faults(self) -> Iterator[Fault]:
        """Every fault of the node files, and where the index contradicts them."""
        offsets, candidates = (_index(self._path, file, self._schema["nodes"])[0] for file in INDEX)
        count = self._schema["nodes"]
        for shard in range(-(-count // SHARD_NODES)):
            yield from self._shard_faults(shard, min(SHARD_NODES, count - shard * SHARD_NODES), offsets, candidates)
        if self.complete:
            yield from self._schema_faults()

    def _shard_faults(
        self, shard: int, count: int, offsets: NDArray[Any] | None, candidates: NDArray[Any] | None
    ) -> Iterator[Fault]:
        file = f"{FILES}/{shard_file(shard)}"
        first = shard * SHARD_NODES
        expected = None if offsets is None else offsets[first : first + count].tolist()
        allowed = None if candidates is None else candidates[first : first + count].tolist()
        line, position = 0, 0
        try:
            with (self._path / file).open("rb") as opened:
                for line, raw in enumerate(opened, 1):
                    if line > count:
                        break
                    record, problem = self._record(raw, first + line - 1)
                    if problem:
                        self.complete = False
                        yield Fault(file, line, problem)
                    elif allowed is not None and record["is_candidate"] is not allowed[line - 1]:
                        yield Fault(file, line, f"'is_candidate' is not what {CANDIDATES} says")
                    if expected is not None and expected[line - 1] != position:
                        yield Fault(file, line, f"begins at byte {position}, but {OFFSETS} says {expected[line - 1]}")
                        expected = None  # one shift moves all that follow
                    position += len(raw)
        except OSError as error:
            yield Fault(file, None, f"cannot be read: {error.strerror}")
        if line != count:
            self.complete = False
            yield Fault(file, line, f"{'more' if line > count else 'fewer'} than {counted(count, 'record')}")

    def _record(self, raw: bytes, node_id: int) -> tuple[dict[str, Any], str | None]:
        """The record, counted, and what is wrong with it."""
        try:
            record = parse_json(raw)
        except ValueError as error:
            return {}, str(error)
        problem = self._problem(record, node_id)
        if not raw.endswith(b"\n"):
            problem = "no line feed at the end"
        if problem is None:
            self._type_ids.append(self._types[record["node_type"]])
            self._statistics.add(record["node_type"], record["attributes"])
        return record, problem

    def _problem(self, record: Any, node_id: int) -> str | None:
        if not isinstance(record, dict) or tuple(record) != RECORD_KEYS:
            return f"not an object with the keys {', '.join(RECORD_KEYS)}"
        if record["node_id"] != node_id or isinstance(record["node_id"], bool):
            return f"node_id is {record['node_id']!r}, but {node_id} belongs here"
        if not isinstance(record["node_type"], str) or record["node_type"] not in self._types:
            return f"node_type {record['node_type']!r} is not in the schema"
        if not isinstance(record["name"], str) or not isinstance(record["is_candidate"], bool):
            return "name must be a text and is_candidate true or false"
        if not isinstance(record["attributes"], dict) or "source_id" not in record["attributes"]:
            return "attributes must be an object with source_id"
        return None

    def _schema_faults(self) -> Iterator[Fault]:
        found = {item["name"]: item for item in self._statistics.node_types(self._types)}
        for said in self._schema["node_types"]:
            for key in ("count", "attributes"):
                if said[key] != found[said["name"]][key]:
                    yield Fault(SCHEMA, None, f"node type '{said['name']}': '{key}' is not what the records have")
