"""A run's configuration over the sample graph, for tests of whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from sandbox import Backend
from tests.support.running import Make, maker


@pytest.fixture
def make(biogo: Export, bwrap: Backend, tmp_path: Path) -> Make:
    """Makes a run's configuration over the sample's first questions."""
    return maker(biogo, bwrap, tmp_path / "run")
