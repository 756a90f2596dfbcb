"""Peak memory of exports from sources that stream: it must not grow with the number of edges.

    python -m bench.streaming [--nodes 100000] [--edges 2000000] [--source tables|parquet|kgx|neo4j|rdf]

The same nodes are exported with so many edges and with four times as many, each in a process of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from bench.stark import measured

Words = list[str]


def ends(nodes: int, edges: int) -> pl.DataFrame:
    chance = np.random.default_rng(1)
    return pl.DataFrame({side: chance.integers(0, nodes, edges) for side in ("source", "target")})


def tables(folder: Path, nodes: int, edges: int) -> Words:
    node_table(nodes, "id", "type").write_csv(folder / "nodes.tsv", separator="\t")
    relations = ends(nodes, edges).with_columns(relation=pl.lit("cites"), weight=pl.lit("0.5"))
    relations.write_csv(folder / "edges.tsv", separator="\t")
    return ["tables", str(folder / "nodes.tsv"), str(folder / "edges.tsv")]


def parquet(folder: Path, nodes: int, edges: int) -> Words:
    node_table(nodes, "id", "type").write_parquet(folder / "nodes.parquet")
    ends(nodes, edges).with_columns(relation=pl.lit("cites")).write_parquet(folder / "edges.parquet")
    return ["tables", str(folder / "nodes.parquet"), str(folder / "edges.parquet")]


def kgx(folder: Path, nodes: int, edges: int) -> Words:
    node_table(nodes, "id", "category").with_columns(pl.col("id").cast(pl.String)).write_ndjson(folder / "nodes.jsonl")
    links = ends(nodes, edges).select(
        subject=pl.col("source").cast(pl.String), predicate=pl.lit("p"), object=pl.col("target").cast(pl.String)
    )
    links.write_ndjson(folder / "edges.jsonl")
    return ["kgx", str(folder / "nodes.jsonl"), str(folder / "edges.jsonl")]


def neo4j(folder: Path, nodes: int, edges: int) -> Words:
    node_table(nodes, ":ID", ":LABEL").write_csv(folder / "nodes.csv")
    links = ends(nodes, edges).rename({"source": ":START_ID", "target": ":END_ID"})
    links.with_columns(pl.lit("CITES").alias(":TYPE")).write_csv(folder / "edges.csv")
    return ["neo4j", str(folder / "nodes.csv"), str(folder / "edges.csv")]


def rdf(folder: Path, nodes: int, edges: int) -> Words:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    with (folder / "graph.nt").open("w", encoding="ascii") as file:
        file.writelines(f'<http://example.org/{n}> {label} "node {n}" .\n' for n in range(nodes))
        for source, target in ends(nodes, edges).iter_rows():
            file.write(f"<http://example.org/{source}> <http://example.org/cites> <http://example.org/{target}> .\n")
    return ["rdf", str(folder / "graph.nt")]


def node_table(nodes: int, identity: str, kind: str) -> pl.DataFrame:
    frame = pl.DataFrame({identity: range(nodes), kind: ["paper"] * nodes})
    return frame.with_columns(name=pl.format("node {}", identity), text=pl.lit("some text of a node"))


SOURCES: dict[str, Callable[[Path, int, int], Words]] = {
    "tables": tables,
    "parquet": parquet,
    "kgx": kgx,
    "neo4j": neo4j,
    "rdf": rdf,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--source", choices=SOURCES)
    arguments = parser.parse_args()
    for name, make in SOURCES.items():
        if arguments.source not in (None, name):
            continue
        peaks = []
        for times in (1, 4):
            with tempfile.TemporaryDirectory() as folder:
                words = make(Path(folder), arguments.nodes, arguments.edges * times)
                spent = measured("export", *words, "--out", str(Path(folder) / "out"))
            peaks.append(spent.peak)
            print(f"{name} x {times}: {spent.cpu:.1f} s of CPU, {spent.peak / 1e6:,.0f} MB at its peak")
        print(f"{name}: {peaks[1] / peaks[0]:.2f} times the memory for 4 times the edges (about 1 wanted)")


if __name__ == "__main__":
    main()
