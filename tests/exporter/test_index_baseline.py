"""The BM25 baseline against the formula written out, and against the package that STaRK uses."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from exporter import Export, ExportError, check, export_tables
from exporter.index import Baseline, Index, open_baseline
from exporter.index.baseline import BaselineWriter, words
from tests.support.graphs import small_export, write_tables

QUERIES = ["gene0", "the cell3 and GENE2 of cell3", "gene0, gene_1: ß9!", "nothing"]


def build(folder: Path, texts: Sequence[str], postings: int = 1_000_000) -> Baseline:
    """Documents of nodes 0, 10, 20, …"""
    folder.mkdir()
    writer = BaselineWriter(folder, postings)
    for number, text in enumerate(texts):
        writer.add(number * 10, text)
    writer.finish()
    return Baseline(folder)


def corpus(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    vocabulary = [f"{stem}{number}" for number in range(30) for stem in ("gene", "Cell", "gene_", "ß")] + ["The", "a"]
    return [" ".join(chance.choices(vocabulary, k=chance.randrange(60))) for _ in range(count)]


def bm25(texts: Sequence[str], query: str) -> list[float]:
    """Robertson and Zaragoza 2009, with Lucene's idf and without the factor k1 + 1."""
    documents = [Counter(words(text)) for text in texts]
    mean = sum(document.total() for document in documents) / len(documents)
    scores = [0.0] * len(texts)
    for word in words(query):
        found = sum(word in document for document in documents)
        idf = math.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
        for number, document in enumerate(documents):
            length = 1.5 * (1 - 0.75 + 0.75 * document.total() / mean)
            scores[number] += idf * document[word] / (document[word] + length)
    return scores


def test_words() -> None:
    assert words("The Cell's x  α-Synuclein_2, É\n'is' I it's 42") == ["cell", "synuclein_2", "42"]
    assert words("äöü no NOT a") == ["äöü"]


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_formula(tmp_path: Path, query: str) -> None:
    texts = corpus(1, 150)
    expected = bm25(texts, query)
    ranking = sorted((n for n in range(150) if expected[n] > 0), key=lambda n: (-round(expected[n], 5), n))
    hits = build(tmp_path / "index", texts).rank(query, 150)
    assert hits.total == len(ranking)
    assert {hit.node for hit in hits.best} == {node * 10 for node in ranking}
    assert [hit.score for hit in hits.best] == pytest.approx([expected[node] for node in ranking], rel=1e-5)


def test_scores_are_those_of_bm25s(tmp_path: Path) -> None:
    bm25s = pytest.importorskip("bm25s")
    texts = corpus(2, 300)
    theirs = bm25s.BM25()
    theirs.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    ours = build(tmp_path / "index", texts)
    for query in QUERIES[:3]:
        nodes, scores = theirs.retrieve(bm25s.tokenize(query, show_progress=False), k=100, show_progress=False)
        hits = ours.rank(query, 100)
        found = int((scores[0] > 0).sum())
        assert [hit.score for hit in hits.best] == pytest.approx(scores[0][:found].tolist(), rel=1e-5)
        above_the_last = {node * 10 for node, score in zip(nodes[0], scores[0], strict=True) if score > scores[0][-1]}
        assert above_the_last <= {hit.node for hit in hits.best}


def test_runs_make_the_same_files_as_one(tmp_path: Path) -> None:
    texts = corpus(3, 60)
    for postings in (1, 100, 1_000_000):
        build(tmp_path / str(postings), texts, postings)
    folders = [tmp_path / str(postings) for postings in (1, 100, 1_000_000)]
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1] == files[2]
    assert not [name for name in files[0] if name.startswith("run")]


def test_equal_scores_come_in_the_order_of_ids(tmp_path: Path) -> None:
    index = build(tmp_path / "index", ["cat", "cat dog dog", "cat", "dog", "cat", "cat"])
    for k in range(6):
        assert [hit.node for hit in index.rank("cat", k).best] == [0, 20, 40, 50, 10][:k]
    assert index.rank("cat", -1).best == []
    assert index.rank("cat", 10**9).total == 5


@pytest.mark.parametrize("texts", [["", ""], ["the a", "x"], []])
def test_documents_without_words(tmp_path: Path, texts: list[str]) -> None:
    assert build(tmp_path / "index", texts).rank("cat the", 5) == (0, [])


@pytest.mark.parametrize("query", ["", "?", "\0", "the of", "\ud800", "zzz", "ca", "cats", "name:"])
def test_text_that_matches_nothing(tmp_path: Path, query: str) -> None:
    assert build(tmp_path / "index", ["cat", "dog"]).rank(query, 5) == (0, [])


def test_only_candidates_are_ranked(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    baseline = open_baseline(export_tables(*tables, tmp_path / "graph", candidates=["paper"]))
    assert [hit.node for hit in baseline.rank("Ada on shells", 5).best] == [3]
    everything = open_baseline(export_tables(*tables, tmp_path / "other"))
    assert sorted(hit.node for hit in everything.rank("Ada on shells", 5).best) == [0, 3]


def test_it_lies_beside_the_index(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    told: list[str] = []
    for _ in range(2):
        open_baseline(export, progress=lambda stage, *_: told.append(stage))
    Index.open(export)
    assert told == ["BM25 baseline", "BM25 baseline"]
    names = sorted(path.name.partition("-")[0] for path in (export.path / "index").iterdir() if path.is_dir())
    assert names == ["adjacency", "baseline", "text"]
    assert check(export.path) == []


def test_the_sample_graph(biogo: Export, tmp_path: Path) -> None:
    baseline = open_baseline(biogo, tmp_path)
    best = baseline.rank("mitochondrial transport", 1).best[0]
    assert biogo.node(best.node)["name"] == "mitochondrial transport"


def test_damaged_arrays(tmp_path: Path) -> None:
    build(tmp_path / "index", ["cat"])
    (tmp_path / "index" / "starts.npy").unlink()
    with pytest.raises(ExportError, match="damaged index"):
        Baseline(tmp_path / "index")
