"""Finding a daemon, and saying what is wrong when there is none."""

from __future__ import annotations

import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.contract import SandboxUnavailable
from sandbox.daemon import connect


@pytest.fixture
def other_server() -> Iterator[int]:
    """The port of a web server that is no Docker daemon."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def refused(address: str, monkeypatch: pytest.MonkeyPatch) -> SandboxUnavailable:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(SandboxUnavailable) as raised:
        connect()
    assert address in str(raised.value)
    assert "--sandbox bwrap" in raised.value.hint
    return raised.value


def test_a_socket_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(f"unix://{tmp_path}/no.sock", monkeypatch)
    assert str(error).startswith("no Docker daemon answers at ")
    assert "DOCKER_HOST" in error.hint


def test_a_socket_that_nobody_listens_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "stale.sock"))
    assert str(refused(f"unix://{tmp_path}/stale.sock", monkeypatch)).startswith("no Docker daemon answers at ")


def test_another_server(other_server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(refused(f"tcp://127.0.0.1:{other_server}", monkeypatch)).startswith("no Docker daemon answers at ")


def test_an_address_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(refused("nonsense://here", monkeypatch)).startswith("no Docker daemon answers at ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every socket")
def test_a_socket_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "theirs.sock"))
        listener.listen()
        (tmp_path / "theirs.sock").chmod(0)
        error = refused(f"unix://{tmp_path}/theirs.sock", monkeypatch)
    assert str(error).startswith("this user may not use the Docker daemon at ")
