"""CPU time of the export's writers against plain Python that writes the same files. The ratios bind.

Edges: arrays of node ids to TSV, against the fastest loop that plain Python has (f-strings over lists, joined in
blocks); and the whole of what an export does with them: sorted, tested for symmetry, counted by type, and the index of
neighbours in both directions, all of it hashed, in a process of its own whose memory is measured. Nodes: records to
JSON lines, against json.dumps line by line and against writing ready bytes; and with the statistics, index and hashes
of an export.

    python -m bench.export [--edges 39800000] [--nodes 200000]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from exporter.edge_blocks import Ids
from exporter.edge_files import EdgeFiles, write_rows
from exporter.index.adjacency import Adjacency
from exporter.index.build_adjacency import build_adjacency
from exporter.node_files import NodeFiles, encode
from exporter.sealed import seal
from exporter.source import EdgeBlock, Node

BLOCK = 1_000_000
EDGES = 39_800_000  # MAG's in both directions
NODE_COUNT = 1_870_000  # of MAG's size, so that ids have as many digits
WORDS = [f"{stem}{ending}" for stem in ("graph", "node", "protein", "café", "reaction") for ending in ("", "s", "ing")]


def cpu_seconds(work: Callable[[Path], None]) -> float:
    """CPU time of `work` in an empty folder, all threads together."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        work(Path(folder))
        return time.process_time() - start


def random_edges(count: int) -> Iterator[Ids]:
    """Four relations of `count` edges together, each an array of two rows."""
    chance = np.random.default_rng(1)
    for number in range(4):
        yield chance.integers(0, NODE_COUNT, (2, count // 4 + (number < count % 4)))


def edges(count: int) -> dict[str, float]:
    """Seconds for `count` edges of four relations."""
    relations = list(random_edges(count))

    def ours(folder: Path) -> None:
        for number, (sources, targets) in enumerate(relations):
            with (folder / f"{number:02d}.tsv").open("wb", buffering=0) as file:
                for start in range(0, len(sources), BLOCK):
                    write_rows(sources[start : start + BLOCK], targets[start : start + BLOCK], None, file)

    def plain(folder: Path) -> None:
        for number, (sources, targets) in enumerate(relations):
            with (folder / f"{number:02d}.tsv").open("w", encoding="ascii") as file:
                for start in range(0, len(sources), BLOCK):
                    rows = slice(start, start + BLOCK)
                    pairs = zip(sources[rows].tolist(), targets[rows].tolist(), strict=True)
                    file.write("".join([f"{a}\t{b}\n" for a, b in pairs]))

    return {name: cpu_seconds(work) for name, work in (("ours", ours), ("plain", plain))}


def export_edges(given: Path) -> dict[str, float]:
    """CPU seconds for the edge files and the adjacency of the relations saved in `given`, and GB of memory at the peak.

    That counts the pages of the relation that is mapped at the moment, as of the tensors that STaRK's edges come in.
    """
    types = np.random.default_rng(1).integers(0, 4, NODE_COUNT, dtype=np.uint8)
    spent = {}

    def files(folder: Path) -> None:
        edge_files = EdgeFiles(folder, types)
        for path in sorted(given.iterdir()):
            sources, targets = np.load(path, mmap_mode="r")
            edge_files.add(EdgeBlock(path.stem, np.array(sources), np.array(targets), whole=True))
        edge_files.finish()
        spent["files"] = time.process_time()
        schema = {"nodes": NODE_COUNT, "relations": edge_files.relations(["a", "b", "c", "d"])}
        index = folder / "adjacency"
        index.mkdir()
        build_adjacency(folder, schema, index)
        seal(index)
        adjacency = Adjacency(index)
        found = sum(len(adjacency.neighbors(node)) for node in range(0, NODE_COUNT, NODE_COUNT // 1000))
        assert found > 0

    start = time.process_time()
    spent["all"] = cpu_seconds(files)
    spent["files"] -= start
    spent["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return spent


def edges_with_adjacency(count: int) -> dict[str, float]:
    """`export_edges` of `count` edges, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for number, ends in enumerate(random_edges(count)):
            np.save(Path(folder) / f"{number}.npy", ends)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(export_edges, (Path(folder),))


def nodes(count: int) -> dict[str, float]:
    """Seconds for `count` records of some 700 bytes."""
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
    ready = list(map(encode, records))

    def ours(folder: Path) -> None:
        with (folder / "nodes.jsonl").open("wb") as file:
            for record in records:
                file.write(encode(record))

    def plain(folder: Path) -> None:
        with (folder / "nodes.jsonl").open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def bytes_only(folder: Path) -> None:
        with (folder / "nodes.jsonl").open("wb") as file:
            for line in ready:
                file.write(line)

    def whole_export(folder: Path) -> None:
        files = NodeFiles(folder, None)
        for node in made:
            files.add(node)
        files.finish(folder)

    works = (("ours", ours), ("plain", plain), ("ready", bytes_only), ("export", whole_export))
    return {name: cpu_seconds(work) for name, work in works}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--nodes", type=int, default=200_000)
    arguments = parser.parse_args()
    edges(10_000)  # loads what is loaded at first use
    spent = edges_with_adjacency(arguments.edges)
    wanted = " (at most 10 s and 1 GB wanted)" if arguments.edges == EDGES else ""
    print(
        f"{arguments.edges:,} edges sorted, written, with adjacency: {spent['all']:.2f} s, {spent['files']:.2f} s of"
        f" them the files; {spent['peak']:.2f} GB at its peak{wanted}"
    )
    spent = edges(arguments.edges)
    print(
        f"edges: TSV {spent['ours']:.2f} s, plain Python {spent['plain']:.2f} s: {spent['plain'] / spent['ours']:.1f}"
        f" times (at least 8 wanted)"
    )
    spent = nodes(arguments.nodes)
    print(
        f"nodes: JSON {spent['ours']:.2f} s, json.dumps {spent['plain']:.2f} s: {spent['plain'] / spent['ours']:.1f}"
        f" times (at least 3 wanted); ready bytes {spent['ready']:.2f} s: {spent['ours'] / spent['ready']:.1f} times"
        f" (at most 2 wanted); all of an export {spent['export']:.2f} s"
    )


if __name__ == "__main__":
    main()
