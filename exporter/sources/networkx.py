"""The `networkx` source: GraphML, and node-link JSON as networkx writes it.

GraphML (http://graphml.graphdrawing.org/specification.html) is read as a stream, twice; node-link JSON at once. Neither
needs networkx.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.identified import EdgeRow, IdentifiedSource, attribute_names
from exporter.options import Options
from exporter.plain import as_cell
from exporter.read import Export
from exporter.rows import BadRows, parse_json
from exporter.source import EdgeBlock, Node

_TYPES = ("type", "node_type", "labels", "labelV", "category", "kind")
_NAMES = ("name", "title")
_LABEL = "label"  # of a node: its name as Gephi and yEd write it; its type where it has a name beside it
_MANY_TYPES = 100  # more are no types where every second node has one of its own
_RELATIONS = ("relation", "type", "label", "predicate", "edge_type")
_KEY = "key"  # what tells a multigraph's parallel edges apart: their relation where nothing else says it, or a number
_COMPARED_IDS = 100_000  # of edges; keys are few, so that one occurs twice among them
_NODE, _EDGE = "node", "edge"  # the type and the relation where nothing says one
_MAPPED = ("type", "name", "relation")  # what an attribute can be named for
_INTEGERS = ("int", "long", "integer")
_LINKS = ("links", "edges")  # what the list of edges is called
_JSON = (".json", ".json.gz")
_SHOWN = 80  # characters of a bad value in messages


class _BadValue(Exception):
    """A datum that is not of its key's type."""


class _RepeatedId(Exception):
    """Two edges have the same id."""


