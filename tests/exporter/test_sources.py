"""Graphs in other formats: what becomes of nodes, types, names, attributes and edges; bad rows; questions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from exporter import (
    Export,
    ExportError,
    Options,
    export_kgx,
    export_neo4j,
    export_networkx,
    export_primekg,
    export_tables,
)
from tests.support.exported import edges, nodes, sound, write


class TestParquetAndColumns:
    def test_typed_values(self, tmp_path: Path) -> None:
        frame = pl.DataFrame(
            {
                "id": [1, 2, 3],
                "type": ["a", "b", "a"],
                "name": ["One", None, "Three"],
                "score": [0.5, float("nan"), None],
                "tags": [["x", "y"], [], None],
                "at": [{"lat": 1.5}, {"lat": None}, None],
                "day": pl.Series(["2020-01-02", None, None]).str.to_date(),
                "flag": [True, False, None],
            }
        )
        frame.write_parquet(tmp_path / "nodes.parquet")
        links = pl.DataFrame({"source": [1, 2], "relation": ["r", "r"], "target": [2, 3], "weight": [0.25, None]})
        links.write_parquet(tmp_path / "edges.parquet")
        export = sound(
            export_tables(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", tmp_path / "out", candidates=["a"])
        )
        assert nodes(export)["1"] == (
            "a", "One",
            {"score": 0.5, "tags": ["x", "y"], "at": {"lat": 1.5}, "day": "2020-01-02", "flag": True},
        )  # fmt: skip
        assert nodes(export)["2"][1:] == (
            "", {"score": None, "tags": [], "at": {"lat": None}, "day": None, "flag": False}
        )  # fmt: skip
        assert export.node(0)["attributes"]["source_id"] == 1
        assert edges(export) == [("1", "r", "2", {"weight": "0.25"}), ("2", "r", "3", {"weight": None})]
        assert [entry["file"] for entry in export.manifest["source"]["inputs"]] == ["nodes.parquet", "edges.parquet"]

    def test_more_rows_than_are_read_at_a_time(self, tmp_path: Path) -> None:
        count = 250_000
        pl.DataFrame({"id": range(count), "type": ["t"] * count, "name": ["n"] * count}).write_parquet(
            tmp_path / "nodes.parquet"
        )
        pl.DataFrame({"source": range(count), "relation": ["r"] * count, "target": [0] * count}).write_parquet(
            tmp_path / "edges.parquet"
        )
        export = export_tables(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", tmp_path / "out")
        assert (export.node_count, export.schema["edges"]) == (count, count)
        assert [source for source, _, _ in export.edges(0)] == list(range(count))

    def test_a_bad_row_has_its_number(self, tmp_path: Path) -> None:
        pl.DataFrame({"id": ["a", "a"], "type": ["t", "t"], "name": ["n", "n"]}).write_parquet(tmp_path / "n.parquet")
        write(tmp_path / "e.tsv", "source\trelation\ttarget\n")
        with pytest.raises(ExportError, match=r"n\.parquet: line 2: duplicate id 'a'"):
            export_tables(tmp_path / "n.parquet", tmp_path / "e.tsv", tmp_path / "out")

    def test_a_file_that_is_no_parquet(self, tmp_path: Path) -> None:
        write(tmp_path / "n.parquet", "nothing of the kind")
        write(tmp_path / "e.tsv", "source\trelation\ttarget\n")
        with pytest.raises(ExportError, match=r"n\.parquet: not a readable Parquet file"):
            export_tables(tmp_path / "n.parquet", tmp_path / "e.tsv", tmp_path / "out")

    def test_a_file_that_is_gzipped_too(self, tmp_path: Path) -> None:
        write(tmp_path / "e.tsv", "source\trelation\ttarget\n")
        with pytest.raises(ExportError, match=r"n\.parquet\.gz: a Parquet file can't be gzipped too"):
            export_tables(tmp_path / "n.parquet.gz", tmp_path / "e.tsv", tmp_path / "out")
        with pytest.raises(ExportError, match=r"n\.txt: cannot tell the format from the name") as caught:
            export_tables(tmp_path / "n.txt", tmp_path / "e.tsv", tmp_path / "out")
        assert caught.value.hint.endswith("each also with .gz behind it or .parquet")

    def test_columns_called_otherwise(self, tmp_path: Path) -> None:
        write(tmp_path / "n.csv", "gene,kind,label,name\ng1,Gene,First,kept\n")
        write(tmp_path / "e.csv", "from,verb,to\ng1,likes,g1\n")
        columns = {"id": "gene", "type": "kind", "name": "label", "source": "from", "relation": "verb", "target": "to"}
        export = export_tables(tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "out", columns=columns)
        assert nodes(export) == {"g1": ("Gene", "First", {"name": "kept"})}
        assert edges(export) == [("g1", "likes", "g1", {})]
        with pytest.raises(ExportError, match="there is no column 'tyep' to map"):
            export_tables(tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "x", columns={"tyep": "kind"})


KG = """\
relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source
protein_protein,ppi,0,9796,gene/protein,PHYHIP,NCBI,1,7918,gene/protein,"GPANK1, x",NCBI
protein_protein,ppi,1,7918,gene/protein,"GPANK1, x",NCBI,0,9796,gene/protein,PHYHIP,NCBI
drug_protein,target,12,DB1,drug,Drug,DrugBank,0,9796,gene/protein,PHYHIP,NCBI
drug_protein,target,0,9796,gene/protein,PHYHIP,NCBI,12,DB1,drug,Drug,DrugBank
"""


class TestPrimeKG:
    def test_nodes_from_both_ends_in_the_order_of_their_index(self, tmp_path: Path) -> None:
        kg = write(tmp_path / "kg.csv", KG)
        drugs = write(tmp_path / "drug_features.csv", 'node_index,description,half_life\n12,"Two\nlines",\n')
        queries = write(tmp_path / "q.csv", 'id,query,answer_ids\nq1,Which drug?,"[12]"\n')
        export = sound(export_primekg(kg, [drugs], tmp_path / "out", Options(queries=queries, name="kg")))
        assert nodes(export) == {
            "0": ("gene/protein", "PHYHIP", {"id": "9796", "source": "NCBI"}),
            "1": ("gene/protein", "GPANK1, x", {"id": "7918", "source": "NCBI"}),
            "12": ("drug", "Drug", {"id": "DB1", "source": "DrugBank", "description": "Two\nlines"}),
        }
        assert edges(export) == [
            ("0", "ppi", "1", {"relation": "protein_protein"}),
            ("0", "target", "12", {"relation": "drug_protein"}),
        ]
        assert all(relation["symmetric"] for relation in export.schema["relations"])
        assert [q["answer_ids"] for q in export.queries()] == [[2]]
        assert export.name == "kg"

    def test_a_table_with_nodes_of_its_own(self, tmp_path: Path) -> None:
        kg = write(tmp_path / "kg.csv", KG)
        table = write(
            tmp_path / "nodes.tsv",
            "node_index\tnode_id\tnode_type\tnode_name\tnode_source\ttext\n5\tX\tdrug\tAlone\tS\tt\n",
        )
        export = export_primekg(kg, [table], tmp_path / "out")
        assert nodes(export)["5"] == ("drug", "Alone", {"id": "X", "source": "S", "text": "t"})

    def test_what_contradicts_itself(self, tmp_path: Path) -> None:
        kg = write(tmp_path / "kg.csv", KG + "x,ppi,0,9796,gene/protein,OTHER,NCBI,1,7918,gene/protein,GPANK1,NCBI\n")
        with pytest.raises(ExportError, match=r"kg\.csv: line 6: node 0 is described in two ways"):
            export_primekg(kg, [], tmp_path / "out")
        export = export_primekg(kg, [], tmp_path / "out", Options(on_bad_row="skip"))
        assert nodes(export)["0"][1] == "PHYHIP"
        assert export.manifest["source"]["skipped"] == {"kg.csv": 1}
        assert export.schema["edges"] == 2  # none of the row that was left out

    def test_the_first_of_two_descriptions_is_that_of_the_first_line(self, tmp_path: Path) -> None:
        header = KG.splitlines()[0]
        rows = ("r,d,0,1,drug,AA,S,1,2,drug,AA,T", "r,d,1,2,drug,BB,T,0,1,drug,AA,S", "r,d,0,1,drug,AA,S,1,2,kind,BB,T")
        kg = write(tmp_path / "kg.csv", "\n".join((header, *rows, "")))
        with pytest.raises(ExportError) as caught:
            export_primekg(kg, [], tmp_path / "out")
        assert str(caught.value).endswith(
            "kg.csv: line 3: node 1 is described in two ways: its name is 'BB' here and 'AA' before"
        )
        export = export_primekg(kg, [], tmp_path / "out", Options(on_bad_row="skip"))
        assert export.manifest["source"]["skipped"] == {"kg.csv": 2}
        assert nodes(export)["1"] == ("drug", "AA", {"id": "2", "source": "T"})

    def test_a_table_of_another_graph(self, tmp_path: Path) -> None:
        kg = write(tmp_path / "kg.csv", KG)
        table = write(tmp_path / "t.csv", "node_index,text\n99,x\n")
        with pytest.raises(ExportError, match=r"t\.csv: line 2: unknown node '99'"):
            export_primekg(kg, [table], tmp_path / "out")
        with pytest.raises(ExportError, match="no column 'node_index'"):
            export_primekg(kg, [write(tmp_path / "u.csv", "index\n1\n")], tmp_path / "out")
        with pytest.raises(ExportError, match="no column 'x_source'"):
            export_primekg(write(tmp_path / "kg2.csv", KG.replace("x_source", "x_src")), [], tmp_path / "out")


class TestKgx:
    NODES = (
        "id\tcategory\tname\txref\tdescription\n"
        "HGNC:11603\tbiolink:Gene|biolink:NamedThing\tTBX4\ta|b\t\nX:1\t\t\t\td\n"
    )
    EDGES = "id\tsubject\tpredicate\tobject\tknowledge_source\ne1\tHGNC:11603\tbiolink:related_to\tX:1\tk|l\n"

    def test_tsv(self, tmp_path: Path) -> None:
        export = sound(
            export_kgx(write(tmp_path / "n.tsv", self.NODES), write(tmp_path / "e.tsv", self.EDGES), tmp_path / "out")
        )
        assert nodes(export) == {
            "HGNC:11603": (
                "biolink:Gene", "TBX4", {"category": ["biolink:Gene", "biolink:NamedThing"], "xref": ["a", "b"]},
            ),
            "X:1": ("biolink:NamedThing", "", {"description": "d"}),
        }  # fmt: skip
        assert edges(export) == [
            ("HGNC:11603", "biolink:related_to", "X:1", {"id": "e1", "knowledge_source": "k|l"})
        ]  # fmt: skip

    def test_slots_of_tsv_edges(self, tmp_path: Path) -> None:
        made = write(tmp_path / "n.tsv", "id\tcategory\tname\nA\t\ta\n")
        rows = [
            "subject\tpredicate\tobject\tpublications\tqualifiers\tnote",
            "A\tp\tA\tPMID:1|PMID:2\t\tx|y",
            "A\tp\tA\tPMID:3\tq\t",
        ]
        export = sound(export_kgx(made, write(tmp_path / "e.tsv", "\n".join((*rows, ""))), tmp_path / "out"))
        assert edges(export) == [
            ("A", "p", "A", {"publications": '["PMID:1","PMID:2"]', "qualifiers": None, "note": "x|y"}),
            ("A", "p", "A", {"publications": '["PMID:3"]', "qualifiers": '["q"]', "note": None}),
        ]

    def test_jsonl_whose_edges_differ_in_their_slots(self, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = [
            {"id": "A", "category": ["biolink:Drug"], "name": "a", "synonym": ["x"]},
            {"id": "B", "name": None},
        ]
        links: list[dict[str, Any]] = [
            {"subject": "A", "predicate": "p", "object": "B", "publications": ["PMID:1"], "score": 2},
            {"subject": "B", "predicate": "p", "object": "A", "negated": True, "publications": None},
            {"subject": "B", "predicate": "q", "object": "A"},
        ]
        made = write(tmp_path / "n.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in links).encode()))
        export = sound(export_kgx(made, tmp_path / "e.jsonl.gz", tmp_path / "out"))
        assert nodes(export)["A"] == ("biolink:Drug", "a", {"category": ["biolink:Drug"], "synonym": ["x"]})
        assert edges(export) == [
            ("A", "p", "B", {"publications": '["PMID:1"]', "score": "2", "negated": None}),
            ("B", "p", "A", {"publications": None, "score": None, "negated": "true"}),
            ("B", "q", "A", {}),
        ]
        assert [item["attributes"] for item in export.schema["relations"]] == [["publications", "score", "negated"], []]

    def test_bad_rows(self, tmp_path: Path) -> None:
        made = write(tmp_path / "n.jsonl", '{"id": "A"}\n{"id": 1}\n')
        links = write(
            tmp_path / "e.jsonl", '{"subject": "A", "predicate": "p", "object": "Z"}\n{"subject": "A"}\nnot json\n'
        )
        with pytest.raises(ExportError, match=r"n\.jsonl: line 2: 'id' is not a text"):
            export_kgx(made, links, tmp_path / "out")
        with pytest.raises(ExportError, match=r"e\.jsonl: line 2: 'subject', 'predicate' and 'object' must be texts"):
            export_kgx(write(tmp_path / "m.jsonl", '{"id": "A"}\n'), links, tmp_path / "out")
        lost = write(tmp_path / "l.jsonl", '{"subject": "A", "predicate": "p", "object": "Z"}\n')
        with pytest.raises(ExportError, match=r"l\.jsonl: line 1: unknown target node 'Z'"):
            export_kgx(tmp_path / "m.jsonl", lost, tmp_path / "out")
        export = export_kgx(made, links, tmp_path / "out", Options(on_bad_row="skip"))
        assert export.manifest["source"]["skipped"] == {"n.jsonl": 1, "e.jsonl": 3}
        with pytest.raises(ExportError, match="no column 'subject'"):
            export_kgx(made, write(tmp_path / "f.tsv", "a\tb\n"), tmp_path / "x", Options(on_bad_row="skip"))


class TestNeo4j:
    PEOPLE = (
        'personId:ID(Person),name,born:int,tags:string[],ok:boolean,secret:IGNORE,:LABEL\n'
        'p1,"Keanu, R",1964,a;b,true,x,Actor;Person\np2,,,,,,\n'
    )  # fmt: skip

    def test_typed_columns_labels_and_id_spaces(self, tmp_path: Path) -> None:
        people = write(tmp_path / "people.csv", self.PEOPLE)
        header = write(tmp_path / "films-header.csv", ":ID(Film),title,score:double\n")
        first = write(tmp_path / "films.csv", "p1,The Matrix,8.7\n")
        second = write(tmp_path / "films2.csv", '2,"Say ""hi""",\n')
        roles = write(tmp_path / "roles.csv", ":START_ID(Person),role,:END_ID(Film)\np1,Neo,p1\np2,,2\n")
        knows = write(tmp_path / "knows.csv", ":START_ID(Person),:END_ID(Person),:TYPE,since:int\np1,p2,KNOWS,1999\n")
        inputs = [str(people), f"Film={header},{first},{second}", f"ACTED_IN={roles}", str(knows)]
        export = sound(export_neo4j(inputs, tmp_path / "out"))
        assert nodes(export) == {
            "Person:p1": (
                "Actor", "Keanu, R",
                {"personId": "p1", "name": "Keanu, R", "born": 1964, "tags": ["a", "b"], "ok": True,
                 "labels": ["Actor", "Person"]},
            ),
            "Person:p2": ("node", "Person:p2", {"personId": "p2"}),
            "Film:p1": ("Film", "The Matrix", {"title": "The Matrix", "score": 8.7}),
            "Film:2": ("Film", 'Say "hi"', {"title": 'Say "hi"'}),
        }  # fmt: skip
        assert edges(export) == [
            ("Person:p1", "ACTED_IN", "Film:p1", {"role": "Neo"}),
            ("Person:p1", "KNOWS", "Person:p2", {"since": "1999"}),
            ("Person:p2", "ACTED_IN", "Film:2", {"role": None}),
        ]

    def test_other_delimiters(self, tmp_path: Path) -> None:
        made = write(tmp_path / "n.csv", "id:ID\ttags:int[]\na\t1|2\n")
        links = write(tmp_path / "r.csv", ":START_ID\t:END_ID\t:TYPE\na\ta\tR\n")
        export = export_neo4j([str(made), str(links)], tmp_path / "out", delimiter="\t", array_delimiter="|")
        assert nodes(export)["a"][2] == {"id": "a", "tags": [1, 2]}
        with pytest.raises(ExportError, match="'ab' can't separate columns"):
            export_neo4j([str(made)], tmp_path / "x", delimiter="ab")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (":ID,age:int\na,x\n", r"f\.csv: line 2: column 'age': 'x' is not of type int"),
            (":ID\na\na\n", r"f\.csv: line 3: duplicate id 'a'"),
            (':ID,n\n"",n\n', r"f\.csv: line 2: the id is empty"),
            ("name\nx\n", r"f\.csv: line 1: no column :ID, nor :START_ID"),
            (":START_ID,:TYPE\na,R\n", r"f\.csv: line 1: no column :END_ID"),
            (":START_ID,:END_ID\na,a\n", r"f\.csv: line 1: no column :TYPE, and no TYPE= before the file"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(ExportError, match=message):
            export_neo4j([str(write(tmp_path / "f.csv", text))], tmp_path / "out")

    def test_unknown_ends_are_skipped_and_counted(self, tmp_path: Path) -> None:
        made = write(tmp_path / "n.csv", ":ID\na\n")
        links = write(tmp_path / "r.csv", ":START_ID,:END_ID,:TYPE\na,b,R\na,a,R\na,a,\n")
        with pytest.raises(ExportError, match=r"r\.csv: line 2: unknown target node 'b'"):
            export_neo4j([str(made), str(links)], tmp_path / "out")
        export = export_neo4j([str(made), str(links)], tmp_path / "out", Options(on_bad_row="skip"))
        assert edges(export) == [("a", "R", "a", {})]
        assert export.manifest["source"]["skipped"] == {"r.csv": 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda folder, out: export_kgx(folder / "none.tsv", folder / "none.tsv", out),
        lambda folder, out: export_neo4j([str(folder / "none.csv")], out),
        lambda folder, out: export_networkx(folder / "none.graphml", out),
        lambda folder, out: export_networkx(folder / "none.json", out),
        lambda folder, out: export_primekg(folder / "none.csv", [], out),
        lambda folder, out: export_tables(folder / "none.parquet", folder / "none.parquet", out),
    ],
)
def test_files_that_are_not_there(tmp_path: Path, make: Callable[[Path, Path], Export]) -> None:
    with pytest.raises(ExportError, match=r"none\.\w+"):
        make(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
