"""Small graphs as table files, for tests that export one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from exporter import Export, export_tables

NODES = [
    {"id": "a1", "type": "author", "name": "Ada"},
    {"id": "a2", "type": "author", "name": "Bo"},
    {"id": "p1", "type": "paper", "name": "On graphs", "year": 1999},
    {"id": "p2", "type": "paper", "name": "On shells", "year": 2004, "tags": ["x", "y"]},
    {"id": "p3", "type": "paper", "name": "On nothing", "year": None},
]
EDGES = [
    ("a1", "writes", "p1"),
    ("a1", "writes", "p2"),
    ("a2", "writes", "p2"),
    ("p2", "cites", "p1"),
]
QUERIES = [
    {"id": "q1", "query": "Which papers did Bo write?", "answer_ids": ["p2"], "split": "test"},
    {"id": "q2", "query": "Which papers did Ada write?", "answer_ids": ["p1", "p2"], "split": "val", "hops": 1},
]


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_tsv(
    path: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = ("source", "relation", "target")
) -> Path:
    lines = ["\t".join(cells) + "\n" for cells in (header, *rows)]
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def write_tables(
    folder: Path,
    nodes: Iterable[Mapping[str, Any]] = NODES,
    edges: Iterable[Sequence[str]] = EDGES,
    header: Sequence[str] = ("source", "relation", "target"),
) -> tuple[Path, Path]:
    """`nodes.jsonl` and `edges.tsv` in `folder`."""
    return write_jsonl(folder / "nodes.jsonl", nodes), write_tsv(folder / "edges.tsv", edges, header)


def small_export(folder: Path) -> Export:
    """The little graph above, with its questions, exported to `folder`/graph."""
    queries = write_jsonl(folder / "queries.jsonl", QUERIES)
    return export_tables(*write_tables(folder), folder / "graph", queries=queries)
