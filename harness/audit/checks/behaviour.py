"""What the agent did: kinds of calls, programs and their operations, graph tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.audit.checks import Check, Measure, Values
from harness.audit.facts import AttemptFacts, CallFacts, Kind
from harness.audit.flow import OPERATIONS
from harness.audit.programs import BY_HARDNESS, Program
from harness.audit.tally import Place, Row, fifth

_KINDS: tuple[Kind, ...] = (
    "python", "search", "read", "other", "graph_search", "graph_neighbours", "graph_record", "answer",
)  # fmt: skip
_GRAPH_KINDS: tuple[Kind, ...] = ("graph_search", "graph_neighbours", "graph_record")
_OPERATIONS = frozenset(OPERATIONS)
_FIFTHS = (1, 2, 3, 4, 5)


def _calls(facts: AttemptFacts, calls: Iterable[CallFacts], label: str = "") -> Row:
    """These calls out of all."""
    lines = [call.line for call in calls]
    return Row(len(lines), len(facts.calls), facts.places(lines), label)


def _programs(facts: AttemptFacts, programs: Iterable[tuple[CallFacts, Program]], label: str = "") -> Row:
    """These programs out of all."""
    places = [Place(facts.file, call.line) for call, _ in programs]
    return Row(len(places), len(facts.programs), places, label)


def calls_by_kind(facts: AttemptFacts) -> Iterator[Row]:
    """Share of each kind of call."""
    for kind in _KINDS:
        yield _calls(facts, [call for call in facts.calls if call.kind == kind], kind)


def calls_by_fifth(facts: AttemptFacts) -> Iterator[Row]:
    """The same in each fifth of the attempt."""
    total = len(facts.calls)
    parts = [fifth(position, total) for position in range(total)]
    sizes = Counter(parts)
    lines: dict[tuple[Kind, int], list[int]] = {}
    for part, call in zip(parts, facts.calls, strict=True):
        lines.setdefault((call.kind, part), []).append(call.line)
    for kind in _KINDS:
        for part in _FIFTHS:
            found = lines.get((kind, part), [])
            yield Row(len(found), sizes[part], facts.places(found), f"{kind} in fifth {part}")


def failed_calls(facts: AttemptFacts) -> Iterator[Row]:
    """Calls that failed: a non-zero exit code, a limit, a traceback, or the model's own mistake."""
    yield _calls(facts, [call for call in facts.calls if call.failed])


def mistakes(facts: AttemptFacts) -> Iterator[Row]:
    """Calls that could not be run as the model wrote them."""
    for kind in sorted({call.error for call in facts.calls if call.error is not None}):
        yield _calls(facts, [call for call in facts.calls if call.error == kind], kind)


