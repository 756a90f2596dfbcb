"""What the page asks for, as JSON: each route is a function of the runs and of its parameters, which are hostile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.audit.checks.answers import ERROR_CLASSES, error_class
from harness.audit.facts import AttemptFacts, Sighting
from harness.errors import UserError
from harness.events import folder_name
from harness.ledger import AttemptRecord
from harness.show import where_seen
from harness.text import count_of, line, plain
from harness.view.pieces import id_pieces
from harness.view.runs import VERDICTS, Row, ViewedRun, brief, summary
from harness.view.trajectory import PAGE, Items, read_index

_ROWS = 100  # of the list at once
_ITEMS = 60  # of a trajectory at once
_SECONDS = 0.7  # after which a search through trajectories answers with what it has
_GOLD = 200  # gold ids that are named
_VALUE = 20_000  # characters of one attribute


@dataclass(frozen=True)
class Parameters:
    """The query string's values."""

    values: Mapping[str, str]

    def text(self, name: str, default: str | None = None) -> str:
        """A parameter. Raises UserError where it is needed and missing."""
        found = self.values.get(name, default)
        if found is None:
            raise UserError(f"parameter {name} is missing")
        return found

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number, not negative. Raises UserError."""
        text = self.text(name, None if default is None else str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UserError(f"parameter {name} is no number")
        return int(text)


class Api:
    """Answers for these runs."""

    def __init__(self, runs: Sequence[ViewedRun]) -> None:
        self._runs = runs
        self.routes: Mapping[str, Callable[[Parameters], Any]] = {
            "runs": self.runs, "questions": self.questions, "classes": self.classes, "attempt": self.attempt,
            "origins": self.origins, "items": self.items, "text": self.text, "blob": self.blob, "node": self.node,
        }  # fmt: skip

    def runs(self, _: Parameters) -> dict[str, Any]:
        """All runs, and the values that the filters can have."""
        return {
            "runs": [summary(run, run.rows()) for run in self._runs],
            "verdicts": VERDICTS,
            "classes": list(ERROR_CLASSES),
        }

    def questions(self, given: Parameters) -> dict[str, Any]:
        """Rows that pass the filters, from place `from`; `next` is where to go on, None at the end.

        Filters that need trajectories read one after the other and may answer with fewer rows, or with none yet.
        """
        start = given.number("from", 0)
        places = [(run, row) for run in self._chosen(given) for row in run.rows()]
        until = time.monotonic() + _SECONDS
        found: list[dict[str, Any]] = []
        position = start
        while position < len(places) and len(found) < _ROWS and (time.monotonic() < until or position == start):
            run, row = places[position]
            position += 1
            if _passes(run, row, given):
                found.append(brief(run, row))
        return {"rows": found, "next": position if position < len(places) else None, "total": len(places)}

    def classes(self, given: Parameters) -> list[str]:
        """The error class of each agent's last attempt at a question."""
        run = self._run(given)
        return [run.error_class(record) for record in run.row(given.text("q")).last]

    def attempt(self, given: Parameters) -> dict[str, Any]:
        """The head of an attempt: its question, answer, gold, figures, neighbours in the list, other runs of it."""
        run, record = self._attempt(given)
        row, index = run.row(record.query_id), read_index(run.trajectory(record))
        gold = run.saved.gold(record.query_id) or ()
        ids = [other.id for other in run.rows() if other.records]
        place = ids.index(record.query_id)
        return {
            **brief(run, row), "agent": record.agent, "attempt": record.attempt,
            "tries": [
                {"agent": each.agent, "attempt": each.attempt, "stop": each.stop_reason} for each in row.records
            ],
            "verdict_here": run.saved.verdict(record), "class": run.known_class(record),
            "stop": record.stop_reason, "limit": record.limit, "error": record.error and plain(record.error)[:_VALUE],
            "answer": [self._named(run, node, gold) for node in record.ids],
            "gold": [self._named(run, node, gold) for node in gold[:_GOLD]] if run.saved.export else None,
            "gold_ids": gold, "gold_count": len(gold), "lacking": line(run.saved.lacking), "nodes": run.nodes,
            "turns": record.turns, "usage": record.usage, "cost": record.cost, "times": vars(record.times),
            "lines": len(index.lines), "fault": index.fault,
            "previous": ids[place - 1] if place else None, "following": next(iter(ids[place + 1 :]), None),
            "place": place + 1, "places": len(ids), "beside": list(self._beside(run, record)),
            "file": line(f"trajectories/{folder_name(record.query_id)}/{record.agent}-{record.attempt}.jsonl"),
        }  # fmt: skip

    def origins(self, given: Parameters) -> dict[str, Any]:
        """Where each returned and each gold id first appeared, and the error class. Reads the whole trajectory."""
        run, record = self._attempt(given)
        facts = run.saved.facts(record)
        return {
            "class": error_class(facts),
            "ids": {str(seen.node): _origin(seen, facts) for seen in (*facts.answer, *facts.gold_sightings[:_GOLD])},
        }

    def items(self, given: Parameters) -> dict[str, Any]:
        """Events of an attempt from place `from`."""
        run, record = self._attempt(given)
        index = read_index(run.trajectory(record))
        items, start = self._items(run, record), given.number("from", 0)
        end = min(start + _ITEMS, len(index.lines))
        return {
            "items": [items.item(position) for position in range(start, end)],
            "next": end if end < len(index.lines) else None,
        }

    def text(self, given: Parameters) -> dict[str, Any]:
        """More of a text that was folded."""
        run, record = self._attempt(given)
        return self._items(run, record).more(given.number("line"), given.text("part"), given.number("start"))

    def blob(self, given: Parameters) -> dict[str, Any]:
        """A page of the whole output of which the agent saw a part; `start` and `next` are bytes."""
        run, record = self._attempt(given)
        digest = self._items(run, record).blob(given.number("line"))
        data, following, size = _read_page(run.saved.path / "blobs" / digest, given.number("start"))
        return {"pieces": id_pieces(data.decode("utf-8", "replace"), run.nodes), "next": following, "size": size}

    def node(self, given: Parameters) -> dict[str, Any]:
        """The record of a node."""
        run, node = self._run(given), given.number("id")
        if run.saved.export is None:
            raise UserError(f"the node's record can't be read: {run.saved.lacking}")
        try:
            record = run.saved.export.node(node)
        except KeyError:
            raise UserError(f"the graph has no node {node}") from None
        return {
            "id": node, "type": line(str(record["node_type"])), "name": line(str(record["name"])),
            "candidate": bool(record["is_candidate"]),
            "attributes": [[line(name), _value(value)] for name, value in record["attributes"].items()],
        }  # fmt: skip

    def _chosen(self, given: Parameters) -> Iterator[ViewedRun]:
        wanted, mode = given.text("run", ""), given.text("mode", "")
        for run in self._runs:
            if wanted in ("", str(run.number)) and (not mode or mode == run.mode):
                yield run

    def _run(self, given: Parameters) -> ViewedRun:
        number = given.number("run")
        if number >= len(self._runs):
            raise UserError(f"there is no run {number}")
        return self._runs[number]

    def _attempt(self, given: Parameters) -> tuple[ViewedRun, AttemptRecord]:
        run = self._run(given)
        return run, run.record(given.text("q"), given.number("agent", 0), given.number("attempt", 0))

    @staticmethod
    def _items(run: ViewedRun, record: AttemptRecord) -> Items:
        return Items(read_index(run.trajectory(record)), run.nodes, run.line_cap)

    def _beside(self, run: ViewedRun, record: AttemptRecord) -> Iterator[dict[str, Any]]:
        """The same question in other runs over the same graph."""
        for other in self._runs:
            same = other.saved.manifest["export"]["digest"] == run.saved.manifest["export"]["digest"]
            if other is run or not same:
                continue
            for row in other.rows():
                if row.id == record.query_id and row.records:
                    last = row.last[0]
                    yield {"run": other.number, "agent": last.agent, "attempt": last.attempt, "verdict": row.verdict}

    @staticmethod
    def _named(run: ViewedRun, node: int, gold: Sequence[int]) -> dict[str, Any]:
        return {"id": node, "name": run.saved.name_of(node), "right": node in gold}


