"""BM25 over names and documents of all nodes, with tantivy.

Scores are tantivy's BM25 (k1 1.2, b 0.75, document lengths beyond 40 words quantised), the sum over both fields.
Texts are split at everything that isn't a letter or a digit, and lower-cased. What is searched for goes through the
same analyser and is never parsed as query syntax.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer

from exporter.errors import ExportError

MEMORY = 2_000_000_000  # bytes that building takes at most before it begins another segment
_FIELDS = ("name", "text")
_ID = "id"
_ANALYZER = "words"
_MOST_TERMS = 1_000  # different words of a query that count
_LONGEST_WORD = 255  # bytes
_WIDER = 8
_FEW_POSTINGS = 300_000  # of a query: all are gone through, in two milliseconds
_SAMPLE = 30_000  # postings that are gone through to learn what the best score at least
_MOST_LOOKED_UP = 12  # terms
_LOOK_UP = 4  # what one costs, in postings gone through
_ROUNDING = 1 + 1e-5  # of sums of 32-bit floats
_REMOVALS = 5
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


class Hit(NamedTuple):
    """A node that was found."""

    node: int
    score: float


class Hits(NamedTuple):
    """The best hits, best first, equal ones by id, and how many nodes match in all."""

    total: int
    best: list[Hit]


class _Term(NamedTuple):
    """A word of a query in one of the fields, how often the query has it, and how many nodes do."""

    postings: int
    field: str
    word: str
    times: int


class TextIndex:
    """Searches. The index is memory-mapped, and shared by processes. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        try:
            with _links(folder) as links:
                index = tantivy.Index.open(str(links))
                index.config_reader("manual")  # no thread that watches the folder
                self._searcher = index.searcher()
        except (OSError, ValueError) as error:
            raise ExportError(f"damaged index {folder}: {error}", "remove that folder; it is made again") from error
        self._schema = index.schema
        self._analyzer = _analyzer()
        self._highest: dict[tuple[str, str], float] = {}

    def search(self, text: str, k: int) -> list[Hit]:
        """The `k` nodes that match `text` best, best first, equal ones by id; none where no word of it occurs.

        A node matches with any of the words; a word that stands twice in `text` counts twice.
        """
        terms = self._terms(text)
        if not terms or k < 1:
            return []
        return self._best(lambda limit: self._any_of_best(terms, limit), k, count=False).best

    def search_among(self, text: str, k: int, among: NDArray[np.integer]) -> Hits:
        """The same of the nodes in `among`, by their scores in the whole graph, and how many match."""
        terms = self._terms(text)
        if not terms or k < 1 or not len(among):
            return Hits(0, [])
        return self._best_among(among, self._any_of(terms), k)

    def holding(
        self, wanted: Sequence[Sequence[str] | NDArray[np.integer]], k: int, among: NDArray[np.integer]
    ) -> Hits:
        """The `k` nodes of `among` that have most of what is wanted, and how many have any; the score counts it.

        Wanted are certain nodes, or texts with all of certain strings in them, each inside a word: lower-case ASCII
        letters and digits. Goes through all words of the index once for each string, not through texts. What stands
        in a word that is longer than the index has them is not found.
        """
        if k < 1 or not len(among):
            return Hits(0, [])
        clauses = [(Occur.Should, self._holders(one)) for one in wanted]
        return self._best_among(among, Query.boolean_query(clauses), k)

    def _holders(self, wanted: Sequence[str] | NDArray[np.integer]) -> Query:
        """A query for one of the things that are wanted; whoever has it scores 1."""
        if isinstance(wanted, np.ndarray):
            return self._one_of(wanted, 1.0)
        if any(len(string) > _LONGEST_WORD for string in wanted):
            return Query.empty_query()
        parts = [(Occur.Must, Query.regex_query(self._schema, "text", f".*{string}.*")) for string in wanted]
        return Query.const_score_query(Query.boolean_query(parts), 1.0)

    def _one_of(self, nodes: NDArray[np.integer], score: float) -> Query:
        return Query.const_score_query(Query.term_set_query(self._schema, _ID, nodes.tolist()), score)

    def _best_among(self, among: NDArray[np.integer], query: Query, k: int) -> Hits:
        inside = Query.boolean_query([(Occur.Must, self._one_of(among, 0.0)), (Occur.Must, query)])
        return self._best(lambda _: inside, k, count=True)

    def _best(self, query_for: Callable[[int], Query], k: int, *, count: bool) -> Hits:
        """The best `k`, given the query for a number of nodes; counting goes through all that match."""
        limit = min(k, self._searcher.num_docs)
        total, hits = self._collect(query_for(limit), limit, count)
        while len(hits) == limit < self._searcher.num_docs and self._tied_at_the_end(hits, k):
            limit = min(limit * _WIDER, self._searcher.num_docs)
            total, hits = self._collect(query_for(limit), limit, count)
        return Hits(total, sorted(hits, key=lambda hit: (-hit.score, hit.node))[:k])

    def _collect(self, query: Query, limit: int, count: bool) -> tuple[int, list[Hit]]:
        result = self._searcher.search(query, limit, count=count)
        ids = self._searcher.fast_field_values(_ID, [address for _, address in result.hits])
        hits = [Hit(int(node or 0), score) for node, (score, _) in zip(ids, result.hits, strict=True)]
        return result.count or 0, hits  # type: ignore[attr-defined]  # missing in tantivy's stubs

    def _tied_at_the_end(self, hits: list[Hit], k: int) -> bool:
        """Whether nodes beyond `hits` may belong to the best `k` because their score is as good.

        Within a segment equal scores come in the order of ids.
        """
        return self._searcher.num_segments > 1 and len(hits) >= k and hits[-1].score == hits[k - 1].score

    def _terms(self, text: str) -> list[_Term]:
        """What of `text` occurs anywhere, the most frequent first."""
        words = Counter(self._analyzer.analyze(text.encode("utf-8", "replace").decode()))
        terms = [
            _Term(self._searcher.doc_freq(field, word), field, word, times)
            for word, times in islice(words.items(), _MOST_TERMS)
            for field in _FIELDS
        ]
        return sorted((term for term in terms if term.postings), reverse=True)

    def _any_of(self, terms: Sequence[_Term]) -> Query:
        return Query.boolean_query([(Occur.Should, self._query(term)) for term in terms])

    def _any_of_best(self, terms: Sequence[_Term], limit: int) -> Query:
        """A query whose best `limit` nodes are those of `_any_of`, and that goes through fewer.

        A node with frequent words alone can't be among the best where enough others score more than these words can
        together: they are then only looked up at the nodes that hold another word (MaxScore: Turtle and Flood,
        Query evaluation: strategies and optimizations, 1995). tantivy's own pruning isn't used by its Python package.
        """
        looked_up = range(min(len(terms), _MOST_LOOKED_UP + 1))
        costs = [sum(term.postings for term in terms[count:]) * (1 + count * _LOOK_UP) for count in looked_up]
        if costs[0] < _FEW_POSTINGS or costs[0] == min(costs):
            return self._any_of(terms)
        unable = self._unable_alone(terms[:_MOST_LOOKED_UP], self._least_of_best(terms, limit))
        count = costs.index(min(costs[: unable + 1]))
        query = self._any_of(terms[count:])
        for term in reversed(terms[:count]):
            query = Query.boolean_query([(Occur.Must, query), (Occur.Should, self._query(term))])
        return query

    def _least_of_best(self, terms: Sequence[_Term], limit: int) -> float:
        """What the best `limit` nodes score at least, by the rarest terms."""
        gone_through = np.cumsum([term.postings for term in reversed(terms)])
        count = max(1, int(np.searchsorted(gone_through, _SAMPLE, "right")))
        hits = self._searcher.search(self._any_of(terms[-count:]), limit, count=False).hits
        return hits[-1][0] if len(hits) == limit else 0.0

    def _unable_alone(self, terms: Sequence[_Term], least: float) -> int:
        """How many of the first of `terms` together score less than `least` anywhere."""
        together = 0.0
        for count, term in enumerate(terms):
            together += self._highest_score(term)
            if together * _ROUNDING >= least:
                return count
        return len(terms)

    def _highest_score(self, term: _Term) -> float:
        key = term.field, term.word
        if key not in self._highest:
            self._highest[key] = self._searcher.search(self._query(term._replace(times=1)), 1, count=False).hits[0][0]
        return self._highest[key] * term.times

    def _query(self, term: _Term) -> Query:
        query = Query.term_query(self._schema, term.field, term.word, index_option="freq")
        return query if term.times == 1 else Query.boost_query(query, float(term.times))


