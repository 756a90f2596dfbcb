"""A small graph and a run on it, for tests of the commands that read saved runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from tests.support.runs import attempt, make_export, make_run, write_trajectory


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def run(tmp_path: Path, export: Export) -> Path:
    """A run: q1 right, q2 right at rank 2, q3 lost, q4 not asked; q1 has a trajectory of two turns."""
    records = [attempt("q1", ids=[0, 30]), attempt("q2", ids=[30, 4]), attempt("q3", "sandbox_lost", error="gone")]
    path = make_run(tmp_path / "run", export, records).path
    write_trajectory(path)
    return path
