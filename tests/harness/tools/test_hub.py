"""The keyword filter around a node with thousands of neighbours, against the same written out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from exporter import export_tables
from exporter.index import Index
from harness.tools.graph import Graph
from harness.tools.neighborhood import keywords, look_around
from tests.support.graphs import write_tables

NEIGHBORS = 5_500  # more than are read one by one
WORDS = [
    *(
        "kinase",
        "Kinases",
        "Tyrosine-kinase",
        "p53/MDM2",
        "Alzheimer's",
        "naïve",
        "NAÏVE",
        "β-catenin",
        "日本語",
        "3'UTR",
    ),
    *(
        "İstanbul",
        "ΟΔΟΣ",
        "Straße",
        "x.y",
        "snake_case",
        "c++",
        "mitochondrial",
        "ab1c",
        "[brackets]",
        "a|b",
        "\ud83e\uddec",
    ),
    *(f"w{number}" for number in range(60)),
]
QUERIES = [
    *("kinase", "kin", "TYROSINE kin w1", "alzheimer's", "p53/mdm2 kinase", "naïve", "β-catenin", "日本", "3'utr w5"),
    *("istanbul", "οδος", "straße", "x.y", "snake_case", "c++", "mito ab1c w2 w3", "[brackets] a|b", ".*", "w1 .* w2"),
    *("w1 w2 w3 w4 w5 w6", "nothing", "name4", "name 4", "the", "y" * 3_000, "\ud83e\uddec w7", "W59"),
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Node 0 is joined to all others but the last ten, which hold every word."""
    chance = random.Random(11)
    nodes = [{"id": 0, "type": "t", "name": "hub", "text": " ".join(WORDS)}]
    nodes += [
        {"id": n, "type": "t", "name": f"name {n}", "text": " ".join(chance.choices(WORDS, k=6))}
        for n in range(1, NEIGHBORS + 1)
    ]
    nodes += [{"id": NEIGHBORS + n, "type": "t", "name": "x", "text": " ".join(WORDS)} for n in range(1, 11)]
    edges = [("0", "r", str(n)) for n in range(1, NEIGHBORS + 1)]
    folder: Path = tmp_path_factory.mktemp("hub")
    export = export_tables(*write_tables(folder, nodes, edges), folder / "graph")
    return Graph(export, Index.open(export))


@pytest.mark.parametrize("query", QUERIES)
def test_as_if_each_text_were_read(hub: Graph, query: str) -> None:
    documents = dict(enumerate(hub.index.documents(range(NEIGHBORS + 1))))
    named = [n for n in range(1, NEIGHBORS + 1) if query.lower() in hub.index.labels.name(n).lower()]
    others = set(range(1, NEIGHBORS + 1)) - set(named)
    counts = {n: sum(word in documents[n].lower() for word in keywords(query)) for n in others}
    expected = [*named, *sorted((n for n in counts if counts[n]), key=lambda n: (-counts[n], n))]
    for k in (1, 20, 10_000):
        found = look_around(hub, 0, relation=None, node_type=None, query=query, k=k, ranking="substring")
        assert (found.total, found.nodes) == (len(expected), expected[:k])
