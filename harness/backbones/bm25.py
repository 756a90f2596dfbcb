"""`bm25`: no model, STaRK's baseline. The answer is the BM25 ranking of the question over the candidates."""

from __future__ import annotations

from collections.abc import Callable

from exporter import Export
from exporter.index import open_baseline
from harness.messages import Entry, Reply, Request
from harness.text import once


class Bm25Backbone:
    """Answers every question at once, in one turn."""

    name = "bm25"

    def __init__(self, export: Export, k: int, notice: Callable[[str], None] = lambda _: None) -> None:
        """Opens the baseline's index, built where it isn't there. Raises ExportError."""
        self._baseline = open_baseline(export, progress=once(notice))
        self._k = k

    def complete(self, request: Request) -> Reply:
        """The ranking of the question's words, `k` ids at most."""
        ids = [hit.node for hit in self._baseline.rank(request.query, self._k).best]
        return Reply(Entry("assistant", f"ANSWER: {ids}"), "stop")