class _PropertyGraph(IdentifiedSource):
    """A node's type and name, an edge's relation are what the first of some usual attributes says, or those that the
    user names. `label` is a node's name, or its type where it has a name and no other type. Attributes that were read
    so are kept too. An undirected graph's edges have no direction in the export.
    """

    kind = "networkx"

    def __init__(self, path: Path, names: Mapping[str, str], options: Options) -> None:
        super().__init__(options.on_bad_row, options.progress)
        for what in names:
            if what not in _MAPPED:
                raise ExportError(f"there is no '{what}' to name an attribute for", f"known: {', '.join(_MAPPED)}")
        self._path = path
        self._names = names
        self._type_keys = (names["type"],) if "type" in names else _TYPES
        self._name_keys = (names["name"],) if "name" in names else _NAMES
        self._relation_keys = (names["relation"],) if "relation" in names else _RELATIONS
        self._types: set[str] = set()
        self._occurring: dict[str, None] = {}  # attributes of nodes, where one is named

    def _node(self, source_id: str | int, attributes: Mapping[str, Any]) -> Node:
        node_type, name = _first(attributes, self._type_keys), _first(attributes, self._name_keys)
        label = _first(attributes, (_LABEL,))
        if name is None and "name" not in self._names:
            name = label
        elif node_type is None and "type" not in self._names:
            node_type = label
        node_type = node_type or _NODE
        self._types.add(node_type)
        if self._names:
            self._occurring.update(dict.fromkeys(attributes))
        return Node(node_type, str(source_id) if name is None else name, attributes, source_id)

    def _all_nodes(self, rows: Iterable[tuple[int, Node]]) -> Iterator[Node]:
        """The nodes, numbered. Raises ExportError where there is none, or none has an attribute that is named."""
        yield from self._numbered(self._path, rows)
        self._some(self._path)
        for what in ("type", "name"):
            self._check_named(what, _NODE, self._occurring)

    def _check_named(self, what: str, of: str, occurring: Collection[str]) -> None:
        named = self._names.get(what)
        if named is not None and named not in occurring:
            raise ExportError(
                f"{self._path}: no {of} has the attribute '{named}' that is named for its {what}",
                f"attributes of {of}s: {', '.join(occurring) or 'none'}",
            )

    def _blocks_of_edges(
        self, rows: Iterable[EdgeRow], names: Mapping[str, Sequence[str]], directed: bool
    ) -> Iterator[EdgeBlock]:
        """The edges, whose attributes are `names`. Raises ExportError where none has the one that is named."""
        if names:
            self._check_named("relation", _EDGE, dict.fromkeys(chain.from_iterable(names.values())))
        yield from self._blocks_of_rows(self._path, rows, names, undirected=not directed)

    def describe(self) -> dict[str, Any]:
        many = len(self._types) > max(_MANY_TYPES, len(self._ids) // 2)
        what = f"{len(self._types):,} node types for {len(self._ids):,} nodes; --names type=ATTRIBUTE says what is one"
        return {**super().describe(), "warnings": [what] if many else []}

    def _edge(self, line: int, source: str, target: str, attributes: Mapping[str, Any]) -> EdgeRow:
        relation = _first(attributes, self._relation_keys) or (
            _EDGE if "relation" in self._names else _by_key(attributes)
        )
        return EdgeRow(line, source, relation, target, {key: as_cell(value) for key, value in attributes.items()})


def _by_key(attributes: Mapping[str, Any]) -> str:
    key = attributes.get(_KEY)
    return key if isinstance(key, str) and key and not key.isdecimal() else _EDGE


def _first(attributes: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of `keys` that is there, as a text; of a list its first item."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


class GraphMLSource(_PropertyGraph):
    """A GraphML file. Nested graphs are read as one; ports are passed over; hyperedges are refused. Ids of edges that
    occur twice are a multigraph's keys, as networkx writes them."""

    def __init__(self, path: Path, names: Mapping[str, str], options: Options) -> None:
        super().__init__(path, names, options)
        self._directed: bool | None = None
        self._edge_ids: set[str] | None = set()  # of the first edges, until it is known whether they are keys
        self._identity = "id"  # what an edge's id is called

    def nodes(self) -> Iterator[Node]:
        def rows() -> Iterator[tuple[int, Node]]:
            for line, element, data in self._elements(_NODE, self._bad):
                yield line, self._node(element.get("id", ""), data)

        yield from self._all_nodes(rows())

    def edges(self) -> Iterator[EdgeBlock]:
        try:
            names = attribute_names(self._edges(self._bad.silent()))
        except _RepeatedId:
            self._identity, self._edge_ids = _KEY, None
            names = attribute_names(self._edges(self._bad.silent()))
        self._edge_ids = None
        yield from self._blocks_of_edges(self._edges(self._bad), names, directed=self._directed is True)

    def _edges(self, bad: BadRows) -> Iterator[EdgeRow]:
        for line, element, data in self._elements(_EDGE, bad):
            if element.get("directed", str(self._directed).lower()) != str(self._directed).lower():
                raise ExportError(
                    f"{self._path}: line {line}: some edges are directed and some are not", "write two graphs"
                )
            identity = {}
            if "id" in element.attrib:
                identity[self._identity] = element.attrib["id"]
                self._compare(element.attrib["id"])
            yield self._edge(line, element.get("source", ""), element.get("target", ""), {**identity, **data})

    def _compare(self, identity: str) -> None:
        """Raises _RepeatedId where an id of the first edges occurs again, unless it is known what ids are."""
        if self._edge_ids is not None and len(self._edge_ids) < _COMPARED_IDS:
            if identity in self._edge_ids:
                raise _RepeatedId
            self._edge_ids.add(identity)

    def _elements(self, wanted: str, bad: BadRows) -> Iterator[tuple[int, ET.Element, dict[str, Any]]]:
        """Nodes or edges with the lines where they end and their data, each forgotten once it has been read."""
        keys: dict[str, tuple[str, str]] = {}  # id -> name, type
        defaults: dict[str, dict[str, Any]] = {_NODE: {}, _EDGE: {}}
        with self._input(self._path) as file:
            parser: Any = ET.XMLPullParser(("start", "end"))
            above: list[ET.Element] = []
            try:
                for line, text in enumerate(file.lines(), 1):
                    self._feed(parser, text)
                    for event, element in parser.read_events():
                        tag = element.tag.rpartition("}")[2]
                        if event == "start":
                            if not above:
                                self._check_root(line, tag)
                            above.append(element)
                            if tag == "graph":
                                self._set_direction(element)
                            continue
                        above.pop()
                        if tag == "key":
                            _add_key(element, keys, defaults)
                        elif tag == "hyperedge":
                            raise ExportError(
                                f"{self._path}: line {line}: a hyperedge",
                                "only edges between two nodes can be exported",
                            )
                        elif tag == wanted:
                            try:
                                yield line, element, {**defaults[tag], **_data(element, keys)}
                            except _BadValue as error:
                                bad.report(self._path, line, str(error))
                        if tag in (*defaults, "graph") and above:
                            above[-1].remove(element)
                parser.close()
            except (ET.ParseError, _BadValue) as error:
                raise ExportError(f"{self._path}: not valid GraphML ({error})", "write the file again") from error
        if self._directed is None:
            raise ExportError(f"{self._path}: not valid GraphML (there is no <graph> in it)", "write the file again")

    def _feed(self, parser: Any, text: bytes) -> None:
        """Raises ExportError where the file names an encoding that can't be read; other faults come as events."""
        try:
            parser.feed(text)
        except (LookupError, ValueError) as error:
            raise ExportError(
                f"{self._path}: its encoding can't be read ({error})", "save the file as UTF-8"
            ) from error

    def _check_root(self, line: int, tag: str) -> None:
        if tag != "graphml":
            raise ExportError(
                f"{self._path}: line {line}: not GraphML: its root is <{tag[:_SHOWN]}>, not <graphml>",
                "networkx.write_graphml makes what is needed of a graph that networkx can read, of GEXF and GML too",
            )

    def _set_direction(self, graph: ET.Element) -> None:
        directed = graph.get("edgedefault", "directed") == "directed"
        if self._directed not in (None, directed):
            raise ExportError(f"{self._path}: some graphs in it are directed and some are not", "write two files")
        self._directed = directed


def _add_key(element: ET.Element, keys: dict[str, tuple[str, str]], defaults: dict[str, dict[str, Any]]) -> None:
    identity = element.get("id", "")
    keys[identity] = (element.get("attr.name", identity), element.get("attr.type", "string"))
    default = next((child.text or "" for child in element if child.tag.endswith("default")), None)
    if default is not None:
        for what in defaults if element.get("for") in (None, "all") else [element.get("for", "")]:
            if what in defaults:
                defaults[what][keys[identity][0]] = _typed(default, keys[identity][1])


def _data(element: ET.Element, keys: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    data = {}
    for child in element:
        if child.tag.rpartition("}")[2] == "data":
            name, kind = keys.get(child.get("key", ""), (child.get("key", ""), "string"))
            try:
                data[name] = _typed("".join(child.itertext()), kind)
            except _BadValue as error:
                raise _BadValue(f"attribute '{name}': {error}") from None
    return data


def _typed(text: str, kind: str) -> Any:
    """A datum's value. Raises _BadValue where it is not of its key's type."""
    try:
        if kind in _INTEGERS:
            return int(text)
        if kind in ("float", "double"):
            return float(text)
    except ValueError:
        raise _BadValue(f"'{text[:_SHOWN]}' is not of type {kind}") from None
    return text.strip().lower() in ("true", "1") if kind == "boolean" else text


class NodeLinkSource(_PropertyGraph):
    """A graph as node-link JSON: `nodes` with `id`, and `links` or `edges` with `source` and `target`."""

    def nodes(self) -> Iterator[Node]:
        self._graph = self._load()
        yield from self._all_nodes(self._node_rows())

    def _node_rows(self) -> Iterator[tuple[int, Node]]:
        for number, row in enumerate(self._list("nodes"), 1):
            if isinstance(row, dict) and "id" in row:
                attributes = {key: value for key, value in row.items() if key != "id"}
                source_id = row["id"] if isinstance(row["id"], int) else as_cell(row["id"]) or ""
                yield number, self._node(source_id, attributes)
            else:
                self._bad.report(self._path, number, "this node (they are counted, not lines) has no 'id'")

    def edges(self) -> Iterator[EdgeBlock]:
        rows = list(self._edge_rows())
        directed = self._graph.get("directed", False) is not False
        yield from self._blocks_of_edges(rows, attribute_names(rows), directed)

    def _edge_rows(self) -> Iterator[EdgeRow]:
        for number, row in enumerate(self._links(), 1):
            if isinstance(row, dict) and {"source", "target"} <= row.keys():
                attributes = {key: value for key, value in row.items() if key not in ("source", "target")}
                source, target = (as_cell(row[end]) or "" for end in ("source", "target"))
                yield self._edge(number, source, target, attributes)
            else:
                self._bad.report(self._path, number, "this edge (they are counted, not lines) has no ends")

    def _links(self) -> list[Any]:
        """The list of edges, the one that has any where there are two."""
        first, *more = (self._list(key) for key in _LINKS if key in self._graph)
        if first and any(more):
            raise ExportError(f"{self._path}: two lists of edges: 'links' and 'edges'", "leave one of them out")
        return next(filter(None, more), first)

    def _load(self) -> dict[str, Any]:
        with self._input(self._path) as file:
            try:
                graph = parse_json(b"".join(file.blocks()))
            except ValueError as error:
                raise ExportError(f"{self._path}: {error}", "write the file again") from error
        if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
            raise ExportError(f"{self._path}: no list of nodes", "networkx.node_link_data makes what is needed")
        if not any(key in graph for key in _LINKS):
            found = ", ".join(f"'{key[:_SHOWN]}'" for key in graph)
            raise ExportError(
                f"{self._path}: no list of edges: neither 'links' nor 'edges'; found: {found}",
                "rename it; a graph without edges has an empty list",
            )
        return graph

    def _list(self, key: str) -> list[Any]:
        found = self._graph[key]
        if not isinstance(found, list):
            raise ExportError(f"{self._path}: '{key}' is not a list", "networkx.node_link_data makes what is needed")
        return found


def export_networkx(
    path: Path, out: Path, options: Options | None = None, *, names: Mapping[str, str] | None = None
) -> Export:
    """Export a GraphML or node-link JSON file (by its name) into the new folder `out`. Raises ExportError.

    `names` says which attributes hold a node's `type` and `name` and an edge's `relation`.
    """
    options = options or Options()
    made = NodeLinkSource if path.name.lower().endswith(_JSON) else GraphMLSource
    return options.write(made(path, names or {}, options), out)
