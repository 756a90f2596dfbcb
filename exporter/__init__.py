"""Graph sources -> files, and an export read back. Imports nothing else of this project."""

from exporter.documents import document_maker
from exporter.embedded import BiogoSources, biogo_sources
from exporter.errors import ExportError
from exporter.fault import Fault
from exporter.questions import read_questions
from exporter.read import Export
from exporter.source import Progress
from exporter.stark import export_stark
from exporter.tables import export_tables
from exporter.verify import check, check_files

__all__ = [
    "BiogoSources",
    "Export",
    "ExportError",
    "Fault",
    "Progress",
    "biogo_sources",
    "check",
    "check_files",
    "document_maker",
    "export_stark",
    "export_tables",
    "read_questions",
]
