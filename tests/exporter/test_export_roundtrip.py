"""Any graph survives: sources -> files -> read back gives the same nodes and edges.

The files are read twice: by `Export`, and by a few lines of plain Python that know the layout only.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter import Export, check, export_tables

Edge = tuple[str, str, str, str, str]  # source, relation, target, two attributes

# All of Unicode but surrogates, the characters that formats stumble over more often than by chance.
AWKWARD = st.sampled_from(
    ["\t", "\n", "\r", "\\", '"', "'", ",", "\\N", "\\t", "\x00", "\x0b", "\x85", "\u2028", "\ufeff"]
)
TEXT = st.lists(st.one_of(AWKWARD, st.text(st.characters(exclude_categories=["Cs"]), max_size=5)), max_size=4).map(
    "".join
)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=10**30, max_value=10**60),
    st.floats(),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 1e308, -0.0]),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
KEYS = TEXT.filter(lambda key: key not in ("id", "type", "name", "source_id"))
NODE = st.tuples(TEXT.filter(bool), TEXT, st.dictionaries(KEYS, JSON, max_size=3))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Edge]]:
    ids = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=6, unique=True))
    nodes = []
    for node_id in ids:
        node_type, name, attributes = draw(NODE)
        nodes.append({**attributes, "id": node_id, "type": node_type, "name": name})
    ends, few = st.sampled_from(ids), st.sampled_from(["", "x", "\\N"])
    edge = st.tuples(ends, st.sampled_from(["r", "s\t\n"]), ends, st.one_of(few, TEXT), few)
    edges = draw(st.lists(edge, max_size=12))
    if draw(st.booleans()):  # as a source that stores both directions
        edges += [(target, relation, source, *rest) for source, relation, target, *rest in edges if source != target]
    return nodes, edges


def as_null(value: Any) -> Any:
    """`value` with NaN and infinities as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [as_null(item) for item in value]
    return {key: as_null(item) for key, item in value.items()} if isinstance(value, dict) else value


