"""The `rdf` source: N-Triples and Turtle, read as a stream with pyoxigraph (the extra `rdf`).

Resources are nodes, triples between resources are edges, `rdf:type` is a node's type, `rdfs:label` its name, other
literals are attributes.
"""

from __future__ import annotations

import math
import re
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from exporter.errors import ExportError
from exporter.identified import RESERVED, IdentifiedSource
from exporter.inputs import InputFile
from exporter.options import Options
from exporter.read import Export
from exporter.source import EdgeBlock, Node
from exporter.sources.rdf_spill import Spill, read_edges
from exporter.sources.rdf_triples import read_triples

_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = {
    _XSD + name
    for name in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
        "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
    )
}  # fmt: skip
_FLOATS = {_XSD + "double", _XSD + "float"}
_NO_NUMBERS = ("NaN", "INF", "+INF", "-INF")  # as XML Schema writes them
_UNTYPED = "resource"
_TYPES = "types"
_ANONYMOUS = re.compile("[a-f][0-9a-f]{23,31}")  # up to 128 random bits, without leading zeros
_FORMATS = {".nt": "N_TRIPLES", ".ttl": "TURTLE", ".turtle": "TURTLE"}


class _AboutTriple(Exception):
    """A triple one end of which is a triple."""


class RdfSource(IdentifiedSource):
    """A resource's id is its IRI, or `_:` and the label of a blank node. Its type is the first `rdf:type` in the files,
    all are its attribute `types` where it has several. Properties and types are called by what follows the last `#` or
    `/` of their IRI, or by the whole IRI where two would be called the same; the manifest has them all. A text in a
    language is the attribute `property@language`.

    Files are read once; literals and edges are kept on disk until all resources are known. Memory: their ids.
    """

    kind = "rdf"
    ids = "IRIs, or _: and the label of a blank node"

    def __init__(self, paths: Sequence[Path], scratch: Path, options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        self._paths = paths
        self._scratch = scratch
        self._first_types = array("i")  # code of each node's first type, -1 for none
        self._type_codes: dict[str, int] = {}
        self._property_codes: dict[str, int] = {}
        self._names: dict[str, dict[str, str]] = {}  # for the manifest: short names and their IRIs

    def nodes(self) -> Iterator[Node]:
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix=".rdf-") as folder:
            spill = Spill(Path(folder))
            for number, path in enumerate(self._paths):
                self._read(path, f"{number}." if len(self._paths) > 1 else "", spill)
            spill.flush()
            self._some(", ".join(map(str, self._paths)))
            properties, types = _called(self._property_codes), _called(self._type_codes)
            for what, short, codes in (
                ("properties", properties, self._property_codes),
                ("types", types, self._type_codes),
            ):
                self._names[what] = dict(zip(short, codes, strict=True))
            yield from self._described(spill, properties, types)
            self._relations = properties
            self._mapped = spill.mapped_edges()  # outlives the folder, which goes when the nodes have been read

    def _read(self, path: Path, prefix: str, spill: Spill) -> None:
        """One pass over a file: resources are numbered, literals and edges kept on disk."""
        ox = _reader()
        blank: dict[str, str] = {}
        with self._input(path) as file:
            form = getattr(ox.RdfFormat, _format(path))
            try:
                for triple in read_triples(ox, file, form, partial(self._bad.report, path)):
                    self._add(ox, triple, prefix, blank, spill)
            except _AboutTriple:
                line = _line_about_triple(ox, path)
                raise ExportError(
                    f"{path}: line {line}: a triple about a triple, which can't be exported",
                    "write the file without such triples",
                ) from None

    def _add(self, ox: Any, triple: Any, prefix: str, blank: dict[str, str], spill: Spill) -> None:
        subject = self._number(_identity(ox, triple.subject, prefix, blank))
        predicate, value = triple.predicate.value, triple.object
        if isinstance(value, ox.Literal):
            code = self._property_codes.setdefault(predicate, len(self._property_codes))
            spill.add_literal(subject, code, _value(value), _suffix(value))
        elif predicate == _RDF_TYPE and isinstance(value, ox.NamedNode):
            code = self._type_codes.setdefault(value.value, len(self._type_codes))
            if self._first_types[subject] < 0:
                self._first_types[subject] = code
            spill.add_literal(subject, -1, code, "")
        elif isinstance(value, ox.NamedNode | ox.BlankNode):
            code = self._property_codes.setdefault(predicate, len(self._property_codes))
            spill.add_edge(subject, code, self._number(_identity(ox, value, prefix, blank)))
        else:
            raise _AboutTriple

    def _number(self, identity: str) -> int:
        number = self._ids.setdefault(identity, len(self._ids))
        if number == len(self._first_types):
            self._first_types.append(-1)
        return number

    def _described(self, spill: Spill, properties: Sequence[str], types: Sequence[str]) -> Iterator[Node]:
        identities, iris = iter(self._ids), list(self._property_codes)
        for first, group in spill.literals(len(self._ids)):
            for number, literals in enumerate(group, first):
                identity = next(identities)
                code = self._first_types[number]
                attributes, name = _attributes(literals, properties, types, iris)
                yield Node(_UNTYPED if code < 0 else types[code], name or _local(identity), attributes, identity)

    def edges(self) -> Iterator[EdgeBlock]:
        for rows in read_edges(self._mapped) if self._mapped else ():
            for code in np.unique(rows[:, 1]).tolist():
                picked = rows[rows[:, 1] == code]
                sources, targets = (np.ascontiguousarray(picked[:, column]) for column in (0, 2))
                yield EdgeBlock(self._relations[code], sources, targets)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "names": self._names}


