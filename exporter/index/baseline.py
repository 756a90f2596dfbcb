"""The ranking of STaRK's BM25 baseline: question against the documents of all candidates, no more.

It is that of the package bm25s with its defaults, which STaRK uses: words of two or more letters, digits or
underscores, lower-cased, English stop words left out, no stemming; k1 1.5, b 0.75, idf and term weight as in Lucene.
bm25s itself isn't used, since it holds all documents' words in memory while it builds. Differences: candidates that
share no word with the question aren't ranked, and equal scores come in the order of node ids.
"""

from __future__ import annotations

import mmap
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exporter.array_files import new_mapped_array, save_array
from exporter.errors import ExportError
from exporter.index.labels import mapped
from exporter.index.text import Hit, Hits

K1 = 1.5
B = 0.75
_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())  # Lucene's for English
POSTINGS = 8_000_000  # held in memory while building, some 30 bytes each

_WORD = re.compile(r"\w\w+")
_WORDS, _WORD_ENDS, _STARTS, _DOCUMENTS, _WEIGHTS, _NODES = (
    "words.bin",
    "word_ends.npy",
    "starts.npy",
    "documents.npy",
    "weights.npy",
    "nodes.npy",
)


def words(text: str) -> list[str]:
    """The words of a text that count, in their order."""
    return [word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


class Baseline:
    """Ranks. Its arrays are memory-mapped, and shared by processes. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        try:
            self._words = _Words(folder)
            names = (_STARTS, _DOCUMENTS, _WEIGHTS, _NODES)
            self._starts, self._documents, self._weights, self._nodes = (mapped(folder / name) for name in names)
        except (OSError, ValueError, EOFError) as error:
            raise ExportError(f"damaged index {folder}: {error}", "remove that folder; it is made again") from error

    def rank(self, text: str, k: int) -> Hits:
        """The `k` candidates that match `text` best; a word that stands twice in it counts twice."""
        scores = np.zeros(len(self._nodes), np.float32)
        for word, times in Counter(words(text)).items():
            number = self._words.find(word)
            if number is not None:
                postings = slice(int(self._starts[number]), int(self._starts[number + 1]))
                scores[self._documents[postings]] += self._weights[postings] * np.float32(times)
        found = np.flatnonzero(scores)
        total = len(found)
        if 0 < k < total:
            least = np.partition(scores[found], total - k)[total - k]
            found = found[scores[found] >= least]
        best = found[np.lexsort((found, -scores[found]))][: max(k, 0)]
        return Hits(total, [Hit(int(self._nodes[place]), float(scores[place])) for place in best])


class _Words:
    """Words in the order of their bytes, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self._ends: NDArray[np.int64] = mapped(folder / _WORD_ENDS)
        with (folder / _WORDS).open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> bytes:
        return self._text[int(self._ends[number - 1]) if number else 0 : int(self._ends[number])]

    def find(self, word: str) -> int | None:
        wanted = word.encode("utf-8", "replace")
        number = bisect_left(self, wanted)
        return number if number < len(self) and self[number] == wanted else None


class _Run(NamedTuple):
    """Postings of consecutive documents, in the order of words, then of documents."""

    words: NDArray[np.int32]
    documents: NDArray[np.int32]
    times: NDArray[np.int32]


class BaselineWriter:
    """Builds the ranking in bounded memory: runs of postings are put aside, then brought to their places."""

    def __init__(self, folder: Path, postings: int = POSTINGS) -> None:
        self._folder = folder
        self._most = postings
        self._numbers: dict[str, int] = {}
        self._runs: list[Path] = []
        self._nodes = array("i")
        self._lengths = array("i")
        self._words, self._documents, self._times = array("i"), array("i"), array("i")

    def add(self, node: int, text: str) -> None:
        """The next candidate's document."""
        counts = Counter(words(text))
        numbers = self._numbers
        self._words.extend([numbers.setdefault(word, len(numbers)) for word in counts])
        self._times.extend(counts.values())
        self._documents.extend([len(self._nodes)] * len(counts))
        self._nodes.append(node)
        self._lengths.append(counts.total())
        if len(self._words) >= self._most:
            self._put_aside()

    def _put_aside(self) -> None:
        order = np.argsort(np.frombuffer(self._words, np.int32), kind="stable")
        path = self._folder / f"run-{len(self._runs)}.npy"
        save_array(path, np.stack([np.frombuffer(a, np.int32)[order] for a in self._arrays()]))
        self._runs.append(path)
        self._words, self._documents, self._times = array("i"), array("i"), array("i")

    def _arrays(self) -> tuple[array[int], array[int], array[int]]:
        return self._words, self._documents, self._times

    def finish(self) -> None:
        """Put everything on disk."""
        if self._words:
            self._put_aside()
        vocabulary = sorted((word.encode(), number) for word, number in self._numbers.items())
        self._save_words(word for word, _ in vocabulary)
        place = np.empty(len(vocabulary), np.int64)  # of a word among the sorted ones
        place[[number for _, number in vocabulary]] = np.arange(len(vocabulary))
        found = np.zeros(len(vocabulary), np.int64)
        for run in self._loaded():
            found += np.bincount(place[run.words], minlength=len(vocabulary))
        starts = np.concatenate([[0], np.cumsum(found)])
        save_array(self._folder / _STARTS, starts)
        save_array(self._folder / _NODES, np.frombuffer(self._nodes, np.int32))
        self._save_postings(place, found, starts)
        for path in self._runs:
            path.unlink()

    def _save_words(self, vocabulary: Iterable[bytes]) -> None:
        ends = array("q")
        with (self._folder / _WORDS).open("xb") as file:
            for word in vocabulary:
                file.write(word)
                ends.append(file.tell())
            file.write(b"\0")  # a file of no bytes can't be mapped
        save_array(self._folder / _WORD_ENDS, np.frombuffer(ends, np.int64))

    def _save_postings(self, place: NDArray[np.int64], found: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
        size = int(starts[-1])
        documents = new_mapped_array(self._folder / _DOCUMENTS, np.int32, size)
        weights = new_mapped_array(self._folder / _WEIGHTS, np.float32, size)
        lengths = np.frombuffer(self._lengths, np.int32)
        mean = max(1, int(lengths.sum())) / max(1, len(lengths))
        part = K1 * (1 - B + B * lengths / mean)
        idf = np.log(1 + (len(lengths) - found + 0.5) / (found + 0.5))
        filled = starts[:-1].copy()  # where the next posting of a word goes
        for run in self._loaded():
            number, counts = np.unique(run.words, return_counts=True)
            before = np.cumsum(counts) - counts
            target = np.arange(len(run.words)) + np.repeat(filled[place[number]] - before, counts)
            filled[place[number]] += counts
            documents[target] = run.documents
            weights[target] = idf[place[run.words]] * run.times / (part[run.documents] + run.times)

    def _loaded(self) -> Iterator[_Run]:
        for path in self._runs:
            yield _Run(*np.load(path, mmap_mode="r", allow_pickle=False))
