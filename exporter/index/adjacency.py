"""One-hop look-ups: for each relation and direction, who is joined to a node.

One memory-mapped file, which processes share, holds three arrays for each side of a relation, in compressed sparse
row form: `heads`, the nodes that have edges there, in order; `starts`, where each one's neighbours begin; `tails`,
the neighbours, each head's in ascending order, parallel edges kept. A symmetric relation has one side only, with
every edge in it from both of its ends. Size: about 8 bytes an edge, and 16 a node and relation at most.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from exporter.errors import ExportError

Direction = Literal["both", "out", "in"]
NodeIds = NDArray[np.int32]

ARRAYS = "adjacency.bin"
HEADER = "adjacency.json"
NODE_TYPE = np.dtype(np.int32)
_NONE = np.empty(0, NODE_TYPE)


class Side(NamedTuple):
    """The edges of a relation as seen from one of their ends."""

    heads: NodeIds
    starts: NDArray[np.unsignedinteger[Any]]
    tails: NodeIds

    def of(self, node: int) -> NodeIds:
        """The neighbours of a node, ascending, once for each edge."""
        place = self.heads.searchsorted(NODE_TYPE.type(node))  # of the array's own type: else all of it is converted
        if place == len(self.heads) or self.heads[place] != node:
            return _NONE
        return self.tails[self.starts[place] : self.starts[place + 1]]


class Adjacency:
    """Neighbours by relation id. Opening costs no more than reading the list of arrays. Safe to use from threads."""

    def __init__(self, folder: Path) -> None:
        try:
            header = orjson.loads((folder / HEADER).read_bytes())
            with (folder / ARRAYS).open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._sides = [tuple(_side(data, arrays) for arrays in sides) for sides in header["relations"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ExportError(f"damaged index {folder}: {error}", "remove that folder; it is made again") from error
        self.nodes: int = header["nodes"]

    def neighbors(self, node: int, relation: int | None = None, direction: Direction = "both") -> NodeIds:
        """The nodes at the other ends of a node's edges: of one relation or of all, along them, against them or both.

        One entry for each edge and end, so a node occurs as often as edges join it; ascending within a relation and
        direction. A symmetric relation has the same edges in every direction. Raises KeyError for an unknown node
        or relation.
        """
        if not 0 <= node < self.nodes:
            raise KeyError(node)
        found = [side.of(node) for side in self._wanted(relation, direction)]
        return found[0] if len(found) == 1 else np.concatenate(found) if found else _NONE

    def _wanted(self, relation: int | None, direction: Direction) -> Iterator[Side]:
        if relation is None:
            for sides in self._sides:
                yield from _facing(sides, direction)
        elif 0 <= relation < len(self._sides):
            yield from _facing(self._sides[relation], direction)
        else:
            raise KeyError(relation)


def _facing(sides: tuple[Side, ...], direction: Direction) -> tuple[Side, ...]:
    if len(sides) == 1 or direction == "both":
        return sides
    return sides[:1] if direction == "out" else sides[1:]


def _side(data: mmap.mmap, arrays: dict[str, dict[str, Any]]) -> Side:
    places = (arrays[name] for name in Side._fields)
    return Side(*(np.frombuffer(data, place["type"], place["count"], place["offset"]) for place in places))
