"""The `obo` source: ontologies in OBO format, read with fastobo (the extra `obo`).

Terms and typedefs are nodes, `is_a` and `relationship` are edges: https://owlcollab.github.io/oboformat/doc/obo-syntax.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exporter.errors import ExportError
from exporter.identified import EdgeRow, IdentifiedSource, attribute_names
from exporter.inputs import InputFile
from exporter.options import Options
from exporter.read import Export
from exporter.rows import decode
from exporter.source import EdgeBlock, Node

_TERM, _TYPEDEF, _INSTANCE = "term", "typedef", "instance"
_FRAMES = {"Term": _TERM, "Typedef": _TYPEDEF, "Instance": _INSTANCE}
_UNDEFINED = "undefined"  # the type of what is named as the end of an edge only
_ONE = {"name", "namespace", "comment", "created_by", "creation_date"}  # clauses that a frame has once; else, a list
_HEADER = re.compile(r"\[(\w+)\]\s*(!.*)?")
_CLAUSE = re.compile(r"([\w-]+):\s*(.*?)\s*(\s!.*)?")
# Tags of OBO 1.0, and what they are called since: the specification's appendix on deprecated tags.
_SCOPELESS = re.compile(r'(synonym:\s*"(?:[^"\\]|\\.)*")(\s*\[)')
_SYNONYM = re.compile(r'(exact|broad|narrow|related)_synonym:(\s*"(?:[^"\\]|\\.)*")')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(.*)')
_EDGES = ("is_a", "relationship")
_SHOWN = 80  # characters of a bad line in messages
_OLD_TAGS = {"xref_analog:": "xref:", "xref_unk:": "xref:", "use_term:": "consider:"}


class _Frame(NamedTuple):
    """A term, typedef or instance as it stands in the file: its first line's number, its clauses with theirs."""

    kind: str
    line: int
    clauses: list[tuple[int, str]]