def write(folder: Path, nodes: list[dict[str, Any]], edges: list[Edge]) -> tuple[Path, Path]:
    """JSON Lines with a byte order mark and CRLF, and gzipped CSV."""
    lines = "".join(json.dumps(node) + "\r\n" for node in nodes)
    (folder / "nodes.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("source", "relation", "target", "note", "a\ttab"), *edges])
    (folder / "edges.csv.gz").write_bytes(gzip.compress(text.getvalue().encode()))
    return folder / "nodes.jsonl", folder / "edges.csv.gz"


def expected_edges(nodes: list[dict[str, Any]], edges: list[Edge]) -> tuple[dict[str, list[Any]], set[str]]:
    """For each relation its edges in node ids, and the relations that are symmetric: the rules, slowly."""
    ids = {node["id"]: index for index, node in enumerate(nodes)}
    types = {name: index for index, name in enumerate(dict.fromkeys(node["type"] for node in nodes))}
    rank = [(types[node["type"]], index) for index, node in enumerate(nodes)]
    rows: dict[str, list[Any]] = {}
    for source, relation, target, *attributes in edges:
        rows.setdefault(relation, []).append((ids[source], ids[target], tuple(attributes)))
    symmetric = {
        relation
        for relation, group in rows.items()
        if Counter(group) == Counter((target, source, rest) for source, target, rest in group)
        and any(source != target for source, target, _ in group)
    }
    for relation in symmetric:
        kept: Counter[Any] = Counter()
        for row, count in Counter(rows[relation]).items():
            if row[0] == row[1]:
                kept[row] = math.ceil(count / 2)
            elif rank[row[0]] < rank[row[1]]:
                kept[row] = count
        rows[relation] = sorted(kept.elements())
    return rows, symmetric


def cell(text: str) -> str | None:
    """COPY's text format, read from the left."""
    if text == r"\N":
        return None
    out, characters = [], iter(text)
    for character in characters:
        out.append({"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}[next(characters)] if character == "\\" else character)
    return "".join(out)


def read_plainly(files: Path) -> tuple[list[Any], dict[str, list[Any]]]:
    schema = json.loads((files / "schema.json").read_bytes())
    records = [
        json.loads(line) for path in sorted((files / "nodes").iterdir()) for line in path.read_bytes().split(b"\n")[:-1]
    ]
    edges = {}
    for relation in schema["relations"]:
        lines = (files / relation["file"]).read_bytes().decode().split("\n")
        assert lines.pop() == ""
        assert [cell(name) for name in lines[0].split("\t")] == ["source", "target", "note", "a\ttab"]
        rows = [line.split("\t") for line in lines[1:]]
        edges[relation["name"]] = [(int(row[0]), int(row[1]), tuple(map(cell, row[2:]))) for row in rows]
    return records, edges


def read_export(export: Export) -> tuple[list[Any], dict[str, list[Any]]]:
    edges = {relation["name"]: list(export.edges(relation["id"])) for relation in export.schema["relations"]}
    return list(export.nodes()), edges


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_any_graph_survives(graph: tuple[list[dict[str, Any]], list[Edge]]) -> None:
    nodes, edges = graph
    expected, symmetric = expected_edges(nodes, edges)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export = export_tables(*write(folder, nodes, edges), folder / "graph")
        assert check(export.path) == []
        for records, found in (read_plainly(export.files), read_export(export)):
            assert len(records) == len(nodes)
            for index, (record, node) in enumerate(zip(records, nodes, strict=True)):
                rest = {key: value for key, value in node.items() if key not in ("id", "type", "name")}
                assert list(record) == ["node_id", "node_type", "name", "is_candidate", "attributes"]
                assert (record["node_id"], record["node_type"], record["name"]) == (index, node["type"], node["name"])
                # repr tells 1 from 1.0 and from True, and keeps the order of keys
                assert repr(record["attributes"]) == repr({"source_id": node["id"], **as_null(rest)})
            for relation in symmetric:
                found[relation].sort()
            assert found == expected
        assert [export.node(index) for index in range(len(nodes))] == list(export.nodes())
        assert export.source_ids() == {node["id"]: index for index, node in enumerate(nodes)}
        assert {item["name"] for item in export.schema["relations"] if item["symmetric"]} == symmetric
        counts = [(item["name"], item["source_rows"], item["rows"]) for item in export.manifest["relations"]]
        written = Counter(edge[1] for edge in edges)
        assert counts == [(name, written[name], len(rows)) for name, rows in expected.items()]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_tsv_cells_are_literal(tmp_path: Path, ending: bytes) -> None:
    rows = [
        ["id", "type", "name", 'a "b"'],
        ["1", "t", '"quoted', "\\t"],
        ["2", "t", "\u2028", ""],
        ["3", "t", "", "NA"],
    ]
    (tmp_path / "nodes.tsv").write_bytes(b"".join("\t".join(row).encode() + ending for row in rows))
    (tmp_path / "edges.tsv").write_bytes(ending.join([b"source\trelation\ttarget\tx", b'1\tr\t2\t"', b"2\tr\t1\t\\"]))
    export = export_tables(tmp_path / "nodes.tsv", tmp_path / "edges.tsv", tmp_path / "graph")
    assert [(record["name"], record["attributes"]['a "b"']) for record in export.nodes()] == [
        ('"quoted', "\\t"),
        ("\u2028", ""),
        ("", "NA"),
    ]
    assert list(export.edges(0)) == [(0, 1, ('"',)), (1, 0, ("\\",))]
    assert check(export.path) == []


def test_records_of_a_megabyte(tmp_path: Path) -> None:
    texts = [f"{i} " * (100_000 * i) for i in range(4)]
    nodes = [{"id": i, "type": "t", "name": "n", "text": text} for i, text in enumerate(texts)]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([list(nodes[0]), *(list(node.values()) for node in nodes)])
    (tmp_path / "nodes.csv").write_bytes(text.getvalue().encode())
    (tmp_path / "nodes.jsonl").write_bytes(b"".join(json.dumps(node).encode() + b"\n" for node in nodes))
    (tmp_path / "edges.tsv").write_bytes(b"source\trelation\ttarget\tx\n1\tr\t2\t" + texts[3].encode() + b"\n")
    for file in ("nodes.csv", "nodes.jsonl"):
        export = export_tables(tmp_path / file, tmp_path / "edges.tsv", tmp_path / f"{file}-graph")
        assert [export.node(i)["attributes"]["text"] for i in range(4)] == texts
        assert list(export.edges(0)) == [(1, 2, (texts[3],))]
        assert len((export.files / "DATA_FORMAT.txt").read_bytes()) < 6_000
        assert check(export.path) == []


def test_a_relation_larger_than_a_block_is_halved_whole(tmp_path: Path) -> None:
    """Both directions, far apart, with duplicates and self loops that are stored once, twice and three times."""
    count = 1_000
    pairs = [(i, (i * 7 + k) % count) for i in range(count) for k in range(1, 300)]
    rows = [*pairs, *pairs[:5], *((b, a) for a, b in (*pairs, *pairs[:5])), (3, 3), (4, 4), (4, 4), *[(5, 5)] * 3]
    (tmp_path / "nodes.csv").write_text(
        "id,type,name\n" + "".join(f"{i},{'odd' if i % 2 else 'even'},n\n" for i in range(count)), encoding="utf-8"
    )
    (tmp_path / "edges.tsv").write_text(
        "source\trelation\ttarget\n" + "".join(f"{a}\tto\t{b}\n" for a, b in rows), encoding="utf-8"
    )
    export = export_tables(tmp_path / "nodes.csv", tmp_path / "edges.tsv", tmp_path / "graph")
    nodes = [{"id": str(i), "type": "odd" if i % 2 else "even"} for i in range(count)]
    expected, symmetric = expected_edges(nodes, [(str(a), "to", str(b), "", "") for a, b in rows])
    assert symmetric == {"to"}
    assert sorted(export.edges(0)) == [(a, b, ()) for a, b, _ in expected["to"]]
    assert export.manifest["relations"] == [{"name": "to", "source_rows": len(rows), "rows": len(expected["to"])}]
    assert sorted(path.name for path in (export.files / "edges").iterdir()) == ["00.tsv"]
    assert check(export.path) == []
