"""Names -> node ids, for answers that are given as names: exact match first, then a normalised one.

The index holds a 64-bit hash and an id per candidate and form of its name (16 bytes each), sorted; a match is confirmed
by reading the record, so a collision of hashes can't lend a node another's name.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.answer import Parsed, UnknownName


class Graph(Protocol):
    """What the index needs of a graph; `exporter.Export` does."""

    def nodes(self) -> Iterable[Mapping[str, Any]]: ...

    def node(self, node_id: int) -> Mapping[str, Any]: ...

    def is_candidate(self, node_id: int) -> bool: ...


class Names:
    """Finds the candidates of a name. Other nodes don't count: a topic may have the name of a paper on it."""

    def __init__(self, graph: Graph) -> None:
        """Reads all nodes."""
        self._graph = graph
        ids, exact, normal = array("q"), array("Q"), array("Q")
        for node in graph.nodes():
            if graph.is_candidate(node["node_id"]):
                name = str(node["name"])
                ids.append(node["node_id"])
                exact.append(_hash(name))
                normal.append(_hash(normalise(name)))
        self._exact, self._normal = _Index(exact, ids), _Index(normal, ids)

    def find(self, name: str) -> tuple[list[int], bool]:
        """Ids of the candidates called `name`, ascending, and whether that took normalising."""
        found = [n for n in self._exact.get(name) if self._called(n) == name]
        wanted = normalise(name)
        return found or [n for n in self._normal.get(wanted) if normalise(self._called(n)) == wanted], not found

    def _called(self, node_id: int) -> str:
        return str(self._graph.node(node_id)["name"])


class _Index:
    def __init__(self, hashes: array[int], ids: array[int]) -> None:
        """`ids` ascend, and so those of one hash do."""
        table = np.frombuffer(hashes, np.uint64) if hashes else np.empty(0, np.uint64)
        order = np.argsort(table, kind="stable")
        self._hashes: NDArray[np.uint64] = table[order]
        self._ids: NDArray[np.int64] = np.array(ids, np.int64)[order]

    def get(self, text: str) -> list[int]:
        wanted = np.uint64(_hash(text))
        first, last = (np.searchsorted(self._hashes, wanted, side=side) for side in ("left", "right"))
        return [int(number) for number in self._ids[first:last]]


def normalise(name: str) -> str:
    """Case, accents, punctuation and spacing taken away: what two writings of one name have in common."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(re.findall(r"\w+", plain))


def resolve(parsed: Parsed, names: Names) -> Parsed:
    """The answer with each name replaced by its node's id; of several nodes of one name the lowest id is taken.

    What was needed is recorded in `repairs`: "normalised_name", "ambiguous_name". What no candidate is
    called is rejected by validation: such a name, and whatever is no name.
    """
    values: list[Any] = []
    repairs = list(parsed.repairs)
    for value in parsed.values or []:
        if not isinstance(value, str):
            values.append(UnknownName(value))
            continue
        found, normalised = names.find(value)
        values.append(found[0] if found else UnknownName(value))
        needed = [("normalised_name", bool(found) and normalised), ("ambiguous_name", len(found) > 1)]
        repairs += [repair for repair, needs in needed if needs and repair not in repairs]
    return replace(parsed, values=None if parsed.values is None else values, repairs=tuple(repairs))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