class TextWriter:
    """Builds the index. Nodes are added in the order of their ids. Raises OSError where it can't be written."""

    def __init__(self, folder: Path, memory: int = MEMORY) -> None:
        builder = tantivy.SchemaBuilder().add_unsigned_field(_ID, indexed=True, fast=True)
        for field in _FIELDS:
            builder = builder.add_text_field(field, tokenizer_name=_ANALYZER, index_option="freq")
        # Sorted, so that equal scores come in the order of ids; in one thread, so that there is one segment if it fits.
        index = tantivy.Index(builder.build(), path=str(folder), sort_by_field=_ID)
        index.register_tokenizer(_ANALYZER, _analyzer())
        self._writer = index.writer(memory, 1)
        self._folder = folder
        self._next = 0

    def add(self, name: str, text: str) -> None:
        """The next node's name and document."""
        document = tantivy.Document()
        document.add_unsigned(_ID, self._next)
        document.add_text("name", name)
        document.add_text("text", text)
        with _failing():
            self._writer.add_document(document)
        self._next += 1

    def finish(self) -> None:
        """Put everything on disk."""
        with _failing():
            self._writer.commit()
            self._writer.wait_merging_threads()
        for path in self._folder.glob(".tantivy-*.lock"):
            path.unlink()


@contextmanager
def _failing() -> Iterator[None]:
    """tantivy's ValueError of a write that failed as the OSError that it was."""
    try:
        yield
    except ValueError as error:
        found = _OS_ERROR.search(str(error))
        code = int(found[1]) if found else errno.EIO
        raise OSError(code, os.strerror(code) if found else str(error)) from error


def _analyzer() -> tantivy.TextAnalyzer:
    tokenizer = TextAnalyzerBuilder(Tokenizer.simple())
    return tokenizer.filter(Filter.remove_long(_LONGEST_WORD)).filter(Filter.lowercase()).build()


@contextmanager
def _links(folder: Path) -> Iterator[Path]:
    """A folder with links to the index's files: tantivy writes a lock file beside them when it opens them.

    It may do so once more from a thread of its own, while the folder is being removed.
    """
    links = Path(tempfile.mkdtemp(prefix="kgshell-index-"))
    try:
        for path in folder.iterdir():
            (links / path.name).symlink_to(path.absolute())
        yield links
    finally:
        for _ in range(_REMOVALS):
            shutil.rmtree(links, ignore_errors=True)
            if not links.exists():
                break
