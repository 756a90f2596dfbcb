"""The programs of one attempt: told apart from reruns, classified, and compared with those before them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.audit.flow import Analysis, analyse
from harness.audit.flow.values import Scope
from harness.audit.suspicion_python import of_program
from harness.audit.workbench import SCRATCH, Reading, Run, Source, Workbench

CLASSES = (
    "node_scan", "one_hop", "multi_hop", "set_operation", "ranking", "id_check", "earlier_id",
    "revises_failure", "revises_success",
)  # fmt: skip
# From the hardest operation to the easiest.
BY_HARDNESS = ("multi_hop", "set_operation", "ranking", "one_hop", "node_scan", "id_check")

_ALIKE = 0.5  # Dice coefficient of two programs' token trigrams from which one is a version of the other
_COMPARED = 60  # earlier programs that a new one is compared with, the latest ones
_SHAPED = 50_000  # characters that are looked at
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MODULE = re.compile(re.escape(SCRATCH) + r"/(\w+)\.py")


@dataclass(frozen=True)
class Program:
    """A program, at its first run. `lines` are those that aren't blank; `python` is False where it doesn't parse.

    `suspicions` are kinds of `suspicion.KINDS`.
    """

    classes: frozenset[str]
    suspicions: frozenset[str]
    lines: int
    characters: int
    python: bool


@dataclass
class _Earlier:
    source: Source
    path: str | None
    shape: Counter[tuple[str, str, str]]
    failed: bool = False


@dataclass(frozen=True)
class Call:
    """One bash call. `programs` has an entry for each run, None for a rerun of unchanged source."""

    reading: Reading
    programs: tuple[Program | None, ...]


@dataclass
class History:
    """Follows an attempt call by call. `seen` says whether an earlier output showed a node id."""

    seen: Callable[[int], bool]
    _earlier: list[_Earlier] = field(default_factory=list)
    _known: dict[Source, tuple[Analysis, dict[str, Source]]] = field(default_factory=dict)
    _found: list[Program | None] = field(default_factory=list)
    _current: list[_Earlier] = field(default_factory=list)
    _session: Scope = field(default_factory=Scope)

    def __post_init__(self) -> None:
        self._bench = Workbench(self._examine)

    def bash(self, command: str) -> Call:
        """Follow a bash call."""
        self._found, self._current = [], []
        reading = self._bench.read(command)
        return Call(reading, tuple(self._found))

    def python(self, code: str) -> Call:
        """Follow a call that is a program by itself (an interpreter that lives on)."""
        self._found, self._current = [], []
        run = Run(Source(code), None)
        for name, text in self._examine(run, self._session):
            self._bench.write(name, Source(text))
        return Call(Reading(runs=[run], python=1), tuple(self._found))

    def ended(self, *, failed: bool) -> None:
        """How the last call ended: its programs are known by it from now on."""
        for program in self._current:
            program.failed = failed

    def _examine(self, run: Run, session: Scope | None = None) -> Sequence[tuple[str, str]]:
        modules = self._modules()
        known, used = self._known.get(run.source, (None, {}))
        if known is not None and all(modules.get(name) == source for name, source in used.items()):
            self._found.append(None)
            return known.written
        sources = {name: source.text for name, source in modules.items()}
        analysis = analyse(run.source.text, run.arguments, sources, session)
        self._known[run.source] = analysis, {name: modules[name] for name in analysis.modules}
        classes = set(analysis.operations)
        if any(self.seen(number) for number in analysis.ids):
            classes.add("earlier_id")
        program = _Earlier(run.source, run.path, _shape(run.source.text))
        old = self._revised(program)
        if old is not None:
            classes.add("revises_failure" if old.failed else "revises_success")
        self._earlier.append(program)
        self._current.append(program)
        text = run.source.text
        lines = sum(1 for line in text.splitlines() if line.strip())
        tree = analysis.tree
        suspicions = frozenset(of_program(tree)) if tree is not None else frozenset()
        self._found.append(Program(frozenset(classes), suspicions, lines, len(text), tree is not None))
        return analysis.written

    def _revised(self, program: _Earlier) -> _Earlier | None:
        """The latest earlier program that this one is a version of."""
        for old in reversed(self._earlier[-_COMPARED:]):
            if (program.path is not None and program.path == old.path) or _alike(program.shape, old.shape):
                return old
        return None

    def _modules(self) -> dict[str, Source]:
        files = self._bench.files
        return {match[1]: files[path] for path in files if (match := _MODULE.fullmatch(path))}


def _shape(source: str) -> Counter[tuple[str, str, str]]:
    """How often each run of three tokens occurs in a program."""
    tokens = _TOKEN.findall(source[:_SHAPED])
    return Counter(zip(tokens, tokens[1:], tokens[2:], strict=False))


def _alike(one: Counter[tuple[str, str, str]], other: Counter[tuple[str, str, str]]) -> bool:
    total = one.total() + other.total()
    return bool(total) and 2 * (one & other).total() / total >= _ALIKE
