"""The `obo` source: ontologies in OBO format, read with fastobo (the extra `obo`).

Terms and typedefs are nodes, `is_a` and `relationship` are edges: https://owlcollab.github.io/oboformat/doc/obo-syntax.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.identified import EdgeRow, IdentifiedSource, attribute_names
from exporter.options import Options
from exporter.read import Export
from exporter.source import EdgeBlock, Node

_TERM, _TYPEDEF = "term", "typedef"
_UNDEFINED = "undefined"  # the type of what is named as the end of an edge only
_ONE = {"name", "namespace", "comment", "created_by", "creation_date"}  # clauses that a frame has once


class OboSource(IdentifiedSource):
    """A term's type is its namespace, or the file's default one, or `term`; a typedef's is `typedef`. All other clauses
    are attributes, as they stand in the file. An edge's qualifiers are its attribute. What is only named as the end of
    an edge becomes a node without attributes. Memory: the whole ontology.
    """

    kind = "obo"

    def __init__(self, paths: Sequence[Path], options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._paths = paths
        self._edges: list[EdgeRow] = []

    def nodes(self) -> Iterator[Node]:
        for path in self._paths:
            yield from self._numbered(path, self._frames(path))
        named = dict.fromkeys(end for row in self._edges for end in (row.source, row.target))
        undefined = ((0, Node(_UNDEFINED, end, {}, end)) for end in named if end not in self._ids)
        yield from self._numbered(self._paths[0], undefined)
        self._some(", ".join(map(str, self._paths)))

    def _frames(self, path: Path) -> Iterator[tuple[int, Node]]:
        fastobo = _reader()
        with self._input(path) as file:
            try:
                frames = fastobo.iter(file.stream)
                clauses = [(clause.raw_tag(), clause.raw_value()) for clause in frames.header()]
                default = next((value for tag, value in clauses if tag == "default-namespace"), _TERM)
                for number, frame in enumerate(frames, 1):
                    if not isinstance(frame, fastobo.term.TermFrame | fastobo.typedef.TypedefFrame):
                        self._bad.report(path, number, "this frame (they are counted, not lines) is an instance")
                        continue
                    is_term = isinstance(frame, fastobo.term.TermFrame)
                    yield number, self._node(frame, default if is_term else _TYPEDEF, is_term)
            except SyntaxError as error:
                # Nothing is known of what follows, so there is nothing to skip to.
                raise ExportError(f"{path}: line {error.lineno}: not valid OBO ({error.msg})", "correct it") from error

    def _node(self, frame: Any, node_type: str, is_term: bool) -> Node:
        identity, name = str(frame.id), ""
        attributes: dict[str, Any] = {}
        for clause in frame:
            tag, value = clause.raw_tag(), clause.raw_value()
            if tag in ("is_a", "relationship"):
                relation, target = (tag, str(clause.term)) if tag == "is_a" else _relationship(clause)
                qualifiers = {"qualifiers": str(clause.qualifiers)} if clause.qualifiers else {}
                self._edges.append(EdgeRow(0, identity, relation, target, qualifiers))
                continue
            if tag == "name":
                name = str(value).strip()
            elif tag == "namespace" and is_term:
                node_type = value
            if tag == "def":
                attributes["def"] = clause.definition
                attributes["def_xref"] = [str(xref.id) for xref in clause.xrefs]
            elif tag.startswith("is_") or tag == "builtin":
                attributes[tag] = value == "true"
            elif tag in _ONE:
                attributes[tag] = str(value).strip()
            else:
                attributes.setdefault(tag, []).append(f"{value} {clause.qualifiers}" if clause.qualifiers else value)
        attributes.pop("name", None)
        return Node(node_type, name or identity, attributes, identity)

    def edges(self) -> Iterator[EdgeBlock]:
        yield from self._blocks_of_rows(self._paths[0], self._edges, attribute_names(self._edges))


def _relationship(clause: Any) -> tuple[str, str]:
    return str(clause.typedef), str(clause.term)


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
