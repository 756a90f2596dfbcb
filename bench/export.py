"""CPU time of the export's writers against plain Python that writes the same files.

Edges: arrays of node ids to edges/NN.tsv, hashed, counted by type and tested for symmetry, against the fastest loop
that plain Python has (f-strings over lists, joined in blocks) and that does nothing else. Nodes: records to
nodes/NNNN.jsonl with the statistics for the schema, against json.dumps line by line, and against writing ready bytes.

    python -m bench.export [--edges 8000000] [--nodes 200000]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from exporter.edge_files import EdgeFiles
from exporter.node_files import NodeFiles, encode
from exporter.source import EdgeBlock, Node

BLOCK = 1_000_000
NODE_COUNT = 1_870_000  # of MAG's size, so that ids have as many digits
WORDS = [f"{stem}{ending}" for stem in ("graph", "node", "protein", "café", "reaction") for ending in ("", "s", "ing")]


def cpu_seconds(work: Callable[[Path], None]) -> float:
    """CPU time of `work` in an empty folder, all threads together."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        work(Path(folder))
        return time.process_time() - start


def edges(count: int) -> tuple[float, float]:
    """Seconds for `count` edges of four relations: ours, plain Python."""
    chance = np.random.default_rng(1)
    blocks = [
        (number % 4, *(chance.integers(0, NODE_COUNT, min(BLOCK, count - start)) for _ in range(2)))
        for number, start in enumerate(range(0, count, BLOCK))
    ]
    types = chance.integers(0, 4, NODE_COUNT, dtype=np.int32)

    def ours(folder: Path) -> None:
        files = EdgeFiles(folder, types)
        for relation, sources, targets in blocks:
            files.add(EdgeBlock(f"relation {relation}", sources, targets))
        files.finish()

    def plain(folder: Path) -> None:
        for relation, sources, targets in blocks:
            with (folder / f"{relation:02d}.tsv").open("a", encoding="ascii") as file:
                file.write("".join([f"{a}\t{b}\n" for a, b in zip(sources.tolist(), targets.tolist(), strict=True)]))

    return cpu_seconds(ours), cpu_seconds(plain)


def nodes(count: int) -> tuple[float, float, float]:
    """Seconds for `count` records of some 700 bytes: ours, json.dumps, ready bytes."""
    chance = random.Random(1)
    made = [
        Node(
            "paper", f"paper {i}", {"year": 2000, "text": " ".join(chance.choices(WORDS, k=80)), "tags": ["x"]}, f"P{i}"
        )
        for i in range(count)
    ]
    records = [
        {"node_id": i, "node_type": node.type, "name": node.name, "is_candidate": True, "attributes": node.attributes}
        for i, node in enumerate(made)
    ]
    ready = b"".join(map(encode, records))

    def ours(folder: Path) -> None:
        files = NodeFiles(folder, None)
        for node in made:
            files.add(node)
        files.finish(folder / "index")

    def plain(folder: Path) -> None:
        with (folder / "nodes.jsonl").open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def bytes_only(folder: Path) -> None:
        (folder / "nodes.jsonl").write_bytes(ready)

    return cpu_seconds(ours), cpu_seconds(plain), cpu_seconds(bytes_only)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=8_000_000)
    parser.add_argument("--nodes", type=int, default=200_000)
    arguments = parser.parse_args()
    edges(10_000)  # loads what is loaded at first use
    ours, plain = edges(arguments.edges)
    print(f"edges: ours {ours:.2f} s, plain Python {plain:.2f} s, ratio {plain / ours:.1f}")
    ours, plain, ready = nodes(arguments.nodes)
    print(f"nodes: ours {ours:.2f} s, json.dumps {plain:.2f} s, ratio {plain / ours:.1f}; ready bytes {ready:.2f} s")


if __name__ == "__main__":
    main()
