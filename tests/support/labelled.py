"""The labelled programs of tests/data/audit, and how well the classifier of `harness audit` meets their labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from harness.audit.numbers import find_ids
from harness.audit.programs import CLASSES, History

FOLDER = Path(__file__).resolve().parents[1] / "data" / "audit"
RERUN = frozenset({"rerun"})
NODES = 2_000_000


@dataclass
class LabelledCall:
    """A bash call with the labels of the programs that it runs, and how it ended."""

    command: str = ""
    output: str = ""
    exit_code: int = 0
    labels: list[frozenset[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """Counts of one class: labelled and found, found though not labelled, labelled but not found."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float | None:
        found = self.right + self.wrong
        return self.right / found if found else None

    @property
    def recall(self) -> float | None:
        labelled = self.right + self.missed
        return self.right / labelled if labelled else None


def sessions(folder: Path = FOLDER) -> dict[str, list[LabelledCall]]:
    """Every session by name."""
    return {path.stem: _session(path.read_text("utf-8")) for path in sorted(folder.glob("*.session"))}


def _session(text: str) -> list[LabelledCall]:
    calls: list[LabelledCall] = []
    for part in ("\n" + text).split("\n#### ")[1:]:
        header, _, body = part.partition("\n")
        kind, _, code = header.partition(" ")
        if kind == "command":
            calls.append(LabelledCall(body))
        elif kind == "programs":
            lines = [line.strip() for line in body.splitlines() if line.strip()]
            calls[-1].labels = [frozenset(line.split(", ")) - {"-"} for line in lines]
        elif kind == "output":
            calls[-1].output, calls[-1].exit_code = body, int(code)
        else:
            raise ValueError(f"unknown section '{header}'")
    return calls


def classified(calls: list[LabelledCall]) -> list[list[frozenset[str]]]:
    """What the classifier says of each run, in the form of the labels."""
    seen: set[int] = set()
    history = History(seen.__contains__)
    found = []
    for call in calls:
        programs = history.bash(call.command).programs
        found.append([RERUN if program is None else program.classes for program in programs])
        history.ended(failed=call.exit_code != 0 or "Traceback (most recent" in call.output)
        seen.update(find_ids(call.output.encode(), NODES)[1].tolist())
    return found


def measure(folder: Path = FOLDER) -> tuple[dict[str, Figure], int, list[str]]:
    """Figures per class, how many programs there are, and every disagreement as a line of text."""
    pairs: list[tuple[str, frozenset[str], frozenset[str]]] = []
    faults = []
    for name, calls in sessions(folder).items():
        for number, (call, found) in enumerate(zip(calls, classified(calls), strict=True), 1):
            if len(found) != len(call.labels):
                faults.append(f"{name}, call {number}: {len(call.labels)} runs labelled, {len(found)} found")
            both = zip_longest(call.labels, found, fillvalue=frozenset[str]())
            pairs += [(f"{name}, call {number}", *pair) for pair in both]
    for where, label, found_classes in pairs:
        if label != found_classes:
            extra, missing = sorted(found_classes - label), sorted(label - found_classes)
            faults.append(f"{where}: found {extra or 'nothing'} too much, {missing or 'nothing'} missed")
    figures = {
        name: Figure(
            sum(name in label and name in found for _, label, found in pairs),
            sum(name not in label and name in found for _, label, found in pairs),
            sum(name in label and name not in found for _, label, found in pairs),
        )
        for name in (*CLASSES, "rerun")
    }
    return figures, sum(label != RERUN for _, label, _ in pairs), faults


def as_table(figures: dict[str, Figure]) -> str:
    """One line a class: labelled, found, precision, recall."""
    lines = [f"{'class':<16} {'labelled':>8} {'found':>6} {'precision':>9} {'recall':>7}"]
    for name, figure in figures.items():
        rates = [f"{rate:.2f}" if rate is not None else "-" for rate in (figure.precision, figure.recall)]
        labelled, found = figure.right + figure.missed, figure.right + figure.wrong
        lines.append(f"{name:<16} {labelled:>8} {found:>6} {rates[0]:>9} {rates[1]:>7}")
    return "\n".join(lines)
