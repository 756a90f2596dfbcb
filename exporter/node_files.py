"""Writes nodes/NNNN.jsonl and gathers what the schema and the index say of nodes."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from exporter.array_files import write_array
from exporter.edge_blocks import TypeIds
from exporter.errors import ExportError
from exporter.folder import HashedFile
from exporter.layout import CANDIDATES, OFFSETS, SHARD_NODES, shard_file
from exporter.plain import plain
from exporter.source import Node

_SHAPES = 10_000  # distinct combinations of attributes and kinds held before they are added up
_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
    list: "array",
    tuple: "array",
    dict: "object",
}


def _written_type(value: Any) -> type:
    """The type as which JSON keeps `value`."""
    return NoneType if isinstance(value, float) and not math.isfinite(value) else type(value)


def encode(record: dict[str, Any]) -> bytes:
    """One record as a line of compact JSON; NaN and infinities become null.

    What orjson refuses (integers beyond 64 bits, sets, keys that are no texts, halves of surrogate pairs) is made plain
    in `record` itself. Raises ExportError for a value that JSON has nothing for.
    """
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        try:
            record.update(plain(record))
        except ValueError as error:
            where = f"node {record['node_id']}" if "node_id" in record else f"question {record['id']}"
            raise ExportError(f"{where}: {error}") from error
        return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class AttributeStatistics:
    """For each node type: its nodes, and for each attribute how many have it and as what JSON types."""

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self._counts: dict[str, Counter[str]] = {}
        self._kinds: dict[str, dict[str, set[str]]] = {}
        self._shapes: Counter[tuple[str, tuple[str, ...], tuple[type, ...]]] = Counter()

    def add(self, node_type: str, attributes: Mapping[str, Any]) -> None:
        """Count one node. Most nodes of a type look alike, so whole shapes are counted first."""
        types = tuple(map(type, attributes.values()))
        if float in types:
            types = tuple(map(_written_type, attributes.values()))
        self._shapes[node_type, tuple(attributes), types] += 1
        if len(self._shapes) > _SHAPES:
            self._add_up()

    def _add_up(self) -> None:
        for (node_type, keys, types), count in self._shapes.items():
            self.nodes[node_type] += count
            counts = self._counts.setdefault(node_type, Counter())
            kinds = self._kinds.setdefault(node_type, {})
            for key, value_type in zip(keys, types, strict=True):
                counts[key] += count
                kinds.setdefault(key, set()).add(_KINDS[value_type])
        self._shapes.clear()

    def node_types(self, names: Collection[str]) -> list[dict[str, Any]]:
        """The schema's node types, ids in the order of `names`; coverage is the share of nodes with the attribute."""
        self._add_up()
        return [
            {
                "id": number,
                "name": name,
                "count": self.nodes[name],
                "attributes": {
                    key: {
                        "types": sorted(self._kinds[name][key]),
                        "coverage": coverage(count, self.nodes[name]),
                    }
                    for key, count in self._counts.get(name, {}).items()
                },
            }
            for number, name in enumerate(names)
        ]


def coverage(count: int, total: int) -> float:
    """`count` of `total` as a share with four places, rounded down so that 1.0 means all."""
    return math.floor(count / total * 10_000) / 10_000


class NodeFiles:
    """Writes records in the order of their ids. Memory: 13 bytes a node.

    `types` are the first node types in the order of their ids; further ones follow as they occur.
    """

    def __init__(self, files: Path, candidates: Collection[str] | None, types: Collection[str] = ()) -> None:
        self._files = files
        self._candidates = None if candidates is None else frozenset(candidates)
        self._types: dict[str, int] = {name: number for number, name in enumerate(types)}
        self._type_ids = array("i")
        self._offsets = array("q")
        self._is_candidate = bytearray()
        self._shard: HashedFile | None = None
        self._statistics = AttributeStatistics()
        self.written: dict[str, dict[str, int | str]] = {}
        (files / "nodes").mkdir()

    @property
    def count(self) -> int:
        return len(self._offsets)

    def add(self, node: Node) -> None:
        """Write the next node."""
        node_id = len(self._offsets)
        if node_id % SHARD_NODES == 0:
            self._finish_shard()
            self._shard = HashedFile(self._files / shard_file(node_id // SHARD_NODES))
        assert self._shard is not None
        candidate = self._candidates is None or node.type in self._candidates
        record: dict[str, Any] = {
            "node_id": node_id,
            "node_type": node.type,
            "name": node.name,
            "is_candidate": candidate,
            "attributes": {"source_id": node.source_id, **node.attributes},
        }
        line = encode(record)
        self._offsets.append(self._shard.size)
        self._type_ids.append(self._types.setdefault(node.type, len(self._types)))
        self._is_candidate.append(candidate)
        self._statistics.add(node.type, record["attributes"])
        self._shard.write(line)

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self.written[self._shard.path.relative_to(self._files).as_posix()] = self._shard.finish()

    def finish(self, export: Path) -> dict[str, dict[str, int | str]]:
        """Put the last shard on disk and write the index into the folder `export`; returns its entries in the manifest.

        Raises ExportError for a candidate type without nodes.
        """
        self._finish_shard()
        for name in self._candidates or ():
            if name not in self._types:
                raise ExportError(
                    f"no node has the candidate type '{name}'", f"node types: {', '.join(map(str, self._types))}"
                )
        return {
            OFFSETS: _saved(export / OFFSETS, np.frombuffer(self._offsets, np.int64)),
            CANDIDATES: _saved(export / CANDIDATES, np.frombuffer(self._is_candidate, np.bool_)),
        }

    @property
    def type_names(self) -> list[str]:
        """Node type names by id."""
        return list(self._types)

    @property
    def type_ids(self) -> TypeIds:
        """The type id of each node, in as few bytes as they need: edges look many of them up."""
        return np.frombuffer(self._type_ids, np.int32).astype(np.min_scalar_type(len(self._types)))

    def node_types(self) -> list[dict[str, Any]]:
        """The schema's node types."""
        return self._statistics.node_types(self._types)


def _saved(path: Path, values: NDArray[Any]) -> dict[str, int | str]:
    path.parent.mkdir(exist_ok=True)
    file = HashedFile(path)
    file.write_by(partial(write_array, values))
    return file.finish()
