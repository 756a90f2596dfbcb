"""The sample graph that comes with the package: in a checkout under examples/, in an installation under harness/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exporter.errors import ExportError


@dataclass(frozen=True)
class BiogoSources:
    """The input files of the BioGO sample: `export_tables(nodes, edges, out, queries=queries)`."""

    nodes: Path
    edges: Path
    queries: Path
    folder: Path


def biogo_sources() -> BiogoSources:
    """Find the sample. Raises ExportError where the package came without it."""
    top = Path(__file__).resolve().parent.parent
    for folder in (top / "examples" / "biogo", top / "harness" / "examples" / "biogo"):
        if (folder / "nodes.jsonl.gz").is_file():
            return BiogoSources(folder / "nodes.jsonl.gz", folder / "edges.tsv.gz", folder / "queries.jsonl", folder)
    raise ExportError("the BioGO sample is missing from this installation", "install the package again")
