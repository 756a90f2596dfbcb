"""What an agent's bash calls run, followed through an attempt: the commands, and the Python programs among them.

Files that the agent writes are remembered by their text, so that a script is known when it is run, in the same call
or a later one. Nothing is executed: text that only execution would show (a pipe's data, a loop's variable) is unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from harness.audit.shell import Redirect, Scope, Simple, Substitution, Variable, Word, parse

GRAPH, SCRATCH = "/graph", "/scratch"  # as `sandbox.contract` has them; nothing here may import the sandbox

SOMEWHERE = "/somewhere"  # a directory that only execution would tell
_DEEPEST = 4  # shell scripts within shell scripts
_LARGEST = 1_000_000  # characters of a file that is remembered
_PYTHON = re.compile(r"python(3(\.\d+)?)?$")
_SHELLS = {"bash", "sh", "dash"}
# Wrappers that run the rest of their arguments, with their options that take a value.
_WRAPPERS = {
    "env": {"-u", "-C", "-S"}, "timeout": {"-k", "-s"}, "time": {"-f", "-o"}, "nice": {"-n"}, "nohup": set(),
    "stdbuf": {"-i", "-o", "-e"}, "setsid": set(), "command": set(), "builtin": set(), "exec": {"-a"}, "sudo": {"-u"},
    "xargs": {"-n", "-I", "-P", "-d", "-L", "-a", "-E", "-s"}, "ionice": {"-c", "-n"}, "taskset": set(), "then": set(),
}  # fmt: skip
_PYTHON_VALUES = {"-W", "-X", "--check-hash-based-pycs"}
_SED_LITERAL = re.compile(r"s(.)((?:(?!\1).)*)\1((?:(?!\1).)*)\1(g?)", re.DOTALL)
_EXPANSION = re.compile(r"\$\{?(\w+|[@*])\}?")
_SPECIAL = re.compile(r"[.*\[\]^$&+?(){}|]")


@dataclass(frozen=True)
class Command:
    """A simple command with its wrappers taken off. An argument is None where only execution would tell.

    `writes` and `reads` are the files of its redirects, as absolute paths; `raw` holds the arguments as written, `cwd`
    the directory it runs in. The head of a loop is one named `for`, its arguments what it goes through.
    """

    name: str
    arguments: tuple[str | None, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    wrapped_by: tuple[str, ...] = ()
    cwd: str = SCRATCH


@dataclass(frozen=True)
class Source:
    """A program's text. `edits` counts changes to it whose outcome is unknown."""

    text: str
    edits: int = 0


@dataclass(frozen=True)
class Run:
    """One run of a program: its source, the file it is in (None: given directly), its arguments as far as known."""

    source: Source
    path: str | None
    arguments: tuple[str, ...] = ()


@dataclass
class Reading:
    """One call. `python` counts invocations of Python, those of unknown source too."""

    commands: list[Command] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    python: int = 0


