"""The Docker daemon that tests use, and the base image that sandboxes are made from there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest
from docker import APIClient

from sandbox.contract import SandboxUnavailable
from sandbox.daemon import connect
from sandbox.docker import DockerBackend
from sandbox.image import DEFAULT_BASE


def base_image() -> str:
    return os.environ.get("HARNESS_SANDBOX_BASE") or DEFAULT_BASE


def docker_backend() -> DockerBackend:
    """The Docker sandbox; the test is skipped where there is none, or fails where HARNESS_REQUIRE_DOCKER is set."""
    try:
        return DockerBackend(notice=lambda line: None)
    except SandboxUnavailable as error:
        if os.environ.get("HARNESS_REQUIRE_DOCKER"):
            pytest.fail(f"Docker is required here: {error}")
        pytest.skip(f"no Docker sandbox: {error}")


@contextlib.contextmanager
def daemon() -> Iterator[APIClient]:
    """The daemon itself, to look at containers and images from outside."""
    client = connect()
    try:
        yield client
    finally:
        client.close()
