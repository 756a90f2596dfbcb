"""BM25 from the index against the formula written out, and texts that are no words."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import ExportError
from exporter.index.text import TextIndex, TextWriter

ROOT = Path(__file__).resolve().parents[2]

Texts = Sequence[tuple[str, str]]


def build(folder: Path, texts: Texts, memory: int = 15_000_000) -> TextIndex:
    folder.mkdir()
    writer = TextWriter(folder, memory)
    for name, text in texts:
        writer.add(name, text)
    writer.finish()
    return TextIndex(folder)


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def bm25(texts: Texts, query: str) -> list[float]:
    """Robertson and Zaragoza 2009 with Lucene's idf, the sum over both fields."""
    scores = [0.0] * len(texts)
    for field in range(2):
        documents = [Counter(words(text[field])) for text in texts]
        mean = sum(document.total() for document in documents) / len(documents)
        for word in words(query):
            found = sum(word in document for document in documents)
            idf = math.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
            for number, document in enumerate(documents):
                length = 1.2 * (1 - 0.75 + 0.75 * document.total() / mean) if mean else 0
                scores[number] += idf * document[word] * 2.2 / (document[word] + length) if document[word] else 0
    return scores


def corpus(chance: random.Random, count: int, longest: int) -> Texts:
    vocabulary = [f"{stem}{number}" for number in range(30) for stem in ("gene", "Cell", "ß")]
    weights = [1 / (number + 1) for number in range(len(vocabulary))]

    def text(length: int) -> str:
        return " ".join(chance.choices(vocabulary, weights, k=chance.randrange(length)))

    return [(text(6), text(longest)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_formula(tmp_path: Path, seed: int) -> None:
    """Up to 40 words a field tantivy keeps lengths as they are."""
    chance = random.Random(seed)
    texts = corpus(chance, 200, 41)
    index = build(tmp_path / "index", texts)
    for query in ("gene0", "cell3 ß1 GENE2", "gene0, gene0: cell9!", "ß7 nothing"):
        expected = bm25(texts, query)
        ranking = sorted((node for node in range(200) if expected[node] > 0), key=lambda node: -expected[node])
        hits = index.search(query, 200)
        assert len(hits) == len(ranking)
        assert {hit.node for hit in hits} == set(ranking)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.node] for hit in hits], rel=1e-5)
        assert [hit.score for hit in hits] == pytest.approx([expected[node] for node in ranking], rel=1e-5)


def test_longer_documents_score_within_a_few_percent(tmp_path: Path) -> None:
    """Beyond 40 words a length is kept with three significant bits, so it is off by an eighth at most."""
    chance = random.Random(7)
    texts = corpus(chance, 300, 1_000)
    index = build(tmp_path / "index", texts)
    for query in ("gene0", "cell20 ß21 gene22"):
        expected = bm25(texts, query)
        hits = index.search(query, 300)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.node] for hit in hits], rel=0.1)


@pytest.mark.parametrize(
    "query", ["", " ", "?!*", "\0", "-", '"', "日", "AND", "\ud800", "name:", "(", "~2", "a" * 300, "id:1", "\\"]
)
def test_text_that_matches_nothing(tmp_path: Path, query: str) -> None:
    index = build(tmp_path / "index", [("one", "two three"), ("", "")])
    assert index.search(query, 5) == []
    assert index.search_among(query, 5, np.array([0, 1])) == (0, [])


@pytest.mark.parametrize(
    "query", ["name:cat", "+cat -dog", '"cat', "cat)", "cat^9", "cat~", "CAT*", "cat\ud800", "[cat TO x]", "\ncat\0"]
)
def test_query_syntax_is_text(tmp_path: Path, query: str) -> None:
    index = build(tmp_path / "index", [("cat", "dogs"), ("a", "cattle"), ("to x", "mice")])
    assert 0 in {hit.node for hit in index.search(query, 5)}
    assert 1 not in {hit.node for hit in index.search(query, 5)}


def test_a_query_of_very_many_words(tmp_path: Path) -> None:
    index = build(tmp_path / "index", [("first", ""), ("last", "")])
    hits = index.search("first " + " ".join(f"w{number}" for number in range(20_000)) + " last", 5)
    assert [hit.node for hit in hits] == [0]


def test_a_corpus_without_words(tmp_path: Path) -> None:
    index = build(tmp_path / "index", [("", ""), ("", "...")])
    assert index.search("anything", 5) == []


@pytest.mark.parametrize(("k", "found"), [(-1, 0), (0, 0), (1, 1), (3, 3), (4, 3), (10**9, 3)])
def test_any_number_may_be_asked_for(tmp_path: Path, k: int, found: int) -> None:
    index = build(tmp_path / "index", [("cat", ""), ("cat cat", ""), ("dog", "cat")])
    assert len(index.search("cat", k)) == found
    hits = index.search_among("cat", k, np.arange(3))
    assert (hits.total, len(hits.best)) == (3 if k > 0 else 0, found)


