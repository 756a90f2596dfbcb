"""read and write: what the harness itself does with files that the agent may have prepared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import Sandbox, SandboxFileError
from sandbox.client import MAX_TRANSFER
from tests.support.sandboxes import NODE, run, still_works, text


def fails(sandbox: Sandbox, path: str, reason: str, data: bytes | None = None) -> None:
    """Reading the path, or writing `data` to it, is a file error that gives this reason."""
    with pytest.raises(SandboxFileError, match=reason):
        if data is None:
            sandbox.read(path, 0, 100)
        else:
            sandbox.write(path, data)
    assert still_works(sandbox)


def test_what_was_written_is_read(shared: Sandbox) -> None:
    data = bytes(range(256)) * 1000
    shared.write("a/b c/d'e.bin", data)
    slice_ = shared.read("/scratch/a/b c/d'e.bin", 0, 1_000_000)
    assert (slice_.data, slice_.size) == (data, 256_000)
    assert text(shared, "sha256sum < \"a/b c/d'e.bin\"; ls -A 'a/b c'").endswith("d'e.bin\n")
    shared.write("a/b c/d'e.bin", b"")
    assert shared.read("a/b c/d'e.bin", 0, 10).size == 0


def test_the_graph_is_read(shared: Sandbox) -> None:
    assert shared.read("/graph/nodes/0000.jsonl", 0, 10_000).data.decode() == NODE + "\n"


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=2000), offset=st.integers(0, 3000), limit=st.integers(0, 3000))
def test_a_slice_is_a_slice(shared: Sandbox, data: bytes, offset: int, limit: int) -> None:
    shared.write("data", data)
    slice_ = shared.read("data", offset, limit)
    assert (slice_.data, slice_.size) == (data[offset : offset + limit], len(data))


def test_offsets_and_limits_without_bounds(shared: Sandbox) -> None:
    shared.write("data", b"0123456789")
    assert shared.read("data", 2**70, 10).data == b""
    assert shared.read("data", 5, 2**70).data == b"56789"
    with pytest.raises(ValueError, match="negative"):
        shared.read("data", -1, 10)


def test_twenty_megabytes_there_and_back(sandbox: Sandbox) -> None:
    data = b"0123456789abcdef" * 1_310_720
    sandbox.write("big", data)
    assert sandbox.read("big", 0, len(data)).data == data
    fails(sandbox, "big", "more than can be written", bytes(MAX_TRANSFER + 1))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "No such file"),
        ("/graph", "Is a directory"),
        (".", "Is a directory"),
        ("/dev/zero", "Not a regular file"),
        ("/dev/tty", "."),
        ("/dev/stdin", "Not a regular file"),
        ("/proc/self/fd/0", "Not a regular file"),
        ("/proc/self/fd/1", "Not a regular file"),
        ("/proc/1/fd/0", "denied"),
        ("/proc/1/mem", "denied"),
        ("/proc/1/environ", "denied"),
        ("/proc/self/mem", "."),
        ("/etc/shadow", "."),
        ("missing/child", "No such file"),
        ("/graph/DATA_FORMAT.txt/child", "Not a directory"),
        ("", "not empty"),
        ("a\0b", "NUL"),
        ("x" * 5000, "longer"),
        ("x" * 300, "name too long"),
    ],
)
def test_what_cannot_be_read_is_a_file_error(shared: Sandbox, path: str, reason: str) -> None:
    fails(shared, path, reason)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("mkfifo planted", "Not a regular file"),
        ("ln -s /dev/zero planted", "Not a regular file"),
        ("ln -s planted planted", "ymbolic link"),
        ("ln -s /proc/self/mem planted", "."),
        ("ln -s /proc/1/mem planted", "denied"),
        ("ln -s /proc/1/fd/0 planted", "denied"),
        ("ln -s /proc/self/fd/1 planted", "Not a regular file"),
        ("echo secret > planted; chmod 000 planted", "denied"),
        ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"planted\")'", "."),
        ("mkdir planted", "Is a directory"),
    ],
)
def test_planted_files_are_refused(sandbox: Sandbox, make: str, reason: str) -> None:
    run(sandbox, make)
    fails(sandbox, "planted", reason)


def test_a_link_leads_nowhere_outside(shared: Sandbox) -> None:
    """The path is resolved inside: /etc/passwd is the sandbox's own, and a process's files are the reader's."""
    run(
        shared,
        "ln -sf /etc/passwd p; ln -sf /proc/self/environ e; ln -sf /proc/self/maps m; ln -sf /proc/self/cmdline c",
    )
    assert b"agent" in shared.read("p", 0, 10_000).data
    fails(shared, "e", "denied")
    assert b"python" not in shared.read("m", 0, 100_000).data
    assert shared.read("c", 0, 1000).data.startswith(b"/sandbox/supervisor")


