"""OBO and RDF files, with the readers of the extras."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest

from exporter import Export, ExportError, Options, check, export_obo, export_rdf

pytest.importorskip("fastobo", reason="the extra obo is not installed")
pytest.importorskip("pyoxigraph", reason="the extra rdf is not installed")

OBO = r"""format-version: 1.2
default-namespace: zoo

[Term]
id: X:1
name: one \, two
namespace: other
def: "a \"quoted\" text" [PMID:1, X:2 "d"]
comment: plain
synonym: "s" EXACT []
synonym: "t" RELATED [X:9] {source="y"}
xref: A:1
is_a: X:2 {source="s"} ! two
relationship: part_of X:3 ! three
intersection_of: part_of X:9

[Term]
id: X:2
name: two
is_obsolete: true

[Typedef]
id: part_of
name: part of
is_transitive: true
"""
TURTLE = """
@prefix : <http://ex.org/> . @prefix o: <http://other.org/x#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :Gene, :Thing ; rdfs:label "Das A"@de, "The A"@en ; :size 5, 7 ; :ratio 1.5 ; :exact 0.10 ; :ok true ;
   :bad "x"^^:odd ; :likes :b ; o:likes [ :likes :a ] .
:b rdfs:label "B" ; :when "2020-01-02"^^<http://www.w3.org/2001/XMLSchema#date> ; :note "first" .
:b :note "second" ; :size 18446744073709551616 .
_:named :likes :b .
"""
NAMES = "http://ex.org/"


def nodes(export: Export) -> dict[str, tuple[str, str, dict[str, Any]]]:
    found = {}
    for record in export.nodes():
        attributes = dict(record["attributes"])
        found[attributes.pop("source_id")] = (record["node_type"], record["name"], attributes)
    return found


def edges(export: Export) -> set[tuple[str, str, str]]:
    names = [record["attributes"]["source_id"] for record in export.nodes()]
    return {
        (names[source], relation["name"], names[target])
        for relation in export.schema["relations"]
        for source, target, _ in export.edges(relation["id"])
    }


class TestObo:
    def test_terms_typedefs_and_what_is_only_named(self, tmp_path: Path) -> None:
        (tmp_path / "zoo.obo.gz").write_bytes(gzip.compress(OBO.encode()))
        export = export_obo([tmp_path / "zoo.obo.gz"], tmp_path / "out")
        assert check(export.path) == []
        assert nodes(export) == {
            "X:1": (
                "other", "one , two",
                {"namespace": "other", "def": 'a "quoted" text', "def_xref": ["PMID:1", "X:2"], "comment": "plain",
                 "synonym": ['"s" EXACT []', '"t" RELATED [X:9] {source="y"}'], "xref": ["A:1"],
                 "intersection_of": ["part_of X:9"]},
            ),
            "X:2": ("zoo", "two", {"is_obsolete": True}),
            "part_of": ("typedef", "part of", {"is_transitive": True}),
            "X:3": ("undefined", "X:3", {}),
        }  # fmt: skip
        assert edges(export) == {("X:1", "is_a", "X:2"), ("X:1", "part_of", "X:3")}
        assert next(iter(export.edges(0)))[2] == ('{source="s"}',)

    def test_several_files_are_one_graph(self, tmp_path: Path) -> None:
        (tmp_path / "a.obo").write_text("[Term]\nid: A:1\nis_a: B:1\n", encoding="utf-8")
        (tmp_path / "b.obo").write_text("[Term]\nid: B:1\nname: b\n", encoding="utf-8")
        export = export_obo([tmp_path / "a.obo", tmp_path / "b.obo"], tmp_path / "out")
        assert {identity: described[:2] for identity, described in nodes(export).items()} == {
            "A:1": ("term", "A:1"), "B:1": ("term", "b"),
        }  # fmt: skip
        assert edges(export) == {("A:1", "is_a", "B:1")}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[Term]\nid: A:1\nno such clause\n", r"a\.obo: line 3: not valid OBO"),
            ("[Term]\nid: A:1\n\n[Term]\nid: A:1\n", r"a\.obo: line 4: duplicate id 'A:1'"),
            ("[Term]\nname: a\n", r"a\.obo: line 1: not valid OBO .*, where a frame's id should follow"),
            ("[Term]\nid: A:1\n\nis_a: B:1 C:1 D:1\n", r"a\.obo: line 4: not valid OBO .*: is_a: B:1 C:1 D:1"),
            ("[Thing]\nid: A:1\n", r"a\.obo: line 1: no frame is called Thing"),
            ("[Instance]\nid: A:1\nno clause\n", r"a\.obo: line 3: not valid OBO \(expected a clause\): no clause"),
            ("format-version: 1.2\n", "no nodes"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "a.obo").write_text(text, encoding="utf-8")
        with pytest.raises(ExportError, match=message):
            export_obo([tmp_path / "a.obo"], tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_what_files_have_that_is_not_quite_valid(self, tmp_path: Path) -> None:
        """Clauses of OBO 1.0, tags of a file's own, references that aren't well-formed, instances, no line is lost."""
        text = r"""format-version: 1.2
