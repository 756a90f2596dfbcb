"""The part of the check that reads the edges of one relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from exporter import tsv
from exporter.counted import counted
from exporter.edge_blocks import BadEdgeRow, EdgeRows, TypeIds, canonical, count_triples, read_edge_blocks
from exporter.fault import Fault
from exporter.layout import FILES, SCHEMA, edge_file


def edge_faults(path: Path, relation: dict[str, Any], schema: dict[str, Any], type_ids: TypeIds) -> Iterator[Fault]:
    """Every fault of a relation's file; `type_ids` is the type of each node."""
    if relation["file"] != edge_file(relation["id"]):
        yield Fault(SCHEMA, None, f"relation '{relation['name']}': the file is not {edge_file(relation['id'])}")
        return
    file = f"{FILES}/{relation['file']}"
    width = 2 + len(relation["attributes"])
    header = "\t".join(("source", "target", *map(tsv.escape, relation["attributes"]))).encode() + b"\n"
    triples: Counter[tuple[int, int]] = Counter()
    try:
        with (path / file).open("rb") as opened:
            if opened.readline() != header:
                yield Fault(file, 1, f"the header is not {header.decode()!r}")
        for block in read_edge_blocks(path / file, width):
            faults = list(_block_faults(file, block, relation["symmetric"], type_ids))
            if faults:
                yield from faults
                return  # counts would say nothing
            triples.update(count_triples(type_ids, block.sources, block.targets))
    except BadEdgeRow as bad:
        yield Fault(file, bad.line, str(bad))
        return
    except OSError as error:
        yield Fault(file, None, f"cannot be read: {error.strerror}")
        return
    yield from _count_faults(file, relation, triples, [item["name"] for item in schema["node_types"]])


def _block_faults(file: str, block: EdgeRows, symmetric: bool, type_ids: TypeIds) -> Iterator[Fault]:
    for name, ids in (("source", block.sources), ("target", block.targets)):
        beyond = np.flatnonzero(ids >= len(type_ids))
        if len(beyond):
            row = int(beyond[0])
            yield Fault(
                file, block.first_line + row, f"{name} {ids[row]} is not a node; ids end at {len(type_ids) - 1}"
            )
            return
    if symmetric:
        wrong = ~canonical(type_ids, block.sources, block.targets) & (block.sources != block.targets)
        if wrong.any():
            row = int(np.argmax(wrong))
            yield Fault(file, block.first_line + row, "the relation is symmetric, but the higher node comes first")
    if b"\\" in block.text or b"\r" in block.text:
        for row, line in enumerate(block.text.decode().split("\n")[:-1]):
            for cell in line.split("\t")[2:]:
                if not tsv.well_formed(cell):
                    yield Fault(file, block.first_line + row, f"not a well-formed cell: {cell[:80]!r}")


def _count_faults(
    file: str, relation: dict[str, Any], triples: Counter[tuple[int, int]], type_names: list[str]
) -> Iterator[Fault]:
    if triples.total() != relation["rows"]:
        yield Fault(file, None, f"has {counted(triples.total(), 'edge')}, but the schema says {relation['rows']}")
    found = {(type_names[head], type_names[tail]): count for (head, tail), count in triples.items()}
    said = {(item["head"], item["tail"]): item["count"] for item in relation["triples"]}
    for pair in sorted(found.keys() | said.keys()):
        if found.get(pair, 0) != said.get(pair, 0):
            yield Fault(
                file,
                None,
                f"{counted(found.get(pair, 0), 'edge')} from '{pair[0]}' to '{pair[1]}', but the schema says"
                f" {said.get(pair, 0)}",
            )
