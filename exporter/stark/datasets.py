"""STaRK's graphs by name."""

from __future__ import annotations

from exporter.stark.amazon import AMAZON
from exporter.stark.dataset import Dataset
from exporter.stark.mag import MAG
from exporter.stark.prime import PRIME

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in (PRIME, MAG, AMAZON)}