def _passes(run: ViewedRun, row: Row, given: Parameters) -> bool:
    """Whether a row passes all filters, those that take no reading first."""
    verdict, stop, wanted = given.text("verdict", ""), given.text("stop", ""), given.text("class", "")
    text, deep = given.text("text", "").strip(), given.text("in", "") == "trajectories"
    if verdict and row.verdict != verdict:
        return False
    if stop and stop not in {record.stop_reason for record in row.last}:
        return False
    if text and not deep and text.casefold() not in f"{row.id}\n{row.text}".casefold():
        return False
    if wanted and wanted not in {run.error_class(record) for record in row.last}:
        return False
    return not (text and deep) or run.says(row, text)


def _origin(seen: Sighting, facts: AttemptFacts) -> dict[str, Any]:
    return {"text": where_seen(seen, facts), "turn": seen.turn, "line": seen.line - 1, "state": seen.state}


def _value(value: Any) -> str:
    text = plain(value if isinstance(value, str) else orjson.dumps(value).decode())
    return text if len(text) <= _VALUE else f"{text[:_VALUE]} … {count_of(len(text) - _VALUE, 'character')} more"


def _read_page(path: Path, start: int) -> tuple[bytes, int | None, int]:
    """A page of a file that ends at a line's end where there is one, and at no part of a character."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(start)
        data = file.read(PAGE)
    if start + len(data) < size:
        end = data.rfind(b"\n") + 1
        if end <= len(data) // 2:
            end = len(data)
            while end > len(data) - 4 and end > 1 and data[end - 1] & 0xC0 == 0x80:
                end -= 1
            end -= data[end - 1] >= 0xC0
        data = data[:end]
    following = start + len(data)
    return data, following if following < size else None, size