class OboSource(IdentifiedSource):
    """A term's type is its namespace, or the file's default one, or `term`; a typedef's is `typedef`, an instance's
    `instance`. All other clauses are attributes, as they stand in the file; one that a frame should have once is a list
    where it has several, the first of which is the node's name or type. An edge's qualifiers are its attribute.
    What is only named as the end of an edge becomes a node without attributes.

    A clause that fastobo refuses is an attribute all the same, as it stands: many files have tags of their own and
    lists of references that aren't well-formed. Bad rows are lines that are no clauses, edges that can't be read, and
    frames without an id. Memory: all edges.
    """

    kind = "obo"
    ids = "ids of terms"

    def __init__(self, paths: Sequence[Path], options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._paths = paths
        self._edges: list[EdgeRow] = []
        self._refused = 0

    def describe(self) -> dict[str, Any]:
        notes = {"clauses kept as they stand, since they aren't valid": self._refused} if self._refused else {}
        return {**super().describe(), "notes": notes}

    def nodes(self) -> Iterator[Node]:
        for path in self._paths:
            yield from self._numbered(path, self._nodes(path))
        named = dict.fromkeys(end for row in self._edges for end in (row.source, row.target))
        undefined = ((0, Node(_UNDEFINED, end, {}, end)) for end in named if end not in self._ids)
        yield from self._numbered(self._paths[0], undefined)
        self._some(", ".join(map(str, self._paths)))

    def _nodes(self, path: Path) -> Iterator[tuple[int, Node]]:
        fastobo = _reader()
        with self._input(path) as file:
            default = _TERM
            for frame in _frames(file):
                if not frame.kind:
                    default = _default_namespace(frame) or _TERM
                elif frame.kind == "Instance":
                    yield from self._instance(path, frame)
                elif frame.kind in _FRAMES:
                    refused: list[tuple[str, str]] = []
                    parsed = self._parsed(fastobo, path, frame, refused)
                    if parsed is not None and not self._is_there(path, frame, str(parsed.id)):
                        node_type = default if frame.kind == "Term" else _TYPEDEF
                        yield frame.line, self._node(parsed, node_type, frame, refused)
                else:
                    self._bad.report(path, frame.line, f"no frame is called {frame.kind}")

    def _is_there(self, path: Path, frame: _Frame, identity: str) -> bool:
        """Whether there is a frame with this id already; ontologies have typedefs in common."""
        if identity not in self._ids:
            return False
        if frame.kind != "Typedef":
            self._bad.report(path, frame.line, f"duplicate id '{identity}'")
        return True

    def _parsed(self, fastobo: Any, path: Path, frame: _Frame, refused: list[tuple[str, str]]) -> Any:
        """The frame as fastobo reads it; None where it has no id. Clauses that can't be read go to `refused`."""
        clauses = list(frame.clauses)
        while True:
            try:
                return fastobo.loads("".join(f"{text}\n" for text in (f"[{frame.kind}]", *(c for _, c in clauses))))[0]
            except SyntaxError as error:
                place = (error.lineno or 0) - 2
                if not 0 < place < len(clauses):
                    self._bad.report(path, frame.line, f"not valid OBO ({error.msg}), where a frame's id should follow")
                    return None
                line, text = clauses.pop(place)
                clause = _CLAUSE.fullmatch(text)
                if clause is None or clause[1] in _EDGES:
                    self._bad.report(path, line, f"not valid OBO ({error.msg}): {text[:_SHOWN]}")
                else:
                    refused.append((clause[1], text.removeprefix(f"{clause[1]}:").strip()))

    def _node(self, parsed: Any, node_type: str, frame: _Frame, refused: Sequence[tuple[str, str]]) -> Node:
        identity = str(parsed.id)
        attributes: dict[str, Any] = {}
        for clause in parsed:
            tag, value = _tag_and_value(clause)
            if tag in _EDGES:
                relation, target = _link(clause, tag)
                qualifiers = {"qualifiers": str(clause.qualifiers)} if clause.qualifiers else {}
                self._edges.append(EdgeRow(frame.line, identity, relation, target, qualifiers))
            elif tag == "def":
                _add_definition(attributes, clause.definition, [str(xref.id) for xref in clause.xrefs])
            elif tag.startswith("is_") or tag == "builtin":
                _add(attributes, tag, value == "true", once=True)
            elif tag in _ONE:
                _add(attributes, tag, str(value).strip(), once=True)
            else:
                _add(attributes, tag, f"{value} {clause.qualifiers}" if clause.qualifiers else value)
        self._refused += len(refused)
        for tag, value in refused:
            definition = _QUOTED.match(value) if tag == "def" else None
            if definition:
                _add_definition(attributes, definition[1].replace('\\"', '"'), [definition[2].strip()])
            else:
                _add(attributes, tag, value, once=tag in _ONE)
        if frame.kind == "Term" and "namespace" in attributes:
            node_type = _first(attributes["namespace"]) or node_type
        return Node(node_type, _named(attributes) or identity, attributes, identity)

    def _instance(self, path: Path, frame: _Frame) -> Iterator[tuple[int, Node]]:
        """An instance's node: fastobo stops the process at some of them, so their few clauses are read here."""
        found: dict[str, list[str]] = {}
        for line, text in frame.clauses:
            clause = _CLAUSE.fullmatch(text)
            if clause is None:
                self._bad.report(path, line, f"not valid OBO (expected a clause): {text[:_SHOWN]}")
            else:
                found.setdefault(clause[1], []).append(clause[2])
        identity, *others = found.pop("id", [""])
        if others:
            found["id"] = others
        for target in found.pop("instance_of", []):
            self._edges.append(EdgeRow(frame.line, identity, "instance_of", target, {}))
        attributes: dict[str, Any] = {}
        for tag, values in found.items():
            for value in values:
                _add(attributes, tag, value, once=tag in _ONE)
        yield frame.line, Node(_INSTANCE, _named(attributes) or identity, attributes, identity)

    def edges(self) -> Iterator[EdgeBlock]:
        yield from self._blocks_of_rows(self._paths[0], self._edges, attribute_names(self._edges))


def _add(attributes: dict[str, Any], tag: str, value: Any, once: bool = False) -> None:
    """Add a clause's value: to a list, but for the first of a tag that a frame has `once`."""
    if tag not in attributes:
        attributes[tag] = value if once else [value]
    elif isinstance(attributes[tag], list):
        attributes[tag].append(value)
    else:
        attributes[tag] = [attributes[tag], value]


def _add_definition(attributes: dict[str, Any], text: str, xrefs: list[str]) -> None:
    _add(attributes, "def", text, once=True)
    attributes.setdefault("def_xref", []).extend(xrefs)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _named(attributes: dict[str, Any]) -> str:
    """The name, which is an attribute no longer where it is the only one."""
    name = attributes.get("name", "")
    return str(name[0] if isinstance(name, list) else attributes.pop("name", ""))


def _frames(file: InputFile) -> Iterator[_Frame]:
    """The header as a frame of no kind, then every frame; without empty lines and comments."""
    frame = _Frame("", 1, [])
    for number, raw in enumerate(file.lines(), 1):
        text = decode(raw, file.path, number).strip()
        started = _HEADER.fullmatch(text)
        if started:
            yield frame
            frame = _Frame(started[1], number, [])
        elif text and not text.startswith("!"):
            frame.clauses.append((number, _as_of_now(text)))
    yield frame


def _as_of_now(text: str) -> str:
    """A clause whose tag is of OBO 1.0 as later versions have it."""
    for old, tag in _OLD_TAGS.items():
        if text.startswith(old):
            return tag + text.removeprefix(old)
    if text.startswith("synonym:"):
        return _SCOPELESS.sub(r"\1 RELATED\2", text, count=1)  # the scope where there is none
    return _SYNONYM.sub(lambda found: f"synonym:{found[2]} {found[1].upper()}", text, count=1)


def _default_namespace(header: _Frame) -> str | None:
    clauses = (_CLAUSE.fullmatch(text) for _, text in header.clauses)
    return next((clause[2] for clause in clauses if clause and clause[1] == "default-namespace"), None)


def _tag_and_value(clause: Any) -> tuple[str, str]:
    """The value as it stands in the file; a name and a comment without their escapes."""
    tag = clause.raw_tag()
    return tag, getattr(clause, tag) if tag in ("name", "comment") else clause.raw_value()


def _link(clause: Any, tag: str) -> tuple[str, str]:
    """Relation and target of an edge. A typedef is a kind of another typedef."""
    if tag == "is_a":
        return tag, str(clause.term if hasattr(clause, "term") else clause.typedef)
    return str(clause.typedef), str(clause.target if hasattr(clause, "target") else clause.term)


def _reader() -> Any:
    try:
        import fastobo  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExportError("OBO files need fastobo, which isn't installed", "pip install 'kgshell[obo]'") from None
    return fastobo


def export_obo(paths: Sequence[Path], out: Path, options: Options | None = None) -> Export:
    """Export OBO files, as one graph, into the new folder `out`. Raises ExportError."""
    options = options or Options()
    return options.write(OboSource(paths, options), out)
