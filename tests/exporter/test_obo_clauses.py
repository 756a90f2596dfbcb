"""OBO frames with any clauses, valid or not, once or again and again: every one of them is in the export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter import export_obo

pytest.importorskip("fastobo", reason="the extra obo is not installed")

VALUES = {
    "name": ["{}", "{} more words"],
    "namespace": ["{}"],
    "comment": ["{}"],
    "created_by": ["{}", "two {}"],
    "creation_date": ["2001-02-03T04:05:06Z", "on {}"],
    "def": ['"{}" [X:{}]', '"{}" []', '"{}" [not valid :{}]', "{} without quotes", '"{} unclosed'],
    "def_xref": ["{}"],
    "synonym": ['"{}" EXACT []', '"{}" [', "{}"],
    "xref": ["X:{}", 'X:{} "d"'],
    "is_obsolete": ["true", "false", "maybe {}"],
    "is_anonymous": ["true"],
    "builtin": ["true", "{}"],
    "property_value": ['p "{}" xsd:string', "{}"],
    "subset": ["{}", "two {}"],
    "intersection_of": ["X:{}"],
    "own_tag": ["{}"],
    "is_a": ["X:{}"],
    "relationship": ["part_of X:{}"],
}
CLAUSE = st.sampled_from([(tag, value) for tag, values in VALUES.items() for value in values])


@given(st.sampled_from(["Term", "Typedef", "Instance"]), st.lists(CLAUSE, max_size=8))
def test_no_clause_is_lost(
    tmp_path_factory: pytest.TempPathFactory, frame: str, clauses: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("obo")
    lines = [f"{tag}: {value.replace('{}', f'w{number}w')}" for number, (tag, value) in enumerate(clauses)]
    (folder / "a.obo").write_text("\n".join((f"[{frame}]", "id: A:1", *lines, "")), encoding="utf-8")
    export = export_obo([folder / "a.obo"], folder / "out")
    written = "".join(path.read_text("utf-8") for path in export.files.rglob("*.*") if path.name != "schema.json")
    for number, (_, value) in enumerate(clauses):
        assert "{}" not in value or f"w{number}w" in written
    told = export.node(0)["attributes"]
    for tag in {tag for tag, _ in clauses} - {"name", "is_a", "relationship", "def_xref"}:
        count = sum(tag == each for each, _ in clauses)
        assert len(told[tag] if isinstance(told[tag], list) else [told[tag]]) == count


def test_what_a_frame_has_twice(tmp_path: Path) -> None:
    text = """[Term]
id: A:1
name: one
name: two
namespace: x
namespace: y
def: "a" [X:1]
def: "b" [X:2, X:3]
def: "c" [not valid :X]
comment: first
comment: second
is_obsolete: true
is_obsolete: maybe
"""
    (tmp_path / "a.obo").write_text(text, encoding="utf-8")
    record = export_obo([tmp_path / "a.obo"], tmp_path / "out").node(0)
    assert (record["node_type"], record["name"]) == ("x", "one")
    assert record["attributes"] == {
        "source_id": "A:1",
        "name": ["one", "two"],
        "namespace": ["x", "y"],
        "def": ["a", "b", "c"],
        "def_xref": ["X:1", "X:2", "X:3", "[not valid :X]"],
        "comment": ["first", "second"],
        "is_obsolete": [True, "maybe"],
    }
    assert json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))["source"]["notes"]