def test_only_among_some(tmp_path: Path) -> None:
    """Scores stay as they are, from the statistics of all nodes."""
    index = build(tmp_path / "index", [(f"cat {'dog ' * (number % 5)}", "") for number in range(100)])
    alike = index.search("cat dog", 100)
    scores = dict(alike)
    among = np.array([3, 50, 61, 62, 99], np.int32)
    hits = index.search_among("cat dog", 3, among)
    assert hits.total == 5
    assert [(hit.node, hit.score) for hit in hits.best] == [
        (hit.node, pytest.approx(hit.score)) for hit in alike if hit.node in {3, 61, 62, 99}
    ][:3]
    assert index.search_among("cat", 3, np.array([], np.int32)) == (0, [])
    assert [hit.node for hit in index.search_among("dog", 3, np.array([50])).best] == []
    assert scores[3] > scores[61]


def test_equal_scores_come_in_the_order_of_ids(tmp_path: Path) -> None:
    texts = [("cat" if number % 3 else "cat cat", f"x{number}") for number in range(1_000)]
    index = build(tmp_path / "index", texts)
    twice, once = [n for n in range(1_000) if n % 3 == 0], [n for n in range(1_000) if n % 3]
    for k in (1, 10, 340, 1_000):
        assert [hit.node for hit in index.search("cat", k)] == [*twice, *once][:k]


def test_equal_scores_in_several_segments(tmp_path: Path) -> None:
    """More text than the memory given holds: the index has segments, in no particular order."""
    chance = random.Random(3)
    texts = [("cat", " ".join(f"{chance.randrange(1 << 40):x}" for _ in range(25))) for _ in range(14_000)]
    index = build(tmp_path / "index", texts)
    assert len({path.stem for path in (tmp_path / "index").glob("*.term")}) > 1
    for k in (1, 30, 3_000):
        assert [hit.node for hit in index.search("cat", k)] == list(range(k))
        hits = index.search_among("cat", k, np.arange(14_000))
        assert hits.total == 14_000
        assert [hit.node for hit in hits.best] == list(range(k))


@pytest.mark.parametrize("seed", range(4))
def test_looking_frequent_words_up_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whichever words are gone through, and whichever are only looked up, where that is cheap."""
    monkeypatch.setattr("exporter.index.text._FEW_POSTINGS", 0)
    monkeypatch.setattr("exporter.index.text._LOOK_UP", seed / 10)
    monkeypatch.setattr("exporter.index.text._SAMPLE", 300)
    only_looked_up: set[int] = set()
    unable_alone = TextIndex._unable_alone

    def watched(index: TextIndex, terms: Sequence[Any], least: float) -> int:
        count = unable_alone(index, terms, least)
        only_looked_up.add(count)
        return count

    monkeypatch.setattr(TextIndex, "_unable_alone", watched)
    chance = random.Random(seed)
    texts = corpus(chance, 1_000, 60) * 2  # each has an equal
    index = build(tmp_path / "index", texts)
    everywhere = np.arange(len(texts))
    for number in range(60):
        query = " ".join(chance.choices(words(texts[number][1]) or ["none"], k=chance.randrange(1, 12)))
        for k in (1, 30, 500):
            whole = index.search_among(query, k, everywhere).best
            found = index.search(query, k)
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in whole], rel=1e-5)
            assert [hit.node for hit in found] == [hit.node for hit in whole]
    assert len(only_looked_up) > 3


def test_opening_writes_nothing_beside_the_index(tmp_path: Path) -> None:
    build(tmp_path / "index", [("cat", "dog")])
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "index").iterdir())
    assert TextIndex(tmp_path / "index").search("dog", 1)[0].node == 0
    assert sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "index").iterdir()) == before
    assert not [name for name, _ in before if name.endswith(".lock")]


@pytest.mark.parametrize("texts", [1, 40_000])
def test_a_file_that_cannot_be_written(tmp_path: Path, texts: int) -> None:
    """What tantivy says then, at its end or in the middle, is told as the error of the system that it was."""
    code = f"""
import resource, sys
from pathlib import Path
from exporter.index.text import TextWriter
writer = TextWriter(Path(sys.argv[1]), memory=15_000_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    for number in range({texts}):
        writer.add("name", " ".join(f"w{{number * word}}" for word in range(50)))
    writer.finish()
except OSError as error:
    print(type(error).__name__, error.errno)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done
    assert re.fullmatch(r"OSError \d+\n", done.stdout), done


def test_a_damaged_index(tmp_path: Path) -> None:
    build(tmp_path / "index", [("cat", "dog")])
    (tmp_path / "index" / "meta.json").unlink()
    with pytest.raises(ExportError, match="damaged index"):
        TextIndex(tmp_path / "index")
