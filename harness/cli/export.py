"""`harness export`: graph sources to files, a subcommand for each source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from exporter import (
    Export,
    Options,
    export_kgx,
    export_neo4j,
    export_networkx,
    export_obo,
    export_primekg,
    export_rdf,
    export_stark,
    export_tables,
)
from exporter.stark import DATASETS, find
from harness import stark as stark_data
from harness.cli.file_progress import file_progress
from harness.cli.options import Names, Pairs, data_dir_option
from harness.cli.output import notice
from harness.errors import UserError
from harness.graphs import data_directory
from harness.text import count_of

F = TypeVar("F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_SHARED: tuple[Callable[[Any], Any], ...] = (
    click.option("--out", required=True, type=_PATH, help="The folder to make."),
    click.option("--queries", type=_PATH, help="Questions that come with the graph (JSONL, CSV or TSV)."),
    click.option("--candidates", type=Names(), metavar="TYPE,...", help="Node types that may be answers."),
    click.option(
        "--no-index",
        "index",
        flag_value=False,
        default=True,
        help="Leave the index of neighbours and texts to the first run that searches it.",
    ),
)
_NAME = click.option("--name", help="What to call the graph. Default: the folder's name.")
_SKIP = click.option(
    "--skip-bad-rows",
    "on_bad_row",
    flag_value="skip",
    default="stop",
    help="Leave out rows that are wrong instead of stopping at the first.",
)


def _shared(*more: Callable[[Any], Any]) -> Callable[[F], F]:
    """The flags that every source has, and `more`."""

    def add(command: F) -> F:
        for option in reversed((*_SHARED, *more)):
            command = option(command)
        return command

    return add


def _export(make: Callable[[Options], Export], out: Path, **options: Any) -> None:
    """Make an export and say what came of it. `options` are the shared flags."""
    with file_progress() as progress:
        export = make(Options(progress=progress, **options))
    source = export.manifest["source"]
    for why, count in source.get("skipped", {}).items():
        notice(f"left out {count_of(count, 'row')}: {why}")
    for row in source.get("left_out", ()):
        notice(f"{row['file']}: line {row['line']}: {row['why']}" if row["line"] else f"{row['file']}: {row['why']}")
    for warning in source.get("warnings", ()):
        notice(warning)
    click.echo(f"{out}: {count_of(export.node_count, 'node')}, {count_of(export.schema['edges'], 'edge')}")


@click.group()
def command() -> None:
    """Turn a graph's sources into the files that an agent reads.

    The export appears whole or not at all. Tables and texts may be gzipped.
    """


@command.command()
@click.argument("nodes", type=_PATH)
@click.argument("edges", type=_PATH)
@click.option(
    "--columns",
    type=Pairs(),
    metavar="COLUMN=NAME,...",
    help="What id, type, name, source, relation and target are called in the tables, where it is otherwise.",
)
@_shared(_NAME, _SKIP)
def tables(nodes: Path, edges: Path, out: Path, columns: dict[str, str] | None, **options: Any) -> None:
    """Export a graph given as a table of nodes and a table of edges.

    NODES is JSONL, CSV, TSV or Parquet with the columns id, type, name and any others, which become attributes. EDGES
    is CSV, TSV or Parquet with source, relation, target and any others, which become edge attributes.

    \b
    Example:
      $ harness export tables nodes.jsonl edges.tsv --out mygraph
      $ harness export tables genes.parquet links.csv --columns id=gene_id,source=from,target=to --out genes
      $ harness run --graph ./mygraph --mode files --queries questions.jsonl
    """

    def make(shared: Options) -> Export:
        return export_tables(
            nodes,
            edges,
            out,
            columns=columns,
            queries=shared.queries,
            candidates=None if shared.candidates is None else list(shared.candidates),
            name=shared.name,
            on_bad_row=shared.on_bad_row,
            index=shared.index,
            progress=shared.progress,
        )

    _export(make, out, **options)


@command.command()
@click.argument("graph", type=click.Choice(list(DATASETS)))
@click.argument("folder", type=_PATH, required=False)
@_shared(data_dir_option)
def stark(graph: str, folder: Path | None, out: Path, data_dir: Path | None, **options: Any) -> None:
    """Export one of STaRK's graphs, with its questions.

    FOLDER holds it as the dataset repository does (skb/GRAPH/processed.zip and qa/GRAPH), or as STaRK lays it out.
    Without FOLDER it is looked for where `harness run --graph GRAPH` does, and downloaded where it isn't there.

    \b
    Example:
      $ harness export stark prime ~/stark --out prime
    """
    if folder is None:
        place = stark_data.fetch(graph, data_directory(data_dir), notice)
    else:
        found = find(DATASETS[graph], folder)
        if found is None:
            raise UserError(
                f"there is no graph '{graph}' in {folder}",
                f"put skb/{graph}/processed.zip and qa/{graph} of the dataset repository there",
            )
        place = found

    def make(shared: Options) -> Export:
        return export_stark(
            graph,
            place,
            out,
            queries=shared.queries,
            candidates=shared.candidates,
            index=shared.index,
            progress=shared.progress,
        )

    _export(make, out, **options)


@command.command()
@click.argument("edges", type=_PATH)
@click.argument("tables", type=_PATH, nargs=-1)
@_shared(_NAME, _SKIP)
def primekg(edges: Path, tables: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Export PrimeKG, or a graph in its form.

    EDGES is kg.csv: relation, display_relation, and index, id, type, name and source of either end. TABLES hold further
    attributes of nodes, which node_index names. Relations are called by display_relation; relation is an attribute of
    the edges. Questions name nodes by their index.

    \b
    Example:
      $ harness export primekg kg.csv drug_features.csv disease_features.csv --out primekg
    """
    _export(lambda shared: export_primekg(edges, tables, out, shared), out, **options)


