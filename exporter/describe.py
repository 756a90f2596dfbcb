"""The text that tells an agent how the files are laid out, with real lines of that graph."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template
from typing import Any

from exporter.counted import counted
from exporter.layout import SHARD_NODES, shard_file
from exporter.view import LAST_LINES, WHOLE, View

_EXAMPLE_BYTES = 1_000
_LOOKED_AT = 1_000  # records, for one that is short enough to show

_HEAD = Template("""\
This folder holds a knowledge graph as plain text (UTF-8): $counts.

schema.json
    $schema

nodes/NNNN.jsonl
    One node a line, as compact JSON, in the order of node_id. Node ids run from 0 to $last_node. A node lies in the
    file whose number is node_id // $shard, written with at least four digits: node $id in $file. A real line:

$record

    To find a node by its id:
        rg -N '^\\{"node_id":$id,' $file
    To find nodes by a word in their name (in JSON text, " is written as \\" and \\ as \\\\):
        rg -i '"name":"[^"]*WORD' nodes/
    Records can be long; print only the fields that you need.
""")

_SCHEMA = """\
The node types with their counts and attributes (coverage: the share of a type's nodes that have the attribute),
    and the relations with their files, their counts, and the types of node at either end (head, tail)."""
_SCHEMA_OF_NODES = """\
The node types with their counts and attributes (coverage: the share of a type's nodes that have the attribute)."""

_EDGES = Template("""
edges/NN.tsv
    One file for each relation; schema.json says which is which. A header line, then one edge a line; cells are
    separated by a tab, source and target are node ids. The start of $file, which holds $name:

$lines

    Each edge is there once, in its own direction: source, relation, target. The second line above says: node $source
    has the relation $name to node $target. To follow a relation forwards search the first column, to follow it
    backwards the second:
        rg -N '^$source\\t' $file
        rg -N '^[0-9]+\\t$target(\\t|$$)' $file
""")

_SYMMETRIC = """\
    A relation that schema.json calls symmetric has no direction: each edge is there once, so search both columns.
"""

_ATTRIBUTES = r"""    Columns behind the first two are attributes of the edge. In them \t \n \r \\ stand for tab,
    line feed, carriage return and backslash, and a cell that is \N for no value. Quotes have no special meaning: split
    lines at tabs"""
_IN_PYTHON = r""", or read them with csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)"""

_NO_EDGES = "\nThis graph has no edges.\n"


def data_format(files: Path, schema: dict[str, Any], view: View = WHOLE) -> str:
    """DATA_FORMAT.txt for the nodes and edges that lie in `files`, as far as `view` shows them."""
    node_id, record = _example_record(files / shard_file(0))
    counts = counted(schema["nodes"], "node") + (f", {counted(schema['edges'], 'edge')}" if view.edges else "")
    text = _HEAD.substitute(
        counts=counts,
        schema=_SCHEMA if view.edges else _SCHEMA_OF_NODES,
        last_node=schema["nodes"] - 1,
        shard=SHARD_NODES,
        id=node_id,
        file=shard_file(0),
        record=record,
    )
    relations = [relation for relation in schema["relations"] if relation["rows"]]
    if view.edges:
        text += _edges_part(files, relations, view) if relations else _NO_EDGES
    last = LAST_LINES[view.words]
    return f"{text}\n{last}\n" if last else text


def _edges_part(files: Path, relations: list[dict[str, Any]], view: View) -> str:
    examples = [_first_lines(files / relation["file"]) for relation in relations]
    # One whose cells are all filled shows most of the format.
    best = max(range(len(relations)), key=lambda index: sum(map(bool, examples[index][1])))
    header, first = examples[best]
    text = _EDGES.substitute(
        file=relations[best]["file"],
        name=json.dumps(relations[best]["name"], ensure_ascii=False),
        lines="\t".join(header) + "\n" + _shown("\t".join(first)),
        source=first[0],
        target=first[1],
    )
    if any(relation["symmetric"] for relation in relations):
        text += _SYMMETRIC
    if any(relation["attributes"] for relation in relations):
        text += _ATTRIBUTES + (_IN_PYTHON if view.words == "python" else "") + ".\n"
    return text


def _first_lines(path: Path) -> tuple[list[str], list[str]]:
    with path.open("rb") as file:
        header, first = (file.readline().decode().rstrip("\n").split("\t") for _ in range(2))
    return header, first


def _example_record(shard: Path) -> tuple[int, str]:
    """A short record, with its id; where all are long, the beginning of the first."""
    with shard.open("rb") as file:
        first = file.readline()
        line = first
        for node_id in range(_LOOKED_AT):
            if not line:
                break
            if len(line) <= _EXAMPLE_BYTES:
                return node_id, _shown(line.decode())
            line = file.readline()
    return 0, _shown(first.decode())


def _shown(line: str) -> str:
    line = line.removesuffix("\n")
    return line if len(line) <= _EXAMPLE_BYTES else line[:_EXAMPLE_BYTES] + " ... (cut here)"