def _identity(ox: Any, resource: Any, prefix: str, blank: dict[str, str]) -> str:
    if isinstance(resource, ox.NamedNode):
        return str(resource.value)
    if not isinstance(resource, ox.BlankNode):
        raise _AboutTriple
    label = resource.value
    if _ANONYMOUS.fullmatch(label):  # made up by the reader, another one each time
        label = blank.setdefault(label, f"anonymous{len(blank)}")
    return f"_:{prefix}{label}"


class _LineByLine:
    """A file that hands out a line at a time, and knows which it was: the parser looks no further than it must."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._at_start = True
        self.line = 0

    def read(self, size: int = -1) -> bytes:
        part = self._stream.readline(size)
        self.line += self._at_start
        self._at_start = part.endswith(b"\n")
        return part


def _line_about_triple(ox: Any, path: Path) -> int:
    """The line of the file's first triple about a triple, which the parser itself doesn't tell."""
    with InputFile(path) as file:
        lines = _LineByLine(file.stream)
        triples = ox.parse(lines, getattr(ox.RdfFormat, _format(path)), without_named_graphs=True)
        while True:
            try:
                triple = next(triples, None)
            except SyntaxError:
                continue
            if triple is None or isinstance(triple.subject, ox.Triple) or isinstance(triple.object, ox.Triple):
                return lines.line


def _value(literal: Any) -> Any:
    """A literal as a JSON value: numbers and truth values as such where they are exact, NaN and infinities as null,
    else the text."""
    text, datatype = literal.value, literal.datatype.value
    try:
        if datatype in _INTEGERS:
            return int(text)
        if datatype in _FLOATS and text in _NO_NUMBERS:
            return None
        if datatype in _FLOATS or datatype == _XSD + "decimal":
            number = float(text)
            return number if Decimal(repr(number)) == Decimal(text.strip()) and math.isfinite(number) else text
    except (ValueError, ArithmeticError):
        return text
    if datatype == _XSD + "boolean" and text in ("true", "false", "1", "0"):
        return text in ("true", "1")
    return text


def _suffix(literal: Any) -> str:
    """What an attribute's name says of a literal's language, or of a datatype that is none of XML Schema's."""
    if literal.language:
        return f"@{literal.language}"
    datatype = literal.datatype.value
    return "" if datatype.startswith(_XSD) else f"^^{_local(datatype)}"


def _attributes(
    literals: Iterable[tuple[int, Any, str]], properties: Sequence[str], types: Sequence[str], iris: Sequence[str]
) -> tuple[dict[str, Any], str]:
    """A node's attributes, and its name: a label without language before an English one before any other."""
    found: dict[str, list[Any]] = {}
    labels: dict[str, str] = {}
    own_types = []
    for code, value, suffix in literals:
        if code < 0:
            own_types.append(types[value])
            continue
        found.setdefault(properties[code] + suffix, []).append(value)
        if iris[code] == _LABEL and value is not None:
            labels.setdefault(suffix, str(value))
    attributes = {name: values if len(values) > 1 else values[0] for name, values in found.items()}
    if len(own_types) > 1:
        attributes[_TYPES] = own_types
    return attributes, labels.get("", labels.get("@en", next(iter(labels.values()), "")))


def _local(iri: str) -> str:
    return re.split("[#/]", iri.rstrip("#/"))[-1] or iri


def _called(iris: Iterable[str]) -> list[str]:
    """Short names, in the order of `iris`; those that would be the same are the whole IRI."""
    known = list(iris)
    short = [_local(iri) for iri in known]
    taken: dict[str, int] = {RESERVED: 2, _TYPES: 2}
    for name in short:
        taken[name] = taken.get(name, 0) + 1
    return [name if taken[name] == 1 else iri for name, iri in zip(short, known, strict=True)]


def _format(path: Path) -> str:
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in _FORMATS:
        raise ExportError(
            f"{path}: cannot tell the format from the name", f"use one of {', '.join(_FORMATS)}, or with .gz"
        )
    return _FORMATS[suffix]


def _reader() -> Any:
    try:
        import pyoxigraph  # noqa: PLC0415 - an extra
    except ImportError:
        raise ExportError("RDF files need pyoxigraph, which isn't installed", "pip install 'kgshell[rdf]'") from None
    return pyoxigraph


def export_rdf(paths: Sequence[Path], out: Path, options: Options | None = None) -> Export:
    """Export RDF files, as one graph, into the new folder `out`. Raises ExportError."""
    options = options or Options()
    return options.write(RdfSource(paths, out.absolute().parent, options), out)
