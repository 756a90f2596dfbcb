"""A bash command as the simple commands in it, in the order they are written; nothing is run or expanded here.

The grammar is tree-sitter's. What it can't make sense of is gone through all the same, so that a command with an
error in it still shows what it tried. Conditions and loops are not followed: each command in them is there once.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_DEEPEST = 60  # nested constructs; what lies deeper is left out
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_HEREDOC_PARTS = {*_REDIRECTS, "heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])|\\\n')
_ESCAPED_IN_HEREDOC = re.compile(r"\\([$`\\])|\\\n")
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_CHARS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Variable:
    """`$name`; `name` is empty for an expansion that is more than a name."""

    name: str
    source: str


@dataclass(frozen=True)
class Substitution:
    """`$(…)` or, with `process`, `<(…)`."""

    commands: tuple[Simple, ...]
    source: str
    process: bool = False


Part: TypeAlias = str | Variable | Substitution
Word: TypeAlias = tuple[Part, ...]
Scope: TypeAlias = tuple[int, ...]  # the subshells that a command is in, the outermost first


@dataclass(frozen=True)
class Redirect:
    """`op` is as written (`>`, `>>`, `<`, `<<`, `<<<`, `&>`, …); for `<<` and `<<<` the word is the text itself.

    `scope` is set where it isn't that of its command: a redirect of a whole subshell.
    """

    op: str
    word: Word
    descriptor: str = ""
    scope: Scope | None = None


@dataclass
class Simple:
    """One simple command. `upstream` is the command that is piped into it; a `cd` ends with its `scope`.

    The head of a loop is one without words: `loop` names its variable, `values` what it goes through.
    """

    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    upstream: Simple | None = None
    loop: str = ""
    values: list[Word] = field(default_factory=list)
    scope: Scope = ()


def parse(command: str) -> list[Simple]:
    """The simple commands of `command`, those inside substitutions before the one that uses them."""
    source = command.encode("utf-8", "replace")
    walker = _Walker(source)
    walker.visit(_parser().parse(source).root_node, None, 0)
    return walker.commands


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


class _Walker:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.commands: list[Simple] = []
        self.scope: Scope = ()
        self.subshells = 0

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    @contextlib.contextmanager
    def subshell(self) -> Iterator[None]:
        self.subshells += 1
        self.scope = (*self.scope, self.subshells)
        yield
        self.scope = self.scope[:-1]

    def visit(self, node: Node, upstream: Simple | None, depth: int) -> Simple | None:
        """Add the commands below `node`; returns the last one, whose output a pipe would take."""
        if depth > _DEEPEST:
            return None
        last = None
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                last = self.simple(node, upstream, depth)
            case "variable_assignment":
                self.commands.append(Simple(assignments=[self.pair(node, depth)], scope=self.scope))
            case "redirected_statement":
                last = self.redirected(node, upstream, depth)
            case "for_statement":
                last = self.loop(node, depth)
            case "subshell":
                with self.subshell():
                    for child in node.named_children:
                        last = self.visit(child, upstream, depth + 1) or last
            case "pipeline":
                last = upstream
                for child in node.named_children:
                    last = self.visit(child, last, depth + 1) or last
            case kind:
                for child in node.named_children:
                    last = self.visit(child, upstream, depth + 1) or last
                    upstream = None if kind == "list" else upstream  # a pipe goes to the first of `a && b`
        return last

    def loop(self, node: Node, depth: int) -> Simple | None:
        name, words = node.child_by_field_name("variable"), node.children_by_field_name("value")
        if name is not None:
            values = [self.word(word, depth + 1) for word in words]
            self.commands.append(Simple(loop=self.text(name), values=values, scope=self.scope))
        body = node.child_by_field_name("body")
        return self.visit(body, None, depth + 1) if body is not None else None

    def simple(self, node: Node, upstream: Simple | None, depth: int) -> Simple:
        command = Simple(upstream=upstream, scope=self.scope)
        if node.type != "command":  # export, declare, unset: the keyword is no child with a name
            command.words.append((self.text(node.children[0]),))
        for child in node.named_children:
            if child.type == "variable_assignment":
                command.assignments.append(self.pair(child, depth))
            elif child.type in _REDIRECTS:
                command.redirects += self.redirect(child, depth)
            elif child.type != "comment":
                command.words.append(self.word(child, depth))
        self.commands.append(command)
        return command

    def pair(self, node: Node, depth: int) -> tuple[str, Word]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        return (self.text(name) if name else ""), (self.word(value, depth) if value else ())

    def redirected(self, node: Node, upstream: Simple | None, depth: int) -> Simple | None:
        redirects = [child for child in node.named_children if child.type in _REDIRECTS]
        last = None
        for child in node.named_children:
            if child.type not in _REDIRECTS:
                last = self.visit(child, upstream, depth + 1)
        if last is None:  # a redirect of its own, such as `> file`
            last = Simple(scope=self.scope)
            self.commands.append(last)
        scope = self.scope if last.scope != self.scope else None
        for child in redirects:
            last.redirects += (replace(each, scope=scope) for each in self.redirect(child, depth))
        for child in redirects:  # the grammar puts what follows a heredoc's start inside the heredoc
            last = self.after_heredoc(child, last, depth)
        return last

    def after_heredoc(self, node: Node, last: Simple, depth: int) -> Simple:
        for child in node.named_children if node.type == "heredoc_redirect" else ():
            if child.type == "pipeline":
                last = self.visit(child, last, depth + 1) or last
            elif child.type not in _HEREDOC_PARTS and child.start_point.row == node.start_point.row:
                last = self.visit(child, None, depth + 1) or last
        return last

    def redirect(self, node: Node, depth: int) -> Iterator[Redirect]:
        operator = next((self.text(child) for child in node.children if not child.is_named), "")
        descriptor = next((self.text(child) for child in node.children if child.type == "file_descriptor"), "")
        if node.type == "heredoc_redirect":
            yield Redirect(operator or "<<", self.heredoc(node, operator), descriptor)
            for child in node.named_children:
                if child.type in _REDIRECTS:
                    yield from self.redirect(child, depth)
            return
        words = [child for child in node.named_children if child.type not in ("file_descriptor", "ERROR")]
        if words:
            written = self.source[node.start_byte : words[0].start_byte].decode("utf-8", "replace")
            operator = operator or written.strip().removeprefix(descriptor)  # the grammar doesn't know `<>`
            yield Redirect(operator, self.word(words[0], depth), descriptor)

    def heredoc(self, node: Node, operator: str) -> Word:
        start = next((self.text(child) for child in node.children if child.type == "heredoc_start"), "")
        body = next((self.text(child) for child in node.children if child.type == "heredoc_body"), "")
        body = body or self.lines_inside(node)
        if operator == "<<-":
            body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
        if start[:1] in ("'", '"', "\\"):
            return (body,)
        parts: list[Part] = []
        end = 0
        for match in _VARIABLE.finditer(body):
            if body[match.start() - 1 : match.start()] != "\\":
                parts += [_unescape(_ESCAPED_IN_HEREDOC, body[end : match.start()])]
                parts += [Variable(match[1] or match[2], match[0])]
                end = match.end()
        return (*parts, _unescape(_ESCAPED_IN_HEREDOC, body[end:]))

    def lines_inside(self, node: Node) -> str:
        """A heredoc's lines, for one whose body the grammar takes for something else (it starts with a backslash)."""
        begin = self.source.find(b"\n", node.start_byte) + 1
        end = next((child.start_byte for child in node.children if child.type == "heredoc_end"), node.end_byte)
        return self.source[begin:end].decode("utf-8", "replace") if 0 < begin < end else ""

    def word(self, node: Node, depth: int) -> Word:
        """The parts of a word: text with its quotes taken off, expansions, substitutions."""
        text = self.text(node)
        text = text.lstrip() if node.type == "simple_expansion" else text
        parts: Word = (_ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text),)
        if depth > _DEEPEST or node.type == "array":
            parts = (Variable("", text),)
        elif node.type == "raw_string":
            parts = (text[1:-1],)
        elif node.type == "ansi_c_string":
            parts = (_ANSI.sub(_ansi, text[2:-1]),)
        elif node.type == "string":
            parts = self.quoted(node, depth)
        elif node.type in ("simple_expansion", "expansion"):
            match = _VARIABLE.fullmatch(text)
            parts = (Variable((match[1] or match[2]) if match else "", text),)
        elif node.type in ("command_substitution", "process_substitution"):
            before = len(self.commands)
            with self.subshell():
                for child in node.named_children:
                    self.visit(child, None, depth + 1)
            inside = tuple(self.commands[before:])
            parts = (Substitution(inside, text, node.type == "process_substitution"),)
        elif node.type in ("concatenation", "command_name"):
            parts = tuple(part for child in node.named_children for part in self.word(child, depth + 1))
        return parts

    def quoted(self, node: Node, depth: int) -> Word:
        """A double-quoted string; text between its expansions is the source's own, since the grammar drops blanks."""
        parts: list[Part] = []
        position = node.start_byte + 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            between = self.source[position : child.start_byte].decode("utf-8", "replace")
            text = self.text(child)
            blanks = text[: len(text) - len(text.lstrip())]  # the grammar counts them to the expansion
            parts += [_unescape(_ESCAPED_IN_QUOTES, between) + blanks, *self.word(child, depth + 1)]
            position = child.end_byte
        rest = self.source[position : max(position, node.end_byte - 1)].decode("utf-8", "replace")
        return (*parts, _unescape(_ESCAPED_IN_QUOTES, rest))


def _unescape(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[1] or "", text)


def _ansi(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) % 256)
    return _ANSI_CHARS.get(code, code)
