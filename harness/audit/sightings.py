"""Where node ids appear in what an agent sees: the first time for the ids of interest, whether at all for any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.audit.facts import Sighting
from harness.audit.numbers import Ids, find_ids


class Sightings:
    """Follows the ids of one attempt. `wanted` are those whose places are kept (answer and gold)."""

    def __init__(self, nodes: int, wanted: Iterable[int]) -> None:
        self._nodes = nodes
        self._shown = np.zeros(nodes, dtype=bool)
        self._wanted = np.zeros(nodes, dtype=bool)
        self._pending: list[NDArray[np.int64]] = []
        self._first: dict[int, tuple[int, int, int]] = {}
        self._calls: dict[int, set[str | None]] = {}  # in which results an id stands; None for what is never cleared
        self._named: set[int] = set()
        self._cleared: set[str] = set()
        self._blobs: list[tuple[Path, int, int]] = []
        self._only_cut: dict[int, tuple[int, int]] = {}
        self.want(wanted)

    def want(self, ids: Iterable[int]) -> None:
        """Keep the places of these ids from now on."""
        known = [node for node in ids if 0 <= node < self._nodes]
        self._wanted[known] = True

    def was_shown(self, node: int) -> bool:
        """Whether an output of an earlier turn showed the id."""
        return 0 <= node < self._nodes and bool(self._shown[node])

    def next_turn(self) -> None:
        """What was shown so far was there when the model wrote its next reply."""
        for values in self._pending:
            self._shown[values] = True
        self._pending.clear()

    def show(self, ids: Ids, turn: int, line: int, call_id: str | None) -> None:
        """The ids in a text that the agent sees."""
        positions, values = ids
        self._pending.append(values)
        for index in np.flatnonzero(self._wanted[values]).tolist():
            node = int(values[index])
            self._first.setdefault(node, (turn, line, int(positions[index])))
            self._calls.setdefault(node, set()).add(call_id)

    def name(self, data: bytes) -> None:
        """A text that the model wrote."""
        _, values = find_ids(data, self._nodes)
        self._named.update(node for node in values[self._wanted[values]].tolist() if node not in self._first)

    def clear(self, call_ids: Iterable[str]) -> None:
        """Results that became placeholders."""
        self._cleared.update(call_ids)

    def cut(self, blob: Path, turn: int, line: int) -> None:
        """The whole of an output of which the agent saw a part."""
        self._blobs.append((blob, turn, line))

    def look_into_cut_parts(self, read: Callable[[Path], bytes]) -> None:
        """Look for wanted ids that were never shown in what was cut away."""
        missing = set(np.flatnonzero(self._wanted).tolist()) - self._first.keys()
        for blob, turn, line in self._blobs:
            if not missing:
                break
            _, values = find_ids(read(blob), self._nodes)
            found = missing & set(values[self._wanted[values]].tolist())
            self._only_cut.update(dict.fromkeys(found, (turn, line)))
            missing -= found

    def of(self, node: int) -> Sighting:
        """What became of a wanted id by now."""
        named = node in self._named
        if node in self._only_cut:
            return Sighting(node, "cut", *self._only_cut[node], named_before=named)
        if node not in self._first:
            return Sighting(node, "never", named_before=named)
        turn, line, offset = self._first[node]
        gone = self._calls[node] <= self._cleared
        return Sighting(node, "cleared" if gone else "shown", turn, line, offset, named)