date: 2019:10:17 16:01
default-namespace: zoo ! comment
![Term]
[Term]
id: A:1
name: a \! b ! comment
comment: \{x\}
def: "A \"quoted\" text." [Gene Ontology:GO, PubMed :PMID]
related_synonym: "b" []
synonym: "c" []
xref_analog: X:1
created_in: "beta1"
subset: with blanks in it

[Typedef]
id: part_of
is_a: overlaps ! overlaps

[Instance]
id: I:1
name: one
property_value: size "3" xsd:integer
instance_of: A:1 ! a
"""
        (tmp_path / "a.obo").write_text(text, encoding="utf-8")
        export = export_obo([tmp_path / "a.obo"], tmp_path / "out")
        assert nodes(export) == {
            "A:1": (
                "zoo", "a ! b",
                {"comment": "{x}", "def": 'A "quoted" text.', "def_xref": ["[Gene Ontology:GO, PubMed :PMID]"],
                 "xref": ["X:1"],
                 "synonym": ['"b" RELATED []', '"c" RELATED []'], "created_in": ['"beta1"'],
                 "subset": ["with blanks in it"]},
            ),
            "part_of": ("typedef", "part_of", {}),
            "I:1": ("instance", "one", {"property_value": ['size "3" xsd:integer']}),
            "overlaps": ("undefined", "overlaps", {}),
        }  # fmt: skip
        assert edges(export) == {("part_of", "is_a", "overlaps"), ("I:1", "instance_of", "A:1")}
        assert export.manifest["source"]["notes"] == {"clauses kept as they stand, since they aren't valid": 3}

    def test_bad_clauses_and_frames_can_be_left_out(self, tmp_path: Path) -> None:
        text = "[Term]\nid: A:1\n# no clause\nname: a\n[Term]\nname: b\n[Term]\nid: A:1\nis_a: A:2\n"
        (tmp_path / "a.obo").write_text(text, encoding="utf-8")
        export = export_obo([tmp_path / "a.obo"], tmp_path / "out", Options(on_bad_row="skip"))
        assert nodes(export) == {"A:1": ("term", "a", {})}
        assert edges(export) == set()
        assert export.manifest["source"]["skipped"] == {"a.obo": 3}

    def test_ontologies_may_have_typedefs_in_common(self, tmp_path: Path) -> None:
        for name in "ab":
            text = f"[Term]\nid: {name}:1\nrelationship: part_of {name}:2\n[Typedef]\nid: part_of\nname: part of\n"
            (tmp_path / f"{name}.obo").write_text(text, encoding="utf-8")
        export = export_obo([tmp_path / "a.obo", tmp_path / "b.obo"], tmp_path / "out")
        assert set(nodes(export)) == {"a:1", "a:2", "b:1", "b:2", "part_of"}
        assert export.schema["edges"] == 2

    def test_a_text_that_is_not_utf8(self, tmp_path: Path) -> None:
        (tmp_path / "a.obo").write_bytes("[Term]\nid: A:1\nname: café\n".encode("latin-1"))
        with pytest.raises(ExportError, match=r"a\.obo: line 3: not UTF-8 \(byte 0xe9\)"):
            export_obo([tmp_path / "a.obo"], tmp_path / "out")


class TestRdf:
    def test_nodes_without_a_label_are_numbered(self, tmp_path: Path) -> None:
        (tmp_path / "g.ttl").write_text("<http://ex.org/a> <http://ex.org/likes> [] .\n" * 300, encoding="utf-8")
        export = export_rdf([tmp_path / "g.ttl"], tmp_path / "out")
        assert {target for _, _, target in edges(export)} == {f"_:anonymous{number}" for number in range(300)}

    def test_types_labels_literals_and_edges(self, tmp_path: Path) -> None:
        (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")
        export = export_rdf([tmp_path / "g.ttl"], tmp_path / "out")
        assert check(export.path) == []
        found = nodes(export)
        assert found[f"{NAMES}a"] == (
            "Gene", "The A",
            {"label@de": "Das A", "label@en": "The A", "size": [5, 7], "ratio": 1.5, "exact": 0.1, "ok": True,
             "bad^^odd": "x", "types": ["Gene", "Thing"]},
        )  # fmt: skip
        assert found[f"{NAMES}b"] == (
            "resource",
            "B",
            {"label": "B", "when": "2020-01-02", "note": ["first", "second"], "size": 2**64},
        )
        assert edges(export) == {
            (f"{NAMES}a", f"{NAMES}likes", f"{NAMES}b"),
            (f"{NAMES}a", "http://other.org/x#likes", "_:anonymous0"),
            ("_:anonymous0", f"{NAMES}likes", f"{NAMES}a"),
            ("_:named", f"{NAMES}likes", f"{NAMES}b"),
        }
        names = export.manifest["source"]["names"]
        assert names["types"]["Gene"] == f"{NAMES}Gene"
        assert names["properties"]["size"] == f"{NAMES}size"

    def test_the_same_file_gives_the_same_export(self, tmp_path: Path) -> None:
        (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")
        one, two = (export_rdf([tmp_path / "g.ttl"], tmp_path / str(number)) for number in range(2))
        assert one.digest == two.digest

    def test_many_triples_in_any_order(self, tmp_path: Path) -> None:
        count = 25_000  # more than two shards
        lines = [f'<http://e/{n}> <http://e/name> "{n}" .\n' for n in range(count)]
        lines += [f"<http://e/{n}> <http://e/next> <http://e/{(n + 1) % count}> .\n" for n in range(count)]
        lines += [f'<http://e/{n}> <http://e/again> "{n}" .\n' for n in reversed(range(count))]
        (tmp_path / "g.nt.gz").write_bytes(gzip.compress("".join(lines).encode()))
        export = export_rdf([tmp_path / "g.nt.gz"], tmp_path / "out")
        assert (export.node_count, export.schema["edges"]) == (count, count)
        for number in (0, 9_999, 10_000, count - 1):
            assert export.node(number)["attributes"] == {
                "source_id": f"http://e/{number}", "name": str(number), "again": str(number),
            }  # fmt: skip
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    def test_bad_lines_stop_or_are_skipped(self, tmp_path: Path) -> None:
        text = "<http://e/a> <http://e/p> <http://e/b> .\nnonsense\n<http://e/b> <http://e/p> <http://e/a> .\n"
        (tmp_path / "g.nt").write_text(text, encoding="utf-8")
        with pytest.raises(ExportError, match=r"g\.nt: line 2: not valid RDF"):
            export_rdf([tmp_path / "g.nt"], tmp_path / "out")
        export = export_rdf([tmp_path / "g.nt"], tmp_path / "out", Options(on_bad_row="skip"))
        assert export.schema["edges"] == 1  # both directions: one symmetric edge
        assert export.manifest["source"]["skipped"] == {"g.nt": 1}

    @pytest.mark.parametrize("suffix", ["nt", "ttl"])
    @pytest.mark.parametrize(
        "bad",
        [
            '<{e}x> <{e}p> "open .', "<{e}x> <{e}p> <open .", '<{e}x> <{e}p> """open .', '<{e}x> <{e}p> "a\\q" .',
            "nonsense .", "<{e}x> .", '" .', "<{e}x> <{e}p> <{e}y> <{e}z> <{e}z> .",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("good", ["<{e}{n}> <{e}p> <{e}o> .", '<{e}{n}> <{e}p> "text" .'])
    @pytest.mark.parametrize("where", [(0,), (3, 60, 61), (99,)])
    def test_a_bad_line_costs_itself_only(
        self, tmp_path: Path, suffix: str, bad: str, good: str, where: tuple[int, ...]
    ) -> None:
        if '"""' in bad:
            where = where[:1]  # the second would close the first, as the grammar has it
        lines, wrong = [], []
        for n in range(100):
            if n in where:
                lines.append(bad.format(e="http://e/"))
                wrong.append(len(lines))
            lines.append(good.format(e="http://e/", n=n))
        path = tmp_path / f"g.{suffix}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with pytest.raises(ExportError, match=f"line {wrong[0]}: not valid RDF"):
            export_rdf([path], tmp_path / "out")
        export = export_rdf([path], tmp_path / "out", Options(on_bad_row="skip"))
        assert {f"http://e/{n}" for n in range(100)} <= set(nodes(export))
        assert [row["line"] for row in export.manifest["source"]["left_out"]] == wrong
        assert all(row["why"].startswith("not valid RDF (") for row in export.manifest["source"]["left_out"])

    def test_statements_of_several_lines_behind_a_bad_one(self, tmp_path: Path) -> None:
        text = """\
@base <http://e/> .
@prefix e: <http://e/> .
e:a e:p "open ;
    e:q e:r ;
    e:s e:t .
e:b e:p <c> ;
    e:q e:d .
e:d e:p e:a
e:e e:p e:b .
@prefix f: <http://f/> .
f:a e:p 'wrong \\q' .
f:a e:p <g> .
"""
        (tmp_path / "g.ttl").write_text(text, encoding="utf-8")
        export = export_rdf([tmp_path / "g.ttl"], tmp_path / "out", Options(on_bad_row="skip"))
        known = {number: node["attributes"]["source_id"] for number, node in enumerate(export.nodes())}
        found = {(known[a], known[b]) for number in range(2) for a, b, _ in export.edges(number)}
        assert found == {
            ("http://e/b", "http://e/c"), ("http://e/b", "http://e/d"), ("http://e/d", "http://e/a"),
            ("http://e/e", "http://e/b"), ("http://f/a", "http://e/g"),
        }  # fmt: skip
        assert [row["line"] for row in export.manifest["source"]["left_out"]] == [3, 9, 11]

    @pytest.mark.parametrize("suffix", ["nt", "ttl"])
    def test_a_text_that_is_not_closed_before_a_large_rest(self, tmp_path: Path, suffix: str) -> None:
        bad, good = '<http://e/x> <http://e/p> "open .\n', "<http://e/a> <http://e/p> <http://e/b> .\n"
        count = 450_000  # 18 MB, more than the reader looks ahead
        path = tmp_path / f"g.{suffix}"
        path.write_text(good + bad + good * count + bad + good, encoding="utf-8")
        with pytest.raises(ExportError, match="line 2: not valid RDF"):
            export_rdf([path], tmp_path / "out")
        export = export_rdf([path], tmp_path / "out", Options(on_bad_row="skip"))
        assert export.schema["edges"] == count + 2
        assert [row["line"] for row in export.manifest["source"]["left_out"]] == [2, count + 3]

    def test_several_files_and_their_blank_nodes(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / f"{name}.nt").write_text(f"_:x <http://e/p> <http://e/{name}> .\n", encoding="utf-8")
        export = export_rdf([tmp_path / "a.nt", tmp_path / "b.nt"], tmp_path / "out")
        assert set(nodes(export)) == {"_:0.x", "http://e/a", "_:1.x", "http://e/b"}

    def test_questions_name_resources(self, tmp_path: Path) -> None:
        (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")
        (tmp_path / "q.jsonl").write_text(
            '{"id": "q", "query": "?", "answer_ids": ["http://ex.org/b"]}\n', encoding="utf-8"
        )
        export = export_rdf([tmp_path / "g.ttl"], tmp_path / "out", Options(queries=tmp_path / "q.jsonl"))
        (question,) = export.queries()
        assert export.node(question["answer_ids"][0])["name"] == "B"

    @pytest.mark.parametrize(
        ("name", "line"),
        [
            ("g.nt", "<http://e/a> <http://e/p> <<( <http://e/a> <http://e/p> <http://e/b> )>> .\n"),
            ("g.ttl", ":a :p <<( :a :p :b )>> .\n"),
            ("g.ttl", "<< :a :p :b >> :p :c .\n"),
            ("g.ttl", ":a :p :b {| :p :c |} .\n"),
        ],
    )
    @pytest.mark.parametrize("before", [0, 1, 5_000])
    def test_a_triple_about_a_triple_is_told_by_its_line(
        self, tmp_path: Path, name: str, line: str, before: int
    ) -> None:
        prefix = "@prefix : <http://e/> .\n" if name == "g.ttl" else "# triples\n"
        plain = '<http://e/a> <http://e/p> "<< text" .\n'
        (tmp_path / name).write_text(prefix + plain * before + line + plain * 9, encoding="utf-8")
        where = rf"g\.\w+: line {before + 2}: a triple about a triple"
        with pytest.raises(ExportError, match=where):
            export_rdf([tmp_path / name], tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_what_json_has_no_number_for(self, tmp_path: Path) -> None:
        literals = {
            "NaN": "double", "INF": "float", "-INF": "double", "+INF": "double",
            "inf": "double", "nan": "float", "1e999": "double", " INF": "decimal", "Infinity": "decimal",
        }  # fmt: skip
        text = "".join(
            f'<http://e/a> <http://e/p{n}> "{value}"^^<http://www.w3.org/2001/XMLSchema#{kind}> .\n'
            for n, (value, kind) in enumerate(literals.items())
        )
        (tmp_path / "g.nt").write_text(text, encoding="utf-8")
        told = export_rdf([tmp_path / "g.nt"], tmp_path / "out").node(0)["attributes"]
        assert [told[f"p{n}"] for n in range(9)] == [None] * 4 + list(literals)[4:]  # the rest are no such literals

    def test_other_formats_are_told(self, tmp_path: Path) -> None:
        (tmp_path / "g.rdf").write_text("", encoding="utf-8")
        with pytest.raises(ExportError, match="cannot tell the format") as caught:
            export_rdf([tmp_path / "g.rdf"], tmp_path / "out")
        assert ".ttl" in caught.value.hint


@pytest.mark.parametrize(("module", "extra", "file"), [("fastobo", "obo", "x.obo"), ("pyoxigraph", "rdf", "x.nt")])
def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str, file: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it weren't installed
    (tmp_path / file).write_text("x", encoding="utf-8")
    make = {"obo": export_obo, "rdf": export_rdf}[extra]
    with pytest.raises(ExportError, match=f"need {module}, which isn't installed") as caught:
        make([tmp_path / file], tmp_path / "out")
    assert caught.value.hint == f"pip install 'kgshell[{extra}]'"
