"""What the Docker sandbox does beyond the contract that every sandbox keeps: containers on a real daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pexpect
import pytest
from docker import APIClient

from sandbox import Backend, Limits, SandboxLost, SandboxUnavailable, Spec, choose, clean, leftovers
from tests.support.daemon import base_image, daemon
from tests.support.waiting import wait_until

pytestmark = pytest.mark.docker

# A harness of its own: opens a sandbox labelled argv[1], says so once a command runs in it, and waits for that.
HARNESS = """
import signal, sys, threading, time
from sandbox import Spec, choose
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests were started with
with choose("docker").open(Spec(graph=None, labels={"attempt": sys.argv[1]})) as sandbox:
    call = threading.Thread(target=sandbox.exec, args=("sleep 1000", 1000, 100), daemon=True)
    call.start()
    while not sandbox.memory:
        time.sleep(0.01)
    print("running", flush=True)
    call.join()
"""

# A harness that dies between making a container and starting it.
HALF_OPEN = """
import os, signal, sys
from sandbox.daemon import connect
from sandbox.owner import labels
attempt, image = sys.argv[1:]
connect().create_container(image, ["true"], name=f"kgshell-test-{attempt}", labels=labels({"attempt": attempt}))
os.kill(os.getpid(), signal.SIGKILL)
"""

SHELL = """
import sys
from sandbox import Spec, choose
sys.exit(choose("docker").shell(Spec(graph=None)).code)
"""


@pytest.fixture(scope="module")
def client(docker: Backend) -> Iterator[APIClient]:
    with daemon() as client:
        yield client


@pytest.fixture
def attempt() -> str:
    return uuid.uuid4().hex


def containers(client: APIClient, attempt: str) -> list[str]:
    return [found["Id"] for found in client.containers(all=True, filters={"label": f"kgshell.attempt={attempt}"})]


@pytest.fixture
def calling(docker: Backend, client: APIClient, attempt: str) -> Iterator[tuple[Any, str, list[BaseException]]]:
    """(sandbox, container, errors) while a thread waits for a command in the sandbox; the errors are that call's."""
    errors: list[BaseException] = []
    sandbox = docker.open(Spec(graph=None, labels={"attempt": attempt}))

    def call() -> None:
        try:
            sandbox.exec("sleep 1000", 1000, 100)
        except SandboxLost as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    try:
        thread.start()
        wait_until(lambda: sandbox.memory)  # which comes with a sign of life while the command runs
        (container,) = containers(client, attempt)
        yield sandbox, container, errors
    finally:
        sandbox.close()
        thread.join()


def test_a_container_killed_in_mid_call_is_a_lost_sandbox(
    calling: tuple[Any, str, list[BaseException]], client: APIClient, attempt: str
) -> None:
    sandbox, container, errors = calling
    client.kill(container)
    wait_until(lambda: errors)
    with pytest.raises(SandboxLost):
        sandbox.exec("true", 10, 100)
    sandbox.close()
    sandbox.close()
    wait_until(lambda: not containers(client, attempt))


def test_closing_from_another_thread_ends_the_call(
    calling: tuple[Any, str, list[BaseException]], client: APIClient, attempt: str
) -> None:
    sandbox, _, errors = calling
    sandbox.close()
    wait_until(lambda: errors)
    wait_until(lambda: not containers(client, attempt))


def test_a_frozen_container_is_removed_by_force(
    calling: tuple[Any, str, list[BaseException]], client: APIClient, attempt: str
) -> None:
    sandbox, container, _ = calling
    client.pause(container)
    sandbox.close()
    wait_until(lambda: not containers(client, attempt))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_harness_that_dies_leaves_no_container(client: APIClient, attempt: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, attempt], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "running\n"
        assert len(containers(client, attempt)) == 1
        harness.send_signal(number)
    wait_until(lambda: not containers(client, attempt))


def test_closing_leaves_no_container(docker: Backend, client: APIClient, attempt: str) -> None:
    with docker.open(Spec(graph=None, labels={"attempt": attempt})) as sandbox:
        assert sandbox.exec("echo here", 10, 100).head == b"here\n"
        assert len(containers(client, attempt)) == 1
    wait_until(lambda: not containers(client, attempt))


def test_a_container_that_cannot_start_is_removed(docker: Backend, client: APIClient, attempt: str) -> None:
    impossible = Limits(scratch=-1)
    with pytest.raises(SandboxLost, match="the container can't be opened"):
        docker.open(Spec(graph=None, limits=impossible, labels={"attempt": attempt}))
    assert containers(client, attempt) == []


def test_sandboxes_open_at_the_same_time_are_separate(docker: Backend, client: APIClient, attempt: str) -> None:
    def visit(number: int) -> bytes:
        with docker.open(Spec(graph=None, labels={"attempt": attempt})) as sandbox:
            sandbox.write("mine", str(number).encode())
            return sandbox.exec("cat mine; ls | wc -l", 60, 100).head

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(visit, range(16))) == [f"{number}1\n".encode() for number in range(16)]
    wait_until(lambda: not containers(client, attempt))


