"""STaRK-MAG: papers, authors, institutions and fields of study. Missing values are -1 or "-1"; papers are answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exporter.stark.dataset import Dataset, Expected, Record

_PAPER = "paper"
# How each type but papers is introduced, and called in the lines about its counts.
_LINES = {
    "author": ("- author name: ", "author"),
    "field_of_study": (" - field of study: ", "field"),
    "institution": (" - institution: ", "institution"),
}
_VENUES = (
    ("OriginalVenue", "venue"),
    ("JournalDisplayName", "journal"),
    ("ConferenceSeriesDisplayName", "conference"),
    ("ConferenceInstancesDisplayName", "conference"),
)


def document(record: Record) -> str:
    """Title, abstract, date and venue of a paper; name and counts of anything else."""
    info = record["attributes"]
    lines = _paper(info) if record["node_type"] == _PAPER else _named(info, record["node_type"])
    return "".join(f"{line}\n" for line in lines)


def _paper(info: Mapping[str, Any]) -> list[str]:
    lines = [f" - paper title: {_known(info, 'title', '')}"]
    abstract = _known(info, "abstract")
    if abstract is not None:
        lines.append(" - abstract: " + str(abstract).replace("\r", "").rstrip("\n"))
    date = _known(info, "Date")
    if date is not None:
        lines.append(f" - publication date: {date}")
    for key, word in _VENUES:
        venue = _known(info, key)
        if venue is not None:
            return [*lines, f" - {word}: {venue}"]
    return lines


def _named(info: Mapping[str, Any], node_type: str) -> list[str]:
    start, word = _LINES[node_type]
    lines = [start + str(_known(info, "DisplayName", "Unknown"))]
    for key, what in (("PaperCount", "paper count"), ("CitationCount", "citation count")):
        count = _known(info, key)
        if count is not None:
            lines.append(f"- {word} {what}: {count}")
    return lines


def _known(info: Mapping[Any, Any], key: str, otherwise: Any = None) -> Any:
    """A value, unless it is missing."""
    value = info.get(key)
    return otherwise if value is None or str(value) == "-1" else value


def _name(node_type: str, info: Mapping[Any, Any]) -> Any:
    return _known(info, "title" if node_type == _PAPER else "DisplayName")


MAG = Dataset(
    name="mag",
    node_types=("author", "institution", "field_of_study", _PAPER),
    relations=(
        "author___affiliated_with___institution",
        "paper___cites___paper",
        "paper___has_topic___field_of_study",
        "author___writes___paper",
    ),
    candidates=(_PAPER,),
    folders=("",),
    name_of=_name,
    document=document,
    expected=Expected(
        nodes=1_872_968,
        edges=39_802_116,
        undirected=True,
        questions=13_323,
        splits={"train": 7993, "val": 2665, "test": 2665, "test-0.1": 266, "human": 84},
    ),
    archive_bytes=484_062_494,
    archive_sha256="7bfac742c1fb77694b3fab76be5088f9c3a636f47366188b70d3f378cfbd3053",
)
