"""STaRK's three graphs (Amazon, MAG, Prime) in their on-disk form, https://huggingface.co/datasets/snap-stanford/stark.

docs/stark.md says what is read, what becomes of missing values, and how the documents' text differs from STaRK's.
"""

from exporter.stark.dataset import Dataset
from exporter.stark.datasets import DATASETS
from exporter.stark.difference import difference
from exporter.stark.export import export_stark
from exporter.stark.places import Place, find
from exporter.stark.reader import READER

__all__ = ["DATASETS", "READER", "Dataset", "Place", "difference", "export_stark", "find"]
