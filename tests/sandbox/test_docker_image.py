"""The image of the Docker sandbox, built on a real daemon."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator

import pytest
from docker import APIClient

from sandbox.contract import Backend, SandboxUnavailable
from sandbox.image import REPOSITORY, Image, ensure_image
from tests.support.daemon import base_image, daemon

pytestmark = pytest.mark.docker

ENSURE = """
import sys
from sandbox.daemon import connect
from sandbox.image import ensure_image
print(ensure_image(connect(), sys.argv[1], lambda line: print("progress", line)).tag)
"""


@pytest.fixture(scope="module")
def client(docker: Backend) -> Iterator[APIClient]:
    with daemon() as client:
        yield client


@pytest.fixture
def fresh_base(client: APIClient) -> Iterator[str]:
    """A base image that nothing was built from yet: the usual one with a label of its own."""
    name = f"kgshell-test-base:{uuid.uuid4().hex[:12]}"
    dockerfile = f"FROM {client.inspect_image(base_image())['Id']}\nLABEL kgshell-test={name}\n"
    list(client.build(fileobj=io.BytesIO(dockerfile.encode()), tag=name, rm=True, decode=True))
    yield name
    base_id = client.inspect_image(name)["Id"]
    for image in client.images(name=REPOSITORY):
        if base_id in {parent["Id"] for parent in client.history(image["Id"])}:
            client.remove_image(image["Id"])
    client.remove_image(name)


def run(client: APIClient, image: Image, command: str) -> str:
    """What a command prints in a plain container of the image."""
    container = client.create_container(
        image.tag,
        ["bash", "-c", command],
        entrypoint=[],
        user="agent",
        host_config=client.create_host_config(network_mode="none"),
    )
    try:
        client.start(container)
        client.wait(container)
        return client.logs(container).decode()
    finally:
        client.remove_container(container, force=True)


def test_the_image_is_built_once_with_progress_and_found_afterwards(client: APIClient, fresh_base: str) -> None:
    lines: list[str] = []
    image = ensure_image(client, fresh_base, lines.append)
    assert lines[0] == f"building the sandbox's image {image.tag}"
    assert any("FROM" in line or "COPY" in line for line in lines)
    lines.clear()
    assert ensure_image(client, fresh_base, lines.append) == image
    assert lines == []
    assert image.base == fresh_base
    assert image.base_id == client.inspect_image(fresh_base)["Id"]


def test_another_base_makes_another_image(client: APIClient, fresh_base: str) -> None:
    assert ensure_image(client, fresh_base, print).tag != ensure_image(client, base_image(), print).tag


def test_processes_that_ask_at_once_build_once(client: APIClient, fresh_base: str) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", ENSURE, fresh_base], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate()[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len({lines[-1] for lines in outputs}) == 1
    builders = [lines for lines in outputs if any("building" in line for line in lines)]
    assert len(builders) == 1


def test_the_agent_has_python_with_the_standard_library_only_and_rg(client: APIClient) -> None:
    printed = run(
        client,
        ensure_image(client, base_image(), print),
        "export PATH=/sandbox/bin:/usr/bin:/bin; id -u; python -c 'import sys; print(sys.version_info >= (3, 11))';"
        " python3 -c 'import pip' 2>&1 | tail -n 1; python3 -c 'import json, csv, sqlite3, lzma, ctypes; print(1)';"
        " rg --version | head -n 1; stat -c %A /scratch /graph; touch /sandbox/x /usr/x 2>&1 | wc -l",
    ).splitlines()
    assert printed[:3] == ["10001", "True", "ModuleNotFoundError: No module named 'pip'"]
    assert printed[3] == "1"
    assert printed[4].startswith("ripgrep ")
    assert printed[5:] == ["drwxrwxrwt", "drwxr-xr-x", "2"]


def test_a_base_image_that_cannot_be_had_is_named_with_a_hint(client: APIClient) -> None:
    with pytest.raises(SandboxUnavailable, match="'localhost:1/no/such:image' is not on this machine") as raised:
        ensure_image(client, "localhost:1/no/such:image", lambda line: None)
    assert "HARNESS_SANDBOX_BASE" in raised.value.hint


@pytest.mark.parametrize("python", [None, "#!/bin/sh\necho Python 3.9 is too old >&2\nexit 1\n"])
def test_a_base_image_without_a_recent_python_is_refused(client: APIClient, python: str | None) -> None:
    """An image with nothing in it, and one whose python3 fails as an old one does."""
    name = f"kgshell-test-base:{uuid.uuid4().hex[:12]}"
    if python is None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("empty"))
        client.import_image_from_data(archive.getvalue(), *name.split(":"))
    else:
        script = "".join(f"\\{ord(letter):03o}" for letter in python)
        dockerfile = (
            f"FROM {client.inspect_image(base_image())['Id']}\n"
            f"RUN rm -f $(command -v python3) && printf '{script}' > /usr/bin/python3 && chmod +x /usr/bin/python3\n"
        )
        list(client.build(fileobj=io.BytesIO(dockerfile.encode()), tag=name, rm=True, decode=True, network_mode="none"))
    before = {image["Id"] for image in client.images(all=True)}
    try:
        with pytest.raises(SandboxUnavailable) as raised:
            ensure_image(client, name, lambda line: None)
        assert "HARNESS_SANDBOX_BASE" in raised.value.hint
        assert ("bash" if python is None else "Python 3.9 is too old") in str(raised.value)
    finally:
        client.remove_image(name)
    assert {image["Id"] for image in client.images(filters={"label": "kgshell=1"})} <= before