class Workbench:
    """An attempt's scratch directory as far as its commands tell.

    `examine` is told of each run of a program as it is met, and returns the files (name, text) that it writes.
    """

    def __init__(self, examine: Callable[[Run], Iterable[tuple[str, str]]] = lambda _: ()) -> None:
        self._examine = examine
        self.files: dict[str, Source] = {}
        self._variables: dict[str, str] = {}
        self._loops: dict[str, list[str]] = {}
        self._parameters: list[str] = []
        self._cwd = SCRATCH
        self._directories: dict[Scope, str] = {}

    def read(self, command: str) -> Reading:
        """Follow one call."""
        self._cwd = SCRATCH
        self._variables = {"GRAPH": GRAPH, "SCRATCH": SCRATCH, "HOME": SCRATCH, "PWD": SCRATCH}
        self._loops, self._parameters = {}, []
        reading = Reading()
        self._follow(command, reading, 0)
        return reading

    def path(self, name: str) -> str:
        """`name` as an absolute path, links not resolved."""
        return posixpath.normpath(posixpath.join(self._cwd, name))

    def write(self, name: str, source: Source, *, append: bool = False) -> None:
        """Remember what a file holds now."""
        path = self.path(name)
        if append and path in self.files:
            source = Source(self.files[path].text + source.text, self.files[path].edits)
        if len(source.text) <= _LARGEST:
            self.files[path] = source

    def _follow(self, command: str, reading: Reading, depth: int) -> None:
        if depth > _DEEPEST:
            return
        before = self._directories, self._cwd
        self._directories = {(): self._cwd}
        for simple in parse(command):
            self._cwd = self._directory(simple.scope)
            self._simple(simple, reading, depth)
        self._directories, self._cwd = before

    def _directory(self, scope: Scope) -> str:
        """Where the commands of a subshell are by now; it starts where the shell around it is."""
        if scope not in self._directories:
            self._directories[scope] = self._directory(scope[:-1])
        return self._directories[scope]

    def _simple(self, simple: Simple, reading: Reading, depth: int) -> None:
        if simple.loop:
            values = self._values([self._resolve(word)[0] for word in simple.values])
            self._loops[simple.loop] = list(values)
            reading.commands.append(Command("for", values, raw=values, cwd=self._cwd))
            return
        for name, word in simple.assignments:
            text, known = self._resolve(word)
            if known:
                self._variables[name] = text
            else:
                self._variables.pop(name, None)
        resolved = [self._resolve(word) for word in simple.words]
        wrappers, resolved = _unwrap(resolved)
        command = self._command(simple, resolved, wrappers)
        reading.commands.append(command)
        self._remember(simple, command)
        name = command.name
        if name in ("cd", "pushd"):
            target = command.arguments[0] if command.arguments else SCRATCH
            self._directories[simple.scope] = self.path(target) if target not in (None, "-") else SOMEWHERE
        elif _PYTHON.match(name):
            reading.python += 1
            run = self._python(simple, command)
            if run is not None:
                self._ran(run, reading)
        elif name in _SHELLS or name in ("eval", "source", "."):
            script, parameters = self._shell_text(simple, command)
            self._nested(script, parameters, reading, depth)
        elif resolved and "/" in resolved[0][0] and self.path(resolved[0][0]) in self.files:
            self._script(self.path(resolved[0][0]), command, reading, depth)

    def _ran(self, run: Run, reading: Reading) -> None:
        reading.runs.append(run)
        for name, text in self._examine(run):
            self.write(name, Source(text))

    def _command(self, simple: Simple, resolved: Sequence[tuple[str, bool]], wrappers: tuple[str, ...]) -> Command:
        files = [each for each in simple.redirects if not each.op.startswith("<<")]
        targets = [(each.op, self._target(each), self._resolve(each.word)[1]) for each in files]
        return Command(
            name=posixpath.basename(resolved[0][0]) if resolved else "",
            arguments=tuple(text if known else None for text, known in resolved[1:]),
            writes=tuple(text for op, text, known in targets if ">" in op and known and op != ">&"),
            reads=tuple(text for op, text, known in targets if op in ("<", "<>") and known),
            raw=tuple(text for text, _ in resolved[1:]),
            wrapped_by=wrappers,
            cwd=self._cwd,
        )

    def _target(self, redirect: Redirect) -> str:
        """The file of a redirect as an absolute path."""
        cwd = self._cwd if redirect.scope is None else self._directory(redirect.scope)
        return posixpath.normpath(posixpath.join(cwd, self._resolve(redirect.word)[0]))

    def _python(self, simple: Simple, command: Command) -> Run | None:
        """The program that an invocation of Python runs, None where its text is unknown or it is a module."""
        arguments = list(command.raw)
        while arguments:
            first = arguments.pop(0)
            if re.fullmatch(r"-[a-zA-Z]*c", first):
                return Run(Source(arguments[0]), None, self._values(arguments[1:])) if arguments else None
            if first.startswith("-m"):
                return None
            if first == "-":
                break
            if first in _PYTHON_VALUES and arguments:
                arguments.pop(0)
            elif not first.startswith("-"):
                return self._from_file(simple, first, self._values(arguments))
        source = self._stdin(simple)
        return Run(source, None, self._values(arguments)) if source is not None else None

    def _values(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """Arguments with loop variables and a script's parameters replaced by all the values they have."""
        values: list[str] = []
        for text in arguments:
            match = _EXPANSION.fullmatch(text)
            if match is None:
                values.append(text)
            elif match[1] in self._loops:
                values += self._loops[match[1]]
            else:
                values += self._parameters
        return tuple(values)

    def _from_file(self, simple: Simple, name: str, arguments: tuple[str, ...]) -> Run | None:
        for word in simple.words:
            for part in word:
                if isinstance(part, Substitution) and part.process and part.source == name:
                    source = self._output(part.commands[-1]) if part.commands else None
                    return Run(source, None, arguments) if source is not None else None
        path = self.path(name)
        if name in ("/dev/stdin", "/proc/self/fd/0"):
            source = self._stdin(simple)
            return Run(source, None, arguments) if source is not None else None
        return Run(self.files[path], path, arguments) if path in self.files else None

    def _script(self, path: str, command: Command, reading: Reading, depth: int) -> None:
        """A file of the agent's, run by its path: Python or shell by its first line."""
        source = self.files[path]
        first = source.text.partition("\n")[0]
        if first.startswith("#!") and "python" in first:
            reading.python += 1
            self._ran(Run(source, path, command.raw), reading)
        elif not first.startswith("#!") or first.rstrip().endswith(("sh", "bash")):
            self._nested(source.text, command.raw, reading, depth)

    def _nested(self, text: str | None, parameters: Sequence[str], reading: Reading, depth: int) -> None:
        if text is not None:
            before, self._parameters = self._parameters, list(self._values(parameters))
            self._follow(text, reading, depth + 1)
            self._parameters = before

    def _shell_text(self, simple: Simple, command: Command) -> tuple[str | None, Sequence[str]]:
        """What a shell is given to run, and the parameters."""
        if command.name == "eval":
            return " ".join(command.raw), ()
        arguments = [text for text in command.raw if not re.fullmatch(r"-[a-bd-zA-Z]+|--\w+", text)]
        if arguments and re.fullmatch(r"-[a-z]*c[a-z]*", arguments[0]):
            return (arguments[1] if len(arguments) > 1 else None), arguments[3:]
        named = bool(arguments) and arguments[0] != "-"
        source = self.files.get(self.path(arguments[0])) if named else self._stdin(simple)
        return (source.text if source is not None else None), arguments[1:]

    def _stdin(self, simple: Simple) -> Source | None:
        """What a command reads from its standard input, where that is known."""
        for redirect in reversed(simple.redirects):
            if redirect.descriptor in ("", "0"):
                if redirect.op in ("<<", "<<-", "<<<"):
                    return Source(self._resolve(redirect.word)[0])
                if redirect.op == "<":
                    return self._file(redirect)
        return self._output(simple.upstream) if simple.upstream is not None else None

    def _file(self, redirect: Redirect) -> Source | None:
        for part in redirect.word:
            if isinstance(part, Substitution) and part.process and part.commands:
                return self._output(part.commands[-1])
        return self.files.get(self._target(redirect))

    def _output(self, simple: Simple) -> Source | None:
        """What a command prints, for the few that print text which is in the call itself or in a known file."""
        if not simple.words:
            return None
        words = [self._resolve(word)[0] for word in simple.words]
        name, arguments = posixpath.basename(words[0]), words[1:]
        named = [text for text in arguments if not text.startswith("-")]
        known = [self.files[path] for path in map(self.path, named) if path in self.files]
        text = source = None
        if name == "echo":
            text = _echo(arguments)
        elif name == "printf" and arguments:
            text = _printf(arguments[0], arguments[1:])
        elif name == "tee" or (name == "cat" and not named):
            source = self._stdin(simple)
        elif name == "sed" and len(named) == 2 and known:
            source = _edited(known[-1], named[0])
        elif name == "cat" and len(known) == len(named):
            source = Source("".join(part.text for part in known), sum(part.edits for part in known))
        return Source(text) if text is not None else source

    def _remember(self, simple: Simple, command: Command) -> None:
        """Files that a command writes with known text."""
        names = [text for text in command.raw if not text.startswith("-")]
        if command.name == "tee":
            source = self._stdin(simple)
            for name in names if source is not None else ():
                self.write(name, source or Source(""), append="-a" in command.raw)
        elif command.name in ("cp", "mv", "ln") and len(names) == 2:
            source = self.files.get(self.path(names[0]))
            if source is not None:
                self.write(names[1], source)
        elif command.name == "sed" and any(text.startswith(("-i", "--in-place")) for text in command.raw):
            for path in map(self.path, names[1:]):
                if path in self.files:
                    self.files[path] = _edited(self.files[path], names[0])
        for redirect in simple.redirects:
            if redirect.op not in (">", ">>", ">|") or redirect.descriptor not in ("", "1"):
                continue
            if self._resolve(redirect.word)[1]:
                source, target = self._output(simple), self._target(redirect)
                if source is not None:
                    self.write(target, source, append=redirect.op == ">>")
                else:
                    self.files.pop(self.path(target), None)

    def _resolve(self, word: Word) -> tuple[str, bool]:
        """A word's text, and whether it is all known; unknown parts are left as they are written."""
        texts, known = [], True
        for part in word:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Variable):
                value = self._variables.get(part.name)
                texts.append(part.source if value is None else value)
                known &= value is not None
            else:
                output = self._output(part.commands[-1]) if len(part.commands) == 1 and not part.process else None
                texts.append(part.source if output is None else output.text.rstrip("\n"))
                known &= output is not None
        return "".join(texts), known