def test_writing_replaces_a_link_and_does_not_follow_it(sandbox: Sandbox) -> None:
    run(sandbox, "echo precious > target; ln -s target link; mkfifo pipe; ln -s /graph/DATA_FORMAT.txt graph-link")
    for name in ("link", "pipe", "graph-link"):
        sandbox.write(name, b"new")
        assert sandbox.read(name, 0, 10).data == b"new"
    assert text(sandbox, "cat target; find . -type l -o -type p") == "precious\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/graph/new", "Read-only"),
        ("/graph/DATA_FORMAT.txt", "Read-only"),
        ("/new", "Read-only|denied"),
        ("folder", "Is a directory"),
        ("folder/", "Is a directory"),
        ("/", "Is a directory"),
        ("file/child", "Not a directory|File exists"),
        ("folder/..", "Is a directory"),
        ("/proc/1/mem", "."),
        ("/proc/self/fd/1", "."),
        ("/dev/null", "."),
        ("", "not empty"),
    ],
)
def test_what_cannot_be_written_is_a_file_error(shared: Sandbox, path: str, reason: str) -> None:
    run(shared, "mkdir -p folder/full; echo x > file; touch folder/full/x")
    fails(shared, path, reason, b"data")
    assert text(shared, "cat file; ls folder/full; ls -A /scratch | grep -c kgshell || true") == "x\nx\n0\n"


def test_writing_to_a_full_scratch_fails_and_keeps_what_was_there(small: Sandbox) -> None:
    small.write("kept", b"old")
    run(small, "for i in $(seq 20); do head -c 1M /dev/zero > fill$i; done")
    fails(small, "kept", "No space", bytes(3_000_000))
    assert small.read("kept", 0, 10).data == b"old"
    run(small, "rm fill*")
    small.write("kept", b"new")
    assert text(small, "ls -A") == "kept\noutputs\n" or text(small, "cat kept") == "new"


# Spills, where the agent has prepared their folder


@pytest.mark.parametrize(
    "plant",
    [
        "rm -rf outputs; ln -s /tmp outputs",
        "rm -rf outputs; ln -s /graph outputs",
        "rm -rf outputs; ln -s /proc/1 outputs",
        "rm -rf outputs; ln -s outputs outputs",
        "rm -rf outputs; echo a file > outputs",
        "rm -rf outputs; mkfifo outputs",
        "mkdir -p outputs; chmod 000 outputs",
        "mkdir -p outputs; ln -s /tmp/target outputs/001.txt",
        "mkdir -p outputs; ln -s /dev/null outputs/001.txt",
        "mkdir -p outputs/001.txt",
        "mkdir -p outputs; mkfifo outputs/001.txt outputs/002.txt",
        "rm -rf outputs; ln -s /tmp outputs; touch outputs.0; mkdir outputs.1; ln -s /tmp outputs.2",
        "chmod 000 .",
    ],
)
def test_a_spill_lies_where_it_is_said_to(sandbox: Sandbox, plant: str) -> None:
    run(sandbox, f"cd /scratch; {plant}")
    result = run(sandbox, "seq 1000", cap=100)
    expected = b"".join(b"%d\n" % number for number in range(1, 1001))
    assert (result.termination, result.exit_code) == ("exit", 0)
    assert result.spill is not None
    assert sandbox.read(result.spill, 0, 10_000).data == expected
    assert (
        text(sandbox, f"find /scratch/{result.spill} -type f | wc -l; ls /tmp | grep -c '[0-9].txt' || true")
        == "1\n0\n"
    )
    assert still_works(sandbox)


@pytest.mark.all_programs
def test_a_spill_cannot_be_redirected_while_it_is_written(sandbox: Sandbox) -> None:
    attack = """
python3 - <<'E' &
import os, time
while True:
    for name in ("outputs", "moved"):
        try:
            os.rename("outputs", "moved"); os.symlink("/tmp", "outputs")
            os.unlink("outputs"); os.rename("moved", "outputs")
        except OSError: pass
E
seq 300000
"""
    for _ in range(5):
        result = run(sandbox, attack, cap=100)
        assert result.spill is not None
        spilled = sandbox.read(result.spill, 0, 10_000_000)
        assert spilled.size == result.total_bytes == 1_988_895
        assert text(sandbox, "ls /tmp | wc -l") == "0\n"


def test_nothing_reaches_a_spill_while_it_is_written(sandbox: Sandbox) -> None:
    hunt = "find /scratch /proc/1/fd -name '*.txt' 2>/dev/null; ls -l /proc/*/fd 2>/dev/null | grep -c '/scratch'"
    result = run(sandbox, f"seq 300000; {hunt}", cap=100)
    assert result.tail.endswith(b"\n0\n")
    assert result.total_bytes == 1_988_895 + 2
