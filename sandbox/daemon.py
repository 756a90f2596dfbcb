"""The connection to a Docker daemon, or to whatever speaks its API at DOCKER_HOST (rootless Docker, Podman)."""

from __future__ import annotations

import os
import socket

from docker import APIClient
from docker.errors import DockerException
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException

from sandbox.contract import SandboxUnavailable

FAILURES = (DockerException, RequestException)  # what a request to a daemon may raise

_ANSWER = 10  # seconds that a daemon has to say its version
_REQUEST = 120  # seconds without a byte that any later request may take


def connect() -> APIClient:
    """A client of the daemon that DOCKER_HOST names, else of the local one, after it has answered once.

    Raises SandboxUnavailable, with what to do, if none does.
    """
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    try:
        _knock(address)
        client = APIClient(**kwargs_from_env(), version="auto", timeout=_ANSWER)
    except PermissionError as error:
        raise SandboxUnavailable(
            f"this user may not use the Docker daemon at {address}",
            "use rootless Docker or Podman through DOCKER_HOST, join the group of that socket"
            " (as good as being root on this machine), or take --sandbox bwrap",
        ) from error
    except (OSError, *FAILURES, ValueError) as error:
        raise SandboxUnavailable(
            f"no Docker daemon answers at {address}",
            "start Docker, name another daemon with DOCKER_HOST (rootless Docker, Podman), or take --sandbox bwrap",
        ) from error
    client.timeout = _REQUEST
    return client


def _knock(address: str) -> None:
    """Raise the OSError that says why a Unix socket can't be used; the SDK would hide it."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_ANSWER)
            knocking.connect("/" + address.removeprefix("unix://").lstrip("/"))


def reason(error: Exception) -> str:
    """The line of a daemon's error that says what is wrong."""
    text = str(getattr(error, "explanation", None) or error).strip()
    return text.splitlines()[-1] if text else type(error).__name__