def with_python(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts that run Python at all."""
    lines = [call.line for call in facts.calls if call.python]
    yield Row(bool(lines), 1, facts.places(lines[:1]))


def python_commands(facts: AttemptFacts) -> Iterator[Row]:
    """Shell commands that run Python."""
    shell = [call for call in facts.calls if call.bash]
    lines = [call.line for call in shell if call.python]
    yield Row(len(lines), len(shell), facts.places(lines))


def operations(facts: AttemptFacts) -> Iterator[Row]:
    """Programs by what they do (docs/audit-programs.md); a program can do several things."""
    for name in (*OPERATIONS, "earlier_id"):
        yield _programs(facts, _in_class(facts, name), name)
    found = facts.programs
    yield _programs(facts, [one for one in found if not one[1].classes & _OPERATIONS], "none of these")
    yield _programs(facts, [one for one in found if not one[1].python], "not Python")


def _in_class(facts: AttemptFacts, name: str) -> list[tuple[CallFacts, Program]]:
    return [(call, program) for call, program in facts.programs if name in program.classes]


def revisions(facts: AttemptFacts) -> Iterator[Row]:
    """Programs that are a changed version of an earlier one."""
    for name, label in (("revises_failure", "after a failure"), ("revises_success", "after a success")):
        yield _programs(facts, _in_class(facts, name), label)


def reruns(facts: AttemptFacts) -> Iterator[Row]:
    """Runs of a program that was run before, unchanged."""
    lines = [call.line for call in facts.calls for _ in range(call.reruns)]
    yield Row(len(lines), len(lines) + len(facts.programs), facts.places(lines))


def refused_programs(facts: AttemptFacts) -> Iterator[Row]:
    """Programs that were refused, where a mode allows a single one."""
    if facts.programs_asked:
        lines = [line for line, ran in facts.programs_asked if not ran]
        yield Row(len(lines), len(facts.programs_asked), facts.places(lines))


def hardest_operation(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts by the hardest operation in any of their programs."""
    done = {name for _, program in facts.programs for name in program.classes}
    otherwise = "other Python" if any(call.python for call in facts.calls) else "no Python"
    hardest = next((name for name in BY_HARDNESS if name in done), otherwise)
    found = (call.line for call, program in facts.programs if hardest in program.classes)
    first = next(found, facts.answer_line)
    for name in (*BY_HARDNESS, "other Python", "no Python"):
        yield Row(name == hardest, 1, [Place(facts.file, first)] if name == hardest else (), name)


def graph_tools(facts: AttemptFacts) -> Iterator[Row]:
    """Calls of the graph tools, the model's and its programs', by which of them it is."""
    for kind in _GRAPH_KINDS:
        lines = [call.line for call in facts.graph_calls if call.kind == kind]
        yield Row(len(lines), len(facts.graph_calls), facts.places(lines), kind.removeprefix("graph_"))


def failed_program_calls(facts: AttemptFacts) -> Iterator[Row]:
    """Calls of the graph tools by programs that were answered with an error."""
    lines = [call.line for call in facts.program_calls if call.failed]
    yield Row(len(lines), len(facts.program_calls), facts.places(lines))


def neighbour_calls(facts: AttemptFacts) -> Iterator[Row]:
    """Neighbour calls among calls of the graph tools, in hits and in misses."""
    if facts.gold is not None and facts.graph_calls:
        lines = [call.line for call in facts.graph_calls if call.kind == "graph_neighbours"]
        yield Row(len(lines), len(facts.graph_calls), facts.places(lines), "in hits" if facts.hit else "in misses")


def programs_per_attempt(facts: AttemptFacts) -> Values:
    """Programs of an attempt."""
    yield len(facts.programs), facts.lines


def program_lines(facts: AttemptFacts) -> Values:
    """Lines of every program."""
    return ((program.lines, call.line) for call, program in facts.programs)


def first_program_lines(facts: AttemptFacts) -> Values:
    """Lines of an attempt's first program."""
    return [(program.lines, call.line) for call, program in facts.programs[:1]]


def program_characters(facts: AttemptFacts) -> Values:
    """Characters of every program."""
    return ((program.characters, call.line) for call, program in facts.programs)


def first_program_characters(facts: AttemptFacts) -> Values:
    """Characters of an attempt's first program."""
    return [(program.characters, call.line) for call, program in facts.programs[:1]]


def calls_per_attempt(facts: AttemptFacts) -> Values:
    """Calls of an attempt."""
    yield len(facts.calls), facts.lines


def program_calls_per_attempt(facts: AttemptFacts) -> Values:
    """Calls of the graph tools by an attempt's programs, where there are any."""
    return [(len(facts.program_calls), facts.program_calls[0].line)] if facts.program_calls else []


def turns_per_attempt(facts: AttemptFacts) -> Values:
    """Turns of an attempt."""
    if facts.record is not None:
        yield facts.record.turns, facts.lines


CHECKS = (
    Check("calls_by_kind", "did", "calls by kind", "calls", calls_by_kind),
    Check("calls_by_fifth", "did", "calls by kind, in each fifth of an attempt", "calls", calls_by_fifth),
    Check("failed_calls", "did", "calls that failed", "calls", failed_calls, zeros=True),
    Check("mistakes", "did", "calls that could not be run as written", "calls", mistakes),
    Check("with_python", "did", "attempts that run Python", "attempts", with_python, zeros=True),
    Check("python_commands", "did", "shell commands that run Python", "shell commands", python_commands, zeros=True),
    Check("operations", "did", "programs by what they do", "programs", operations, zeros=True),
    Check("revisions", "did", "programs that revise an earlier one", "programs", revisions, zeros=True),
    Check("reruns", "did", "runs of an unchanged program", "runs of programs", reruns, zeros=True),
    Check(
        "refused_programs",
        "did",
        "programs refused after the first",
        "programs asked for",
        refused_programs,
        zeros=True,
    ),
    Check("hardest_operation", "did", "attempts by their hardest operation", "attempts", hardest_operation, zeros=True),
    Check("graph_tools", "did", "calls of the graph tools", "graph tool calls", graph_tools, zeros=True),
    Check(
        "failed_program_calls",
        "did",
        "programs' calls of the graph tools that failed",
        "programs' calls",
        failed_program_calls,
        zeros=True,
    ),
    Check("neighbour_calls", "did", "neighbour calls", "graph tool calls", neighbour_calls, zeros=True),
)
MEASURES = (
    Measure("programs_per_attempt", "did", "programs of an attempt", "programs", programs_per_attempt),
    Measure("program_lines", "did", "length of a program", "lines", program_lines),
    Measure("first_program_lines", "did", "length of an attempt's first program", "lines", first_program_lines),
    Measure("program_characters", "did", "length of a program", "characters", program_characters),
    Measure("first_program_characters", "did", "length of an attempt's first program", "characters",
            first_program_characters),
    Measure("calls_per_attempt", "did", "calls of an attempt", "calls", calls_per_attempt),
    Measure(
        "program_calls_per_attempt",
        "did",
        "programs' calls of the graph tools in an attempt",
        "calls",
        program_calls_per_attempt,
    ),
    Measure("turns_per_attempt", "did", "turns of an attempt", "turns", turns_per_attempt),
)  # fmt: skip
