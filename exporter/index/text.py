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
from collections.abc import Iterator, Sequence
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

    def search(self, text: str, k: int, among: NDArray[np.integer] | None = None) -> Hits:
        """The `k` nodes that match `text` best, of all or of those in `among`; none where no word of it occurs.

        A node matches with any of the words; a word that stands twice in `text` counts twice.
        """
        query = self._query(text)
        if query is None or k < 1 or (among is not None and not len(among)):
            return Hits(0, [])
        if among is not None:
            query = Query.boolean_query([(Occur.Must, self._one_of(among, 0.0)), (Occur.Must, query)])
        return self._best(query, k)

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
        query = Query.boolean_query(
            [(Occur.Must, self._one_of(among, 0.0)), (Occur.Must, Query.boolean_query(clauses))]
        )
        return self._best(query, k)

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

    def _best(self, query: Query, k: int) -> Hits:
        total, hits = self._collect(query, k)
        while hits and len(hits) < total and self._tied_at_the_end(hits, k):
            total, hits = self._collect(query, len(hits) * _WIDER)
        return Hits(total, sorted(hits, key=lambda hit: (-hit.score, hit.node))[:k])

    def _collect(self, query: Query, limit: int) -> tuple[int, list[Hit]]:
        result = self._searcher.search(query, min(limit, self._searcher.num_docs), count=True)
        ids = self._searcher.fast_field_values(_ID, [address for _, address in result.hits])
        hits = [Hit(int(node or 0), score) for node, (score, _) in zip(ids, result.hits, strict=True)]
        return result.count, hits  # type: ignore[attr-defined]  # missing in tantivy's stubs

    def _tied_at_the_end(self, hits: list[Hit], k: int) -> bool:
        """Whether nodes beyond `hits` may belong to the best `k` because their score is as good.

        Within a segment equal scores come in the order of ids.
        """
        return self._searcher.num_segments > 1 and len(hits) >= k and hits[-1].score == hits[k - 1].score

    def _query(self, text: str) -> Query | None:
        words = Counter(self._analyzer.analyze(text.encode("utf-8", "replace").decode()))
        clauses = []
        for word, times in islice(words.items(), _MOST_TERMS):
            for field in _FIELDS:
                term = Query.term_query(self._schema, field, word, index_option="freq")
                clauses.append((Occur.Should, term if times == 1 else Query.boost_query(term, float(times))))
        return Query.boolean_query(clauses) if clauses else None


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
