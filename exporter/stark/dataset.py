"""What is particular to one of STaRK's graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Expected:
    """Figures of the published data; a mismatch is a warning.

    `edges` counts what STaRK's loader holds: rows where the data stores each edge in both directions, else, with
    `undirected`, the ordered pairs of nodes that are joined once directions are dropped and relations merged.
    """

    nodes: int
    edges: int
    undirected: bool
    questions: int
    splits: Mapping[str, int]


@dataclass(frozen=True)
class Dataset:
    """One graph. Type ids are positions in `node_types` and `relations`.

    `folders` are where its files lie below processed/, the first one that is there counts; in `untyped` no
    node_types.pt is needed, since all nodes are of the first type. `name_of(type, info)` is a node's name,
    `document(record)` the text of a node as written in an export, without its relations.
    """

    name: str
    node_types: tuple[str, ...]
    relations: tuple[str, ...]
    candidates: tuple[str, ...]
    folders: tuple[str, ...]
    name_of: Callable[[str, Mapping[Any, Any]], Any]
    document: Callable[[Record], str]
    expected: Expected
    archive_bytes: int  # of processed.zip, about
    archive_sha256: str | None
    untyped: str | None = None


def text_of(value: Any) -> str:
    """A name as text; nothing for a missing one."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
