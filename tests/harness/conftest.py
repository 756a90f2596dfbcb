"""What tests of whole runs share: a configuration over the sample graph, and the isolation probe's findings."""

from __future__ import annotations

from pathlib import Path

import pytest

import sandbox
from exporter import Export
from sandbox import Backend
from tests.support.probing import ProbedOnce
from tests.support.running import Make, maker


@pytest.fixture(scope="session")
def probed() -> ProbedOnce:
    """The probe with its memory, one for all tests of this process."""
    return ProbedOnce(sandbox.probe)


@pytest.fixture(autouse=True)
def _probed_once(probed: ProbedOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "probe", probed)


@pytest.fixture
def make(biogo: Export, bwrap: Backend, tmp_path: Path) -> Make:
    """Makes a run's configuration over the sample's first questions."""
    return maker(biogo, bwrap, tmp_path / "run")
