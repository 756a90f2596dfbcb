"""The seam of this package: a source yields nodes and blocks of edges, one writer makes files of them.

A source numbers its nodes itself: the n-th node it yields is node n. It yields all nodes before any edge, and edges
in blocks of one relation each, so that nothing grows with the number of edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[str, int, int], None]
"""Called as `progress(stage, done, total)`, both in bytes; total is 0 where it isn't known."""

Turn = Callable[[bool], None]
"""Called with False where another process makes the same export at the moment, and with True when it is our turn."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `source_id` is the source's own id, kept as an attribute; attribute values are JSON values."""

    type: str
    name: str
    attributes: Mapping[str, Any]
    source_id: str | int


@dataclass(frozen=True, slots=True)
class EdgeBlock:
    """Edges of one relation: node ids of equal length, and a column for each attribute (None where it has none).

    Every block of a relation has the same attributes in the same order. `whole` says that this is the relation's only
    block and has no attributes: it is put in order (by source, then target) before it is written. `undirected` says
    that the relation's edges have no direction; all its blocks say so, or none.
    """

    relation: str
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    attributes: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    whole: bool = False
    undirected: bool = False


class Source(Protocol):
    """Where a graph comes from. `nodes` is exhausted before `edges` is asked for, `edges` before `questions`; each is
    read once."""

    @property
    def node_types(self) -> Sequence[str]:
        """Node types in the order of their ids, as far as the source says; further ones follow as they occur."""

    @property
    def relations(self) -> Sequence[str]:
        """Relations in the order of their ids, likewise."""

    def nodes(self) -> Iterator[Node]:
        """Every node, in the order of their ids."""

    def edges(self) -> Iterator[EdgeBlock]:
        """Every edge, in the source's order within each relation."""

    @property
    def left_out(self) -> int:
        """How many bad rows have been left out so far."""

    def questions(self) -> Iterator[dict[str, Any]]:
        """The questions that come with the source: `id`, `query`, `answer_ids` (node ids), `split`, and what else it
        says of them."""

    def questions_of(self, path: Path) -> Iterator[dict[str, Any]]:
        """The questions of a file, whose answers are ids in the source's own terms, likewise."""

    def describe(self) -> dict[str, Any]:
        """What the manifest says of the source once all is read: kind, input files with their hashes, rows skipped."""
