"""The Docker daemon that tests use, and the base image that sandboxes are made from there."""

from __future__ import annotations

import os

import pytest
from docker import APIClient

from sandbox.contract import SandboxUnavailable
from sandbox.daemon import connect
from sandbox.image import DEFAULT_BASE, Image, ensure_image


def base_image() -> str:
    return os.environ.get("HARNESS_SANDBOX_BASE") or DEFAULT_BASE


def docker_or_skip() -> tuple[APIClient, Image]:
    """A client, to be closed, and the sandbox's image. Where HARNESS_REQUIRE_DOCKER is set, none is a failure."""
    try:
        client = connect()
        try:
            return client, ensure_image(client, base_image(), lambda line: None)
        except SandboxUnavailable:
            client.close()
            raise
    except SandboxUnavailable as error:
        if os.environ.get("HARNESS_REQUIRE_DOCKER"):
            pytest.fail(f"Docker is required here: {error}")
        pytest.skip(f"no Docker sandbox: {error}")
