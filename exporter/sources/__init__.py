"""Where graphs come from: one module for each format, each with an `export_...` function."""

from exporter.sources.kgx import export_kgx
from exporter.sources.neo4j import export_neo4j
from exporter.sources.networkx import export_networkx
from exporter.sources.obo import export_obo
from exporter.sources.primekg import export_primekg
from exporter.sources.rdf import export_rdf
from exporter.sources.tables import export_tables

__all__ = [
    "export_kgx",
    "export_neo4j",
    "export_networkx",
    "export_obo",
    "export_primekg",
    "export_rdf",
    "export_tables",
]
