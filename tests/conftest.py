"""Fixtures that many tests share: the sample graph as an export, and a sandbox that needs no daemon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from exporter import Export, biogo_sources, export_tables
from sandbox import Backend, SandboxUnavailable
from tests.support.daemon import docker_backend

settings.register_profile("repository", database=None)  # the checkout may be read-only
settings.load_profile("repository")

settings.register_profile("untimed", deadline=None)  # on a loaded machine an example may take long
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def biogo(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """The sample graph, exported once for all tests."""
    sources = biogo_sources()
    out: Path = tmp_path_factory.mktemp("graphs") / "biogo"
    return export_tables(sources.nodes, sources.edges, out, queries=sources.queries, name="biogo")


@pytest.fixture(scope="session")
def bwrap() -> Backend:
    """The bubblewrap sandbox; tests that need it are skipped where the machine forbids it."""
    from sandbox import choose

    try:
        return choose("bwrap")
    except SandboxUnavailable as error:
        pytest.skip(f"no bwrap here: {error}")


@pytest.fixture(scope="session")
def docker() -> Backend:
    """The Docker sandbox; tests that need it are skipped without a daemon, unless HARNESS_REQUIRE_DOCKER is set."""
    return docker_backend()
