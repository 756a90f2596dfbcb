"""`harness export`: a subcommand for each source, and what it says."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import polars
import pytest

from exporter import Export
from harness.text import count_of
from tests.support.cli import mistake, run_cli
from tests.support.runs import EDGES, NODES, jsonl

FILES = {
    "n.csv": "gene,kind,label\ng1,Gene,First\ng2,Gene,Second\n",
    "e.csv": "from,verb,to\ng1,likes,g2\ng1,likes,g9\n",
    "n.tsv": "id\tcategory\tname\nA\tc\ta\n",
    "e.tsv": "subject\tpredicate\tobject\nA\tp\tA\n",
    "people.csv": ":ID|name|:LABEL\np|P|X\n",
    "g.json": json.dumps({"directed": True, "nodes": [{"id": "a", "cls": "T"}], "links": []}),
    "kg.csv": (
        "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source\n"
        "r,d,0,i,t,n,s,1,j,t,m,s\n"
    ),
    "o.obo": "[Term]\nid: A:1\nname: a\n",
    "r.nt": "<http://e/a> <http://e/p> <http://e/b> .\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "nodes", "edges"),
    [
        ("kgx n.tsv e.tsv", 1, 1),
        ("neo4j people.csv --delimiter |", 1, 0),
        ("networkx g.json --names type=cls", 1, 0),
        ("primekg kg.csv", 2, 1),
        ("obo o.obo", 1, 0),
        ("rdf r.nt", 2, 1),
    ],
)
def test_each_source(folder: Path, words: str, nodes: int, edges: int) -> None:
    if words.startswith(("obo", "rdf")):
        pytest.importorskip({"obo": "fastobo", "rdf": "pyoxigraph"}[words[:3]])
    done = run_cli("export", *words.split(), "--out", "out", "--name", "mine")
    assert done.code == 0, done
    assert done.stdout == f"out: {count_of(nodes, 'node')}, {count_of(edges, 'edge')}\n"
    export = Export.open(folder / "out")
    assert export.name == "mine"
    assert export.manifest["source"]["kind"] == words.split(maxsplit=1)[0]


def test_columns_and_bad_rows(folder: Path) -> None:
    columns = "id=gene,type=kind,name=label,source=from,relation=verb,target=to"
    words = ["export", "tables", "n.csv", "e.csv", "--out", "out", "--columns", columns]
    mistake(run_cli(*words), "e.csv: line 3: unknown target node 'g9'", "--skip-bad-rows")
    done = run_cli(*words, "--skip-bad-rows")
    assert done.code == 0, done
    assert done.stderr.splitlines()[-2:] == ["left out 1 row: e.csv", "e.csv: line 3: unknown target node 'g9'"]
    assert done.stdout == "out: 2 nodes, 1 edge\n"
    assert not Export.open(folder / "out").schema["relations"][0]["symmetric"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tables n.csv e.csv --columns id", "'id' is not NAME=NAME"),
        ("tables n.csv e.csv --columns id=a,id=b", "'id=b' is not NAME=NAME, or a second one"),
        ("tables n.csv e.csv --columns key=a", "there is no column 'key' to map"),
        ("networkx none.graphml", "cannot read none.graphml"),
        ("neo4j n.csv", "n.csv: line 1: no column :ID, nor :START_ID"),
        ("kxg n.tsv e.tsv", "unknown command 'kxg'"),
    ],
)
def test_mistakes(folder: Path, words: str, message: str) -> None:
    mistake(run_cli("export", *words.split(), "--out", "out"), message)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        *product(["csv", "tsv", "parquet", "jsonl"], ["id", "type", "name"]),
        *product(["csv", "tsv", "parquet"], ["source", "relation", "target"]),
    ],
)
def test_a_missing_column_is_told_with_the_flag_that_names_it(folder: Path, kind: str, column: str) -> None:
    ends = column in ("source", "relation", "target")
    nodes, edges = {"id": "a", "type": "t", "name": "n"}, {"source": "a", "relation": "r", "target": "a"}
    row = edges if ends else nodes
    row["gene"] = row.pop(column)
    paths = []
    for name, cells in (("nodes", nodes), ("edges", edges)):
        suffix = "csv" if kind == "jsonl" and name == "edges" else kind
        paths.append(f"{name}.{suffix}")
        if suffix == "parquet":
            polars.DataFrame([cells]).write_parquet(paths[-1])
        elif suffix == "jsonl":
            Path(paths[-1]).write_text(json.dumps(cells) + "\n", encoding="utf-8")
        else:
            rows = (("\t" if suffix == "tsv" else ",").join(cells) for cells in (cells.keys(), cells.values()))
            Path(paths[-1]).write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = ["export", "tables", *paths, "--out", "out"]
    done = run_cli(*words)
    mistake(done, f"line 1: no column '{column}'" if kind != "jsonl" else f"line 1: no '{column}'")
    assert f"--columns {column}=" in done.stderr
    assert "gene" in done.stderr
    mistake(run_cli(*words, "--columns", f"{column}=jene"), "no column 'jene'" if kind != "jsonl" else "no 'jene'")
    assert run_cli(*words, "--columns", f"{column}=gene").code == 0


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    edges = tmp_path / "edges.tsv"
    edges.write_text(EDGES, encoding="utf-8")
    return str(jsonl(tmp_path / "nodes.jsonl", NODES)), str(edges)


def test_tables(tables: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "graph"
    result = run_cli("export", "tables", *tables, "--out", str(out), "--candidates", "paper")
    assert (result.code, result.stdout) == (0, f"{out}: 60 nodes, 30 edges\n")
    assert Export.open(out).is_candidate(0)
    assert not Export.open(out).is_candidate(1)


def test_mistakes_with_tables(tables: tuple[str, str], tmp_path: Path) -> None:
    out = str(tmp_path / "graph")
    mistake(run_cli("export", "tables", "none.csv", tables[1], "--out", out), "none.csv")
    mistake(run_cli("export", "tables", *tables), "harness export tables needs --out")
    mistake(run_cli("export", "tables", *tables, "--out", out, "--candidates", "papre"), "papre")
    mistake(run_cli("export"), "harness export needs a command", "commands: ")
    mistake(run_cli("export", "tabels"), "unknown command 'tabels'", "did you mean 'tables'?")
    assert not (tmp_path / "graph").exists()
    run_cli("export", "tables", *tables, "--out", out)
    mistake(run_cli("export", "tables", *tables, "--out", out), "graph")


def test_bad_rows(tables: tuple[str, str], tmp_path: Path) -> None:
    edges = Path(tables[1])
    edges.write_text(edges.read_text("utf-8") + "X:0\twrites\tnobody\n", encoding="utf-8")
    out = str(tmp_path / "graph")
    mistake(run_cli("export", "tables", *tables, "--out", out), "nobody")
    result = run_cli("export", "tables", *tables, "--out", out, "--skip-bad-rows")
    assert result.code == 0
    assert "left out 1 row:" in result.stderr
