"""Names and numbers of the export layout that its writer and its readers share."""

from __future__ import annotations

import json

FORMAT = 1
SHARD_NODES = 10_000  # nodes in one file
FILES = "files"
MANIFEST = "manifest.json"
SCHEMA = "files/schema.json"
DATA_FORMAT = "files/DATA_FORMAT.txt"
OFFSETS = "index/offsets.npy"  # int64 for each node: where its line begins in its shard
CANDIDATES = "index/candidates.npy"  # bool for each node
SUMS = "sums.json"  # in each part of the index: bytes and sha256 of its files
INDEX = {OFFSETS: "int64", CANDIDATES: "bool"}  # and what an entry is
QUERIES = "queries/queries.jsonl"
RECORD_KEYS = ("node_id", "node_type", "name", "is_candidate", "attributes")
_WIDTH = 200


def shard_file(shard: int) -> str:
    """Where nodes `shard * SHARD_NODES` and following lie, relative to files/."""
    return f"nodes/{shard:04d}.jsonl"


def edge_file(relation: int) -> str:
    """Where the edges of a relation lie, relative to files/."""
    return f"edges/{relation:02d}.tsv"


def pretty(value: object) -> bytes:
    """JSON for people and agents to read, a line feed at the end: what fits into a line is on one line."""
    return (_fitted(value, "") + "\n").encode()


def _fitted(value: object, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_fitted(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + _fitted(item, deeper) for item in value) + f"\n{indent}]"
