"""One suite for every kind of sandbox: `backend` is each that this machine can have, found when a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, Limits, Sandbox, Spec
from sandbox.contract import MiB
from tests.support.sandboxes import make_export


@pytest.fixture(scope="session", params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_export(tmp_path_factory.mktemp("export"))


@pytest.fixture
def sandbox(backend: Backend, graph: Path) -> Iterator[Sandbox]:
    """A sandbox of the test's own, with default limits."""
    with backend.open(Spec(graph)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(backend: Backend, graph: Path) -> Iterator[Sandbox]:
    """One sandbox for the tests of a module that leave it as they found it."""
    with backend.open(Spec(graph)) as opened:
        yield opened


@pytest.fixture
def small(backend: Backend, graph: Path) -> Iterator[Sandbox]:
    """A sandbox with limits that are quickly reached: 1040 MiB of memory, 16 MiB scratch, 64 processes."""
    limits = Limits(
        memory=1040 * MiB,
        scratch=16 * MiB,
        tmp=8 * MiB,
        shm=8 * MiB,
        pids=64,
        cpu_seconds=2.0,
        file_bytes=4 * MiB,
    )
    with backend.open(Spec(graph, limits=limits)) as opened:
        yield opened
