"""The text of nodes that searches rank on, line for line."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export, document_maker, export_stark, export_tables
from exporter.stark import DATASETS, find
from tests.support.graphs import write_tables
from tests.support.stark_files import write_tree

PHYHIP = """\
- name: PHYHIP
- type: gene/protein
- source: NCBI
- details:
  - query: PHYHIP
  - alias (other gene names): ['DYRK1AP3', None]
  - name (gene name): long name
  - type_of_gene (gene types): protein-coding
  - interpro (protein family and classification information): ['Domain']
  - genomic_pos (genomic position): {'chr': '8', 'start': 5}
  - map_location: {'at': '8p21'}
  - generif (PubMed text): one\ttwo; three
"""
DRUG = """\
- name: A-1
drug
- type: drug
- source: DrugBank
- details:
  - description: Heals.
  - weight: 2.0
"""
PAIN = "- name: pain\n- type: disease\n- source: MONDO\n"
ACHE = "- name: ache\n- type: disease\n- source: MONDO\n"
AUTHOR = "- author name: Ada-1 Lo\n- author paper count: 3\n"
INSTITUTION = " - institution: Unknown\n- institution paper count: 1\n- institution citation count: 0\n"
FIELD = " - field of study: Graphs\n"
SHELLS = " - paper title: On shells\n - venue: Shells\n"
GRAPHS = """\
 - paper title: On graphs-1
 - abstract: First,
second.
 - publication date: 2019-02-11
 - conference: KG
"""
# Best votes first (review 6 with 1,024, then 7 with 7), then as they stand; 25 of 30.
BALL = """\
- product: Ball \u2013 pack\tof 2
- brand: Acme
- dimensions: 3 x 4 inches
- weight: 2 pounds
- description: A ball.  Round.
- features: \n#1: light
#4: round
- reviews: \n""" + "".join(
    f'#{n}:\nsummary: summary {n - 1}\ntext: "{"nan" if n == 3 else f"text {n - 1}"}"\n'
    for n in (6, 7, 1, 2, 3, 4, 5, *range(8, 26))
)
BALL += '- Q&A: \n#1:\nquestion: "Does it fit?"\nanswer: "Yes."\n'
HALF = "- product: Half \ufffd of a pair\n"


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    folder = tmp_path_factory.mktemp("stark")
    tree = write_tree(folder / "data")
    made = {}
    for name, dataset in DATASETS.items():
        place = find(dataset, tree)
        assert place is not None
        made[name] = export_stark(name, place, folder / name)
    return made


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("prime", [PHYHIP, DRUG, PAIN, ACHE]),
        ("mag", [AUTHOR, INSTITUTION, FIELD, SHELLS, GRAPHS]),
        ("amazon", [BALL, HALF, "brand name: Acme", "category name: balls", "color name: red"]),
    ],
)
def test_documents_of_starks_graphs(exports: dict[str, Export], name: str, documents: list[str]) -> None:
    make = document_maker(exports[name].manifest["source"])
    assert [make(record) for record in exports[name].nodes()] == documents


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (
            {"interpro": [{"desc": "A"}, {"id": 1}, {"desc": "B"}]},
            "interpro (protein family and classification information): ['A', 'B']",
        ),
        ({"genomic_pos": {"chr": "1"}}, "genomic_pos (genomic position): {'chr': '1'}"),
        ({"generif": [{"text": "w " * 60_000}]}, "generif (PubMed text): " + "w " * 49_999 + "w"),
        ({"generif": {"text": "one"}}, "generif (PubMed text): one"),
        ({"_hidden": 1, "gene_id": 2, "kept": 0}, "kept: 0"),
        ({"empty": {"x": None}}, "empty: {}"),
    ],
)  # fmt: skip
def test_details_of_genes(value: dict[str, object], lines: str) -> None:
    info = {"type": "gene/protein", "name": "G", "source": "NCBI", "details": value}
    text = DATASETS["prime"].document({"node_type": "gene/protein", "attributes": info})
    assert text.split("- details:\n")[1] == f"  - {lines}\n"


def test_the_same_keys_of_another_type_are_not_explained() -> None:
    info = {"type": "drug", "name": "D", "source": "x", "details": {"summary": "s", "alias": None}}
    assert (
        DATASETS["prime"].document({"node_type": "drug", "attributes": info}).endswith("- details:\n  - summary: s\n")
    )


def test_other_graphs_have_all_their_texts(tmp_path: Path) -> None:
    nodes = [
        {"id": "a", "type": "t", "name": "A", "tags": ["x", {"y": [1, None]}], "none": None, "year": 1999, "no": ""},
        {"id": 1, "type": "t", "name": ""},
    ]
    export = export_tables(*write_tables(tmp_path, nodes, [("a", "r", "a")]), tmp_path / "out")
    make = document_maker(export.manifest["source"])
    assert [make(record) for record in export.nodes()] == ["A\na\ntags: x y 1\nyear: 1999\n", ""]
