"""Which parts of a tool's result are the harness's own words: the line that says how a command ended, notices of cuts,
headers of pages. A command can print the same words; what it printed is told from them by what the trajectory records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

LINE_TAIL_SHARE = 5  # a shortened line keeps one part in this many of its end
_LEFT_OUT = re.compile(r"^\[\.\.\. ([\d,]+) (?:characters?|bytes?) left out (?:here|above) \.\.\.\]$", re.MULTILINE)
_LINE_LEFT_OUT = re.compile(r"\[\.\.\. ([\d,]+) characters? of this line left out \.\.\.\]")
_READ = re.compile(r"\[bytes (\d+)-(\d+) of (\d+)\](?=\n|$)")
_MORE = re.compile(r"\[([\d,]+) bytes? more: read on with offset (\d+)\]")
_PAGE = re.compile(r"\n\[characters \d+-\d+ of \d+(; go on with offset \d+)?\]$")
_SHOWING = re.compile(r"\n\(Showing \d+ of \d+ results\. You may want to refine your search\.\)$")

Span = tuple[int, int]


def own_words(event: Mapping[str, Any], line_cap: int | None) -> list[Span]:
    """Where the harness speaks in a `result` event's text: [begin, end) in characters, in order, no two touching.

    `line_cap` is the mode's `output.line_cap`. A notice inside of an output counts only where the record leaves no
    doubt which one it is.
    """
    text: str = event["text"]
    if event["error"] is not None:
        return [(0, len(text))] if text else []
    spans = [*_first_line(event, text), *_last_line(event, text)]
    if event["exec"] is not None and event["cut"] is not None:
        begin = spans[0][1] if spans and spans[0][0] == 0 else 0
        end = spans[-1][0] if spans and spans[-1][1] == len(text) else len(text)
        spans += [*_left_out(event["cut"], text, begin, end), *_shortened(event["cut"], text, begin, end, line_cap)]
    return _joined(spans)


def _first_line(event: Mapping[str, Any], text: str) -> Iterator[Span]:
    ran = event["exec"]
    if ran is not None:
        first, _, rest = text.partition("\n")
        status = f"[exit code {ran['exit_code']}]" if ran["termination"] in ("exit", "killed") else "[ended"
        nothing = first == f"{status} no output" and not rest
        if first == status or nothing or (status == "[ended" and first.startswith(status)):
            yield 0, len(first)
    elif event["name"] == "read" and (header := _READ.match(text)):
        yield 0, header.end()


def _last_line(event: Mapping[str, Any], text: str) -> Iterator[Span]:
    start = text.rfind("\n") + 1
    if event["exec"] is not None:
        if event["cut"] is not None and start and text.startswith("[cut: ", start):
            yield start, len(text)
        return
    header = _READ.match(text) if event["name"] == "read" else None
    if header is not None:
        end, size = int(header[2]), int(header[3])
        more = _MORE.fullmatch(text, start)
        if more and more.groups() == (f"{size - end:,}", str(end)) and end < size:
            yield start, len(text)
        return
    for form in (_PAGE if event["cut"] is not None else None, _SHOWING):
        if form is not None and (notice := form.search(text)):
            yield notice.start() + 1, len(text)


def _left_out(cut: Mapping[str, Any], text: str, begin: int, end: int) -> list[Span]:
    """The notice of what was left out of an output: the one that has the recorded number, else the only one."""
    found = list(_LEFT_OUT.finditer(text, begin, end)) if cut["characters"] else []
    told = [match for match in found if match[1] == f"{cut['characters']:,}"] or found
    return [told[0].span()] if len(told) == 1 else []


def _shortened(cut: Mapping[str, Any], text: str, begin: int, end: int, line_cap: int | None) -> Iterator[Span]:
    """Notices in the middle of lines: a line that is longer than the cap, and is cut where such lines are cut.

    No output can imitate it: a line of its own that is as long would have been shortened itself.
    """
    if not cut["lines"] or line_cap is None:
        return
    for match in _LINE_LEFT_OUT.finditer(text, begin, end):
        start = text.rfind("\n", 0, match.start()) + 1
        stop = text.find("\n", match.end())
        kept = (stop if stop >= 0 else len(text)) - start - len(match[0])
        if kept == line_cap and match.start() - start == line_cap - line_cap // LINE_TAIL_SHARE:
            yield match.span()


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