def _edited(old: Source, script: str) -> Source:
    """What sed makes of a text: known for a substitution without special characters, else counted as an edit."""
    match = _SED_LITERAL.fullmatch(script)
    if match and not _SPECIAL.search(match[2]) and "\\" not in match[2] + match[3] and match[2] in old.text:
        lines = [line.replace(match[2], match[3], -1 if match[4] else 1) for line in old.text.split("\n")]
        return Source("\n".join(lines), old.edits)
    return replace(old, edits=old.edits + 1)


def _unwrap(words: list[tuple[str, bool]]) -> tuple[tuple[str, ...], list[tuple[str, bool]]]:
    """The wrappers in front of a command (`timeout 60`, `env X=1`, `xargs -n 1`), and the command without them."""
    wrappers: list[str] = []
    while words and (name := posixpath.basename(words[0][0])) in _WRAPPERS:
        rest = words[1:]
        while rest and (rest[0][0].startswith("-") or (name == "env" and "=" in rest[0][0])):
            rest = rest[2:] if rest[0][0] in _WRAPPERS[name] else rest[1:]
        if name == "timeout" and rest:
            rest = rest[1:]
        if not rest:
            break
        wrappers.append(name)
        words = rest
    return tuple(wrappers), words


def _echo(arguments: list[str]) -> str:
    flags = arguments[0] if arguments and re.fullmatch(r"-[neE]+", arguments[0]) else ""
    text = " ".join(arguments[1:] if flags else arguments)
    return (_backslashes(text) if "e" in flags else text) + ("" if "n" in flags else "\n")


def _backslashes(text: str) -> str:
    return re.sub(r"\\([nt\\])", lambda match: {"n": "\n", "t": "\t"}.get(match[1], "\\"), text)


def _printf(form: str, arguments: list[str]) -> str | None:
    form = _backslashes(form)
    if "%" not in form:
        return form
    return form.replace("%s", arguments[0]) if form.count("%") == form.count("%s") == len(arguments) == 1 else None
