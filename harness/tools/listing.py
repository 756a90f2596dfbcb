"""Lists of nodes as text, in the form that ARK's tools give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from exporter.index import Hit
from harness.observe import Observation
from harness.tools.graph import Graph, cut_record
from harness.tools.neighborhood import Found, keywords

_NAME = 200  # characters of a name, or of a query, that are shown
_AROUND = 30  # characters shown on either side of a match
_SEGMENTS = 5
_NOTE_ROOM = 120  # characters kept free for the note below a list
_LEAST_CONTEXT = 3  # letters of a word whose surroundings are shown
_MOST_WORDS = 100  # of a query that are looked for

Place = tuple[int, int]  # where a match begins and ends


def label(graph: Graph, node: int) -> str:
    """`[id] name`."""
    return f"[{node}] {one_line(graph.index.labels.name(node)) or '(no name)'}"


def one_line(text: str) -> str:
    """`text` without line breaks and NUL, the end of a long one left out."""
    text = " ".join(text.replace("\0", " ").split())
    return text if len(text) <= _NAME else f"{text[:_NAME]}..."


def search_results(graph: Graph, query: str, hits: Sequence[Hit], cap: int) -> Observation:
    """The hits of a search in the whole graph. How many more nodes match isn't told, as in ARK."""
    if not hits:
        return Observation(f"No nodes found for query: '{one_line(query)}'")
    plural = "s" if len(hits) != 1 else ""
    entries = []
    for hit, document in zip(hits, graph.index.documents(hit.node for hit in hits), strict=True):
        entry = f"{label(graph, hit.node)} ({graph.type_of(hit.node)}) - Score: {hit.score:.3f}"
        context = _context(query, document)
        entries.append(f"{entry}\n    Context: {context}" if context else entry)
    return _fitted(f"Found {len(hits)} node{plural} for query: '{one_line(query)}':", entries, len(hits), cap)


def neighborhood_results(graph: Graph, node: int, filters: Mapping[str, str], found: Found, cap: int) -> Observation:
    """What was found around `node`. `filters` are the arguments that were given, by name."""
    shown = {name: one_line(value) for name, value in filters.items()}
    told = ", ".join(f"{name}='{value}'" if name == "query" else f"{name}={value}" for name, value in shown.items())
    head = f"Search around {label(graph, node)}" + (f" ({told})" if told else "")
    if not found.nodes:
        return Observation(f"{head} found no results. Consider widening your search or changing the strategy.")
    plural = "s" if found.total != 1 else ""
    between = graph.relations_between(node, found.nodes)
    words = keywords(filters.get("query", ""))
    documents = graph.index.documents(found.nodes) if words else [""] * len(found.nodes)
    entries = []
    for number, (other, document) in enumerate(zip(found.nodes, documents, strict=True)):
        onward, back = (", ".join(names) for names in between[other])
        parts = [f"{number}.", f"-{onward}->" if onward else "", label(graph, other), f"({graph.type_of(other)})"]
        entry = " ".join(part for part in (*parts, f"<-{back}-" if back else "") if part)
        matches = _matches(words, document)
        entries.append(f"{entry}\n{matches}" if matches else entry)
    return _fitted(f"{head} found {found.total} result{plural}:", entries, found.total, cap)


def _fitted(head: str, entries: list[str], total: int, cap: int) -> Observation:
    """As many entries as fit, at least one, and a note where there are more."""
    room = cap - len(head) - _NOTE_ROOM
    shown = 0
    while shown < len(entries) and (not shown or room >= len(entries[shown]) + 2):
        room -= len(entries[shown]) + 2
        shown += 1
    parts = [head, *entries[:shown]]
    if shown < total:
        parts.append(f"(Showing {shown} of {total} results. You may want to refine your search.)")
    left_out = sum(len(entry) + 2 for entry in entries[shown:])
    return Observation("\n\n".join(parts), cut=cut_record(left_out) if left_out else None)


def _context(query: str, document: str) -> str:
    """The surroundings of the first word of the query that the document holds."""
    folded = _folded(document)
    for word in query.lower().split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]:
        if len(word) >= _LEAST_CONTEXT and (place := _find(word, folded)):
            return _segment(document, place, "**")
    return ""


def _matches(words: list[str], document: str) -> str:
    """Which words of a query a document holds, and where."""
    folded = _folded(document)
    found = [place for place in (_find(word, folded) for word in words) if place]
    if not found:
        return ""
    plural = "es" if len(found) != 1 else ""
    return f"{len(found)} match{plural}: " + " ".join(_segment(document, place) for place in found[:_SEGMENTS])


def _folded(document: str) -> str:
    """In lower case, character by character: a few have a lower case of two, which would move all that follows."""
    lower = document.lower()
    return lower if len(lower) == len(document) else "".join(c if len(c.lower()) > 1 else c.lower() for c in document)


def _find(word: str, folded: str) -> Place | None:
    start = folded.find(word)
    return None if start < 0 else (start, start + len(word))


def _segment(document: str, place: Place, mark: str = "") -> str:
    first, last = place
    start, end = max(0, first - _AROUND), min(len(document), last + _AROUND)
    text = f"{document[start:first]}{mark}{document[first:last]}{mark}{document[last:end]}"
    text = " ".join(text.replace("\0", " ").split())
    return f"{'...' if start else ''}{text}{'...' if end < len(document) else ''}"