@command.command()
@click.argument("nodes", type=_PATH)
@click.argument("edges", type=_PATH)
@_shared(_NAME, _SKIP)
def kgx(nodes: Path, edges: Path, out: Path, **options: Any) -> None:
    """Export a graph in the Knowledge Graph Exchange format.

    NODES (id, category, name, ...) and EDGES (subject, predicate, object, ...) are TSV or JSONL. A node's type is its
    first category.

    \b
    Example:
      $ harness export kgx nodes.tsv edges.tsv --out mygraph
    """
    _export(lambda shared: export_kgx(nodes, edges, out, shared), out, **options)


@command.command()
@click.argument("files", nargs=-1, required=True, metavar="[LABEL=|TYPE=]FILE[,FILE...]...")
@click.option("--delimiter", default=",", show_default=True, help="Between columns; `tab` for a tab.")
@click.option("--array-delimiter", default=";", show_default=True, help="Between the items of an array.")
@_shared(_NAME, _SKIP)
def neo4j(files: tuple[str, ...], delimiter: str, array_delimiter: str, out: Path, **options: Any) -> None:
    """Export the CSV files of a Neo4j import.

    Which files hold nodes (:ID) and which relationships (:START_ID, :END_ID) is told by their headers; a header may be
    a file of its own before those with the rows. A node's type is its first label, a relationship's relation its type.

    \b
    Example:
      $ harness export neo4j people.csv Film=films-header.csv,films.csv ACTED_IN=roles.csv --out films
    """
    between = "\t" if delimiter.lower() == "tab" else delimiter
    _export(
        lambda shared: export_neo4j(files, out, shared, delimiter=between, array_delimiter=array_delimiter),
        out,
        **options,
    )


@command.command()
@click.argument("file", type=_PATH)
@click.option(
    "--names",
    type=Pairs(),
    metavar="WHAT=ATTRIBUTE,...",
    help="The attributes that hold a node's type and name and an edge's relation, where it isn't a usual one.",
)
@_shared(_NAME, _SKIP)
def networkx(file: Path, names: dict[str, str] | None, out: Path, **options: Any) -> None:
    """Export a graph that networkx or a tool like it wrote.

    FILE is GraphML, or node-link JSON where its name ends with .json. A node's type is its attribute type, node_type,
    labels, labelV, category or kind, its name the attribute name or title. The attribute label is its name where it has
    no other, and its type where it has a name and no other type. An edge's relation is relation, type, label,
    predicate, edge_type, or a multigraph's key. The first that is there counts, and all are kept as attributes.

    \b
    Example:
      $ harness export networkx graph.graphml --names type=class,relation=verb --out mygraph
    """
    _export(lambda shared: export_networkx(file, out, shared, names=names), out, **options)


@command.command()
@click.argument("files", type=_PATH, nargs=-1, required=True)
@_shared(_NAME, _SKIP)
def obo(files: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Export ontologies in OBO format, as one graph.

    Terms are nodes, whose type is their namespace; is_a and relationships are edges. Needs the extra obo.

    \b
    Example:
      $ harness export obo go.obo --out go
    """
    _export(lambda shared: export_obo(files, out, shared), out, **options)


@command.command()
@click.argument("files", type=_PATH, nargs=-1, required=True)
@_shared(_NAME, _SKIP)
def rdf(files: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Export RDF files (N-Triples .nt, Turtle .ttl), as one graph.

    Resources are nodes, triples between them edges; rdf:type is a node's type, rdfs:label its name, other literals are
    attributes. Needs the extra rdf.

    \b
    Example:
      $ harness export rdf dump.nt.gz --out mygraph
    """
    _export(lambda shared: export_rdf(files, out, shared), out, **options)
