"""What is shown of the host one by one, and a socket of the harness that is reached through it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, SandboxError, Spec
from sandbox.sockets import listening
from tests.support.sandboxes import NODE, run, still_works, text

CALLS = 10_000

# Calls the harness argv[1] times, each with a number that must come back, and then says so.
CALLER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as harness:
    harness.connect("/attempt/harness.sock")
    with harness.makefile("rwb") as stream:
        for number in range(int(sys.argv[1])):
            stream.write(b'{"id": %d, "text": "x"}\\n' % number)
            stream.flush()
            assert stream.readline() == b"%d\\n" % number
print("answered")
"""


@pytest.fixture
def parts(tmp_path: Path, graph: Path) -> dict[str, Path]:
    """A graph's files from different places, its edges nowhere."""
    schema = tmp_path / "schema.json"
    schema.write_text('{"relations":[]}', encoding="utf-8")
    schema.chmod(0o644)
    return {
        "/graph/nodes": graph / "nodes",
        "/graph/schema.json": schema,
        "/graph/DATA_FORMAT.txt": graph / "DATA_FORMAT.txt",
    }


def test_a_graph_made_of_parts(backend: Backend, parts: dict[str, Path]) -> None:
    with backend.open(Spec(None, mounts=parts)) as sandbox:
        assert text(sandbox, "find /graph | sort") == (
            "/graph\n/graph/DATA_FORMAT.txt\n/graph/nodes\n/graph/nodes/0000.jsonl\n/graph/schema.json\n"
        )
        assert text(sandbox, "cat /graph/nodes/0000.jsonl /graph/schema.json") == NODE + '\n{"relations":[]}'
        assert sandbox.read("/graph/schema.json", 0, 100).size == 16
        assert text(sandbox, "cd /graph/nodes/.. && pwd") == "/graph\n"


@pytest.mark.parametrize(
    "command",
    [
        "mkdir /graph/edges",
        "touch /graph/new",
        "touch /graph/nodes/new",
        "echo x >> /graph/schema.json",
        "rm -f /graph/schema.json",
        "mv /graph/schema.json /graph/other",
        "chmod 777 /graph/schema.json",
        "umount /graph/nodes",
        "mount -o remount,rw /graph/nodes",
    ],
)
def test_a_mount_cannot_be_changed(backend: Backend, parts: dict[str, Path], command: str) -> None:
    with backend.open(Spec(None, mounts=parts)) as sandbox:
        assert run(sandbox, command).exit_code != 0
        assert text(sandbox, "cat /graph/schema.json") == '{"relations":[]}'
    assert parts["/graph/schema.json"].read_text() == '{"relations":[]}'


def test_mounts_beside_a_graph(backend: Backend, graph: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a b\n'\"$é"
    folder.mkdir(mode=0o755)
    (folder / "file").write_text("content", encoding="utf-8")
    mounts = {"/attempt": folder, "/other/deep/file": folder / "file"}
    with backend.open(Spec(graph, mounts=mounts)) as sandbox:
        assert text(sandbox, "cat /attempt/file /other/deep/file; ls /graph") == (
            "contentcontentDATA_FORMAT.txt\nnodes\n"
        )
        assert text(sandbox, "stat -c %a /other /other/deep") == "755\n755\n"


def test_neither_graph_nor_mounts(backend: Backend) -> None:
    with backend.open(Spec(None)) as sandbox:
        assert text(sandbox, "find /graph 2>/dev/null | tail -n +2 | wc -l; pwd") == "0\n/scratch\n"


def test_a_program_can_be_added_to_the_search_path(backend: Backend, tmp_path: Path) -> None:
    script = tmp_path / "hello"
    script.write_text("#!/bin/bash\necho hello\n", encoding="utf-8")
    script.chmod(0o755)
    with backend.open(Spec(None, mounts={"/sandbox/bin/hello": script})) as sandbox:
        assert text(sandbox, "hello; type -p hello") == "hello\n/sandbox/bin/hello\n"


@pytest.mark.parametrize(
    "inside",
    [
        *("", "/", "graph/nodes", "/graph/../etc", "/graph/", "//graph", "/a/./b", "/a\0b"),
        *("/etc", "/usr/share/x", "/proc/1", "/dev/null", "/scratch", "/scratch/x", "/tmp/x", "/bin/rg", "/home"),
        *("/sandbox", "/sandbox/supervisor", "/sandbox/bin", "/sandbox/bin/a/b"),
    ],
)
def test_the_sandboxs_own_folders_are_no_place_for_a_mount(inside: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing can be mounted at"):
        Spec(None, mounts={inside: tmp_path})


def test_mounts_do_not_lie_in_each_other(tmp_path: Path) -> None:
    for mounts in ({"/graph": tmp_path}, {"/graph/nodes": tmp_path}, {"/a": tmp_path, "/a/b": tmp_path}):
        with pytest.raises(ValueError, match="something else is shown there"):
            Spec(tmp_path, mounts=mounts)
    assert set(Spec(tmp_path, mounts={"/graphs": tmp_path, "/graph.txt": tmp_path}).shown) == {
        *("/graph", "/graphs", "/graph.txt")
    }


def test_a_mount_that_is_not_there(backend: Backend, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"can't be read|isn't there"):
        backend.open(Spec(None, mounts={"/attempt": tmp_path / "nowhere"}))


# A socket of the harness


@pytest.fixture
def harness() -> Iterator[tuple[Path, list[bytes]]]:
    """(folder, requests): answers each request, a line of JSON with an id, by a line with that id."""
    requests: list[bytes] = []
    with listening("harness.sock") as (folder, server):

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, connection.makefile("rwb") as stream:
                    for line in stream:
                        requests.append(line)
                        stream.write(b"%d\n" % json.loads(line)["id"])
                        stream.flush()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield folder, requests
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.all_programs
def test_a_socket_is_reached_over_a_read_only_mount(backend: Backend, harness: tuple[Path, list[bytes]]) -> None:
    folder, requests = harness
    with backend.open(Spec(None, mounts={"/attempt": folder})) as sandbox:
        sandbox.write("caller.py", CALLER.encode())
        assert text(sandbox, f"python3 caller.py {CALLS}") == "answered\n"
        assert len(requests) == CALLS
        assert text(sandbox, "python3 caller.py 1; python3 caller.py 1") == "answered\nanswered\n"
        for command in ("rm /attempt/harness.sock", "touch /attempt/x", "chmod 0 /attempt/harness.sock"):
            assert run(sandbox, command).exit_code == 1
        assert still_works(sandbox)


@pytest.mark.all_programs
def test_only_its_own_sandbox_sees_the_socket(backend: Backend, harness: tuple[Path, list[bytes]]) -> None:
    folder, requests = harness
    with backend.open(Spec(None)) as sandbox:
        sandbox.write("caller.py", CALLER.replace("/attempt", str(folder)).encode())
        assert b"FileNotFoundError" in run(sandbox, "python3 caller.py 1").head
    assert requests == []


def test_the_folder_of_a_socket_is_closed_to_other_users_and_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    umask = os.umask(0o077)
    try:
        with listening("s") as (folder, server):
            assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(folder.stat().st_mode) == 0o755
            assert stat.S_ISSOCK((folder / "s").stat().st_mode)
            assert server.getsockname()
    finally:
        os.umask(umask)
    assert list(deep.iterdir()) == []
    shutil.rmtree(deep)
