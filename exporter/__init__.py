"""Graph sources -> files, and an export read back. Imports nothing else of this project."""

from exporter.documents import document_maker
from exporter.embedded import BiogoSources, biogo_sources
from exporter.errors import ExportError, UnwritableError
from exporter.fault import Fault
from exporter.options import Options
from exporter.questions import read_questions
from exporter.read import Export
from exporter.source import Progress
from exporter.sources import (
    export_kgx,
    export_neo4j,
    export_networkx,
    export_obo,
    export_primekg,
    export_rdf,
    export_tables,
)
from exporter.stark import export_stark
from exporter.verify import check, check_files

__all__ = [
    "BiogoSources",
    "Export",
    "ExportError",
    "Fault",
    "Options",
    "Progress",
    "UnwritableError",
    "biogo_sources",
    "check",
    "check_files",
    "document_maker",
    "export_kgx",
    "export_neo4j",
    "export_networkx",
    "export_obo",
    "export_primekg",
    "export_rdf",
    "export_stark",
    "export_tables",
    "read_questions",
]
