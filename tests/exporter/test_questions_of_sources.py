"""Questions in each source's own terms: what answers should be is told, and bad questions can be left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter import (
    Export,
    ExportError,
    Options,
    export_kgx,
    export_neo4j,
    export_networkx,
    export_obo,
    export_primekg,
    export_rdf,
    export_stark,
    export_tables,
)
from exporter.stark import DATASETS, find
from tests.support.stark_files import write_tree

HEADER = "relation,display_relation," + ",".join(
    f"{side}_{name}" for side in "xy" for name in ("index", "id", "type", "name", "source")
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def tables(folder: Path, options: Options) -> Export:
    nodes = write(folder / "n.csv", "id,type,name\na,t,A\n")
    edges = write(folder / "e.csv", "source,relation,target\n")
    return export_tables(nodes, edges, folder / "out", queries=options.queries, on_bad_row=options.on_bad_row)


def kgx(folder: Path, options: Options) -> Export:
    nodes, edges = write(folder / "n.tsv", "id\na\n"), write(folder / "e.tsv", "subject\tpredicate\tobject\n")
    return export_kgx(nodes, edges, folder / "out", options)


def neo4j(folder: Path, options: Options) -> Export:
    return export_neo4j([str(write(folder / "n.csv", ":ID(P)\na\n"))], folder / "out", options)


def networkx(folder: Path, options: Options) -> Export:
    graph = {"directed": True, "nodes": [{"id": "a"}], "links": [{"source": "a", "target": "a"}]}
    return export_networkx(write(folder / "g.json", json.dumps(graph)), folder / "out", options)


def primekg(folder: Path, options: Options) -> Export:
    row = "k,r,0,a,t,A,S,0,a,t,A,S"
    return export_primekg(write(folder / "kg.csv", f"{HEADER}\n{row}\n"), [], folder / "out", options)


def obo(folder: Path, options: Options) -> Export:
    pytest.importorskip("fastobo", reason="the extra obo is not installed")
    return export_obo([write(folder / "o.obo", "format-version: 1.2\n\n[Term]\nid: X:1\n")], folder / "out", options)


def rdf(folder: Path, options: Options) -> Export:
    pytest.importorskip("pyoxigraph", reason="the extra rdf is not installed")
    return export_rdf([write(folder / "g.nt", "<http://e/a> <http://e/p> _:b .\n")], folder / "out", options)


SOURCES: dict[Callable[[Path, Options], Export], tuple[str, str]] = {  # an id that is known, and what ids are
    tables: ("a", "ids of the node table"),
    kgx: ("a", "ids of nodes"),
    neo4j: ("P:a", "ids as in the column :ID, with SPACE: before each of an id space"),
    networkx: ("a", "ids of nodes"),
    primekg: ("0", "indexes of nodes, as in x_index"),
    obo: ("X:1", "ids of terms"),
    rdf: ("_:b", "IRIs, or _: and the label of a blank node"),
}


def question(identity: str, answer: str) -> str:
    return json.dumps({"id": identity, "query": "Which?", "answer_ids": [answer]}) + "\n"


@pytest.mark.parametrize("make", SOURCES)
def test_each_source(tmp_path: Path, make: Callable[[Path, Options], Export]) -> None:
    known, ids = SOURCES[make]
    lines = [
        question("1", known),
        question("2", "unknown"),
        "nonsense\n",
        '{"id": "3"}\n',
        question("1", known),
        question("4", known),
    ]
    queries = write(tmp_path / "q.jsonl", "".join(lines))
    with pytest.raises(ExportError) as caught:
        make(tmp_path, Options(queries=queries))
    assert str(caught.value) == f"{queries}: line 2: answer 'unknown' of question '2' is not in the graph"
    assert caught.value.hint == f"answer_ids are {ids}, or leave out bad rows with --skip-bad-rows"
    export = make(tmp_path, Options(queries=queries, on_bad_row="skip"))
    assert [asked["id"] for asked in export.queries()] == ["1", "4"]
    assert len({node for asked in export.queries() for node in asked["answer_ids"]}) == 1
    source = export.manifest["source"]
    assert source["skipped"] == {"q.jsonl": 4}
    assert [row["line"] for row in source["left_out"]] == [2, 3, 4, 5]


def test_no_good_question_at_all(tmp_path: Path) -> None:
    queries = write(tmp_path / "q.jsonl", question("1", "unknown"))
    export = tables(tmp_path, Options(queries=queries, on_bad_row="skip"))
    assert (list(export.queries()), export.manifest["source"]["skipped"]) == ([], {"q.jsonl": 1})


def test_stark_has_no_flag_for_it(tmp_path: Path) -> None:
    place = find(DATASETS["mag"], write_tree(tmp_path / "data"))
    assert place is not None
    for line, hint in ((question("1", "9"), "answer_ids are STaRK's node ids"), ("nonsense\n", "correct the row")):
        queries = write(tmp_path / "q.jsonl", line)
        with pytest.raises(ExportError) as caught:
            export_stark("mag", place, tmp_path / "out", queries=queries)
        assert caught.value.hint == f"{hint}, or remove it from the file"