def test_the_container_is_made_as_narrow_as_can_be(
    docker: Backend, client: APIClient, attempt: str, tmp_path: Path
) -> None:
    limits = Limits(pids=50, cpus=0.5)
    tmp_path.chmod(0o755)
    with docker.open(Spec(graph=tmp_path, limits=limits, labels={"attempt": attempt})):
        (container,) = containers(client, attempt)
        found = client.inspect_container(container)
    host = found["HostConfig"]
    assert found["Config"]["User"] == "10001:10001"
    assert found["Config"]["StdinOnce"]
    assert host["CapDrop"] == ["ALL"]
    assert host["CapAdd"] in (None, [])
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["ReadonlyRootfs"] and host["AutoRemove"] and not host["Privileged"]
    assert host["NetworkMode"] == "none"
    assert (host["Memory"], host["MemorySwap"]) == (limits.memory, limits.memory)
    assert (host["PidsLimit"], host["NanoCpus"]) == (51, 500_000_000)
    assert host["LogConfig"]["Type"] == "none"
    binds = [
        (mount["Source"], mount["Destination"], mount["RW"]) for mount in found["Mounts"] if mount["Type"] == "bind"
    ]
    assert binds == [(str(tmp_path), "/graph", False)]


def test_a_graph_may_lie_in_a_folder_of_any_name(docker: Backend, tmp_path: Path) -> None:
    graph = tmp_path / 'a:b,c "d"=\u00e9 \n'
    graph.mkdir()
    (graph / "node").write_text("42", encoding="ascii")
    with docker.open(Spec(graph=graph)) as sandbox:
        assert sandbox.read("/graph/node", 0, 10).data == b"42"


def test_a_graph_that_only_its_owner_may_read_is_refused_with_what_to_do(docker: Backend, tmp_path: Path) -> None:
    (tmp_path / "node").write_text("42", encoding="ascii")
    tmp_path.chmod(0o755)
    (tmp_path / "node").chmod(0o600)
    with pytest.raises(SandboxUnavailable, match="node' is closed to other users") as raised:
        docker.open(Spec(graph=tmp_path))
    assert raised.value.hint == f"chmod -R o+rX '{tmp_path}'"
    with pytest.raises(SandboxUnavailable, match="can't be read: No such file"):
        docker.open(Spec(graph=tmp_path / "gone"))


def test_what_a_manifest_records(docker: Backend) -> None:
    about = docker.describe()
    assert about["kind"] == "docker"
    assert about["base"] == base_image()
    assert str(about["image"]).startswith("kgshell-sandbox:")
    assert str(about["python"]).split(".") >= ["3", "11"]
    assert set(about["limits"]) <= {"memory", "pids", "cpus"}  # type: ignore[call-overload]


def test_auto_takes_docker_where_a_daemon_answers(docker: Backend) -> None:
    notices: list[str] = []
    assert choose("auto", notice=notices.append).kind == "docker"
    assert notices == []


def test_auto_says_why_it_does_not_take_docker(
    docker: Backend, bwrap: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[str] = []
    assert choose("auto", base="localhost:1/no/such:image", notice=notices.append).kind == "bwrap"
    assert "localhost:1/no/such:image" in notices[-1]
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    assert choose("auto", notice=notices.append).kind == "bwrap"
    assert "no Docker daemon answers" in notices[-1]


def test_a_container_that_was_never_started_is_found_and_cleaned(client: APIClient, attempt: str) -> None:
    died = subprocess.run([sys.executable, "-c", HALF_OPEN, attempt, base_image()], check=False)
    assert died.returncode == -signal.SIGKILL
    (orphan,) = [found for found in leftovers() if found.labels["attempt"] == attempt]
    assert orphan.name == f"kgshell-test-{attempt}"
    assert clean([orphan]) == 1
    assert clean([orphan]) == 0
    assert containers(client, attempt) == []


def test_a_living_harness_keeps_its_containers(docker: Backend, attempt: str) -> None:
    with docker.open(Spec(graph=None, labels={"attempt": attempt})):
        assert [found for found in leftovers() if found.labels.get("attempt") == attempt] == []


def test_without_a_daemon_nothing_is_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    assert leftovers() == []


def test_a_person_gets_a_shell(docker: Backend) -> None:
    child = pexpect.spawn(sys.executable, ["-c", SHELL], env={**os.environ, "TERM": "dumb"}, timeout=60)
    child.expect_exact("sandbox:")
    child.sendline("echo $((40 + 2)) on $(tty); id -u")
    child.expect(r"42 on /dev/pts/\d+\r\n10001")
    child.sendline("exit 3")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3
