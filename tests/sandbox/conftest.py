"""One suite for every kind of sandbox: `backend` is each that this machine can have, found when a test asks for it.

Each comes once with all programs and once with shell tools alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, Limits, Sandbox, Spec
from sandbox.contract import MiB
from tests.support.sandboxes import ShellOnly, make_export

SHELL = "-shell"
KINDS = [name + programs for name in ("bwrap", "docker") for programs in ("", SHELL)]


@pytest.fixture(
    scope="session",
    params=[pytest.param(kind, marks=[pytest.mark.docker] if kind.startswith("docker") else []) for kind in KINDS],
)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param.removesuffix(SHELL))
    return ShellOnly(found) if request.param.endswith(SHELL) else found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests marked to need all programs for sandboxes that have shell tools alone."""

    def left_out(item: pytest.Item) -> bool:
        kind = getattr(item, "callspec", None) and item.callspec.params.get("backend")  # type: ignore[attr-defined]
        return str(kind).endswith(SHELL) and item.get_closest_marker("all_programs") is not None

    config.hook.pytest_deselected(items=[item for item in items if left_out(item)])
    items[:] = [item for item in items if not left_out(item)]


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
