"""The client believes nothing: whatever comes out of a sandbox, a result makes sense or the sandbox is lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import ExecResult, Limits, SandboxFileError, SandboxLost
from sandbox.client import MAX_HEADER, MAX_TRANSFER, Client, Setup

GOOD = b"done 1 exit 0 6 1 6 0 0 0 1500 1000 4096 0\nhello\n"


class Pair:
    """A transport over one end of a socket pair; a test plays the supervisor at the other."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, data: bytes, timeout: float) -> None:
        self.end.settimeout(timeout)
        self.end.sendall(data)

    def receive(self, timeout: float) -> bytes:
        self.end.settimeout(timeout)
        return self.end.recv(7)  # small pieces: every cut between two reads happens


@contextmanager
def supervisor(says: bytes, ends: bool = True, silence: float = 5.0) -> Iterator[Client]:
    """A client whose supervisor says it is ready and then `says` this, whatever it is asked, and ends its stream."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stop = threading.Event()

        def play() -> None:
            theirs.recv(1 << 16)
            theirs.sendall(b"ready 2\n")
            theirs.recv(1 << 16)
            theirs.sendall(says)
            if ends:
                theirs.shutdown(socket.SHUT_WR)
            stop.wait()

        thread = threading.Thread(target=play)
        thread.start()
        try:
            yield Client(Pair(ours), Setup(Limits()), silence=silence)
        finally:
            stop.set()
            ours.shutdown(socket.SHUT_RDWR)
            thread.join()


def execute(client: Client) -> ExecResult:
    return client.exec("echo hello", 5, 100)


def test_a_good_result() -> None:
    with supervisor(b"beat 1 12345\n" + GOOD) as client:
        result = execute(client)
    assert result == ExecResult(
        exit_code=0,
        head=b"hello\n",
        tail=b"",
        total_bytes=6,
        lines=1,
        spill=None,
        spilled_bytes=0,
        termination="exit",
        wall=0.0015,
        cpu=0.001,
        memory=4096,
    )


def test_heartbeats_tell_the_memory_in_use() -> None:
    with supervisor(b"beat 1 12345\n", ends=True) as client:
        with pytest.raises(SandboxLost):
            execute(client)
        assert client.memory == 12345


def test_what_is_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"ready 2\n" + GOOD)
        client = Client(Pair(ours), Setup(Limits(), env={"A": "b\nc"}, uid=1234, nproc=257))
        execute(client)
        sent = theirs.recv(1 << 16)
    header, _, rest = sent.partition(b"\n")
    length = int(header.removeprefix(b"init "))
    items = rest[:length].split(b"\0")
    assert b"env=A=b\nc" in items
    assert {b"uid=1234", b"nproc=257", b"pids=256", b"cwd=/scratch", b"memory=4294967296", b"tmpfs=/dev/shm"} <= set(
        items
    )
    assert rest[length:] == b"exec 1 5000000 100 10\necho hello"


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"\n",
        b"done",
        b"nonsense 1 2 3\n",
        b"x" * (MAX_HEADER * 3),
        b"done 1 exit 0 6 1 6 0 0 0 1500 1000 4096 0\nhel",  # ends in the middle
        b"done 2 exit 0 6 1 6 0 0 0 1500 1000 4096 0\nhello\n",  # another call's
        b"done 1 great 0 6 1 6 0 0 0 1500 1000 4096 0\nhello\n",
        b"done 1 exit 999 6 1 6 0 0 0 1500 1000 4096 0\nhello\n",
        b"done 1 exit -2 6 1 6 0 0 0 1500 1000 4096 0\nhello\n",
        b"done 1 exit 0 5 1 6 0 0 0 1500 1000 4096 0\nhello\n",  # more than there was
        b"done 1 exit 0 200 1 6 0 0 0 1500 1000 4096 0\nhello\n",  # cut, and no spill
        b"done 1 exit 0 200 1 6 0 1 150 1500 1000 4096 0\nhello\n",  # a spill that lacks something
        b"done 1 exit 0 200 1 101 0 1 200 1500 1000 4096 0\n" + b"x" * 101,  # more than the cap
        b"done 1 exit 0 6 7 6 0 0 0 1500 1000 4096 0\nhello\n",  # more lines than bytes
        b"done 1 exit 0 6 1 6 0 0 0 1500 1000 4096\nhello\n",
        b"done 1 exit 0 6 1 6 0 0 0 1500 1000 4096 0 0\nhello\n",
        b"done 1 exit 0 6 1 " + b"9" * 100 + b" 0 0 0 1 1 1 0\nhello\n",
        "done 1 exit ٣ 6 1 6 0 0 0 1500 1000 4096 0\nhello\n".encode(),
        b"done 1 exit 0 200 1 6 0 1000000 200 1 1 1 0\nhello\n",  # no file has this number
        b"beat 2 5\n" + GOOD,
        b"beat 1\n" + GOOD,
        b"data 1 5 5\nhello",
        b"ok 1\n",
        b"ready 2\n" + GOOD,
        b"error 5\nwrong",
        b"error 99999\nwrong",
        b"\xff\xfe\x00\n",
    ],
)
def test_what_makes_no_sense_is_a_lost_sandbox(says: bytes) -> None:
    with supervisor(says) as client:
        with pytest.raises(SandboxLost):
            execute(client)
        with pytest.raises(SandboxLost):  # and stays so
            execute(client)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_a_lost_sandbox(says: bytes) -> None:
    with supervisor(says) as client, pytest.raises(SandboxLost):
        execute(client)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_result_is_lost_or_within_bounds(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    damaged = GOOD[:at] + data.draw(st.binary(max_size=3)) + GOOD[at + data.draw(st.integers(0, 2)) :]
    with supervisor(damaged) as client:
        try:
            result = execute(client)
        except SandboxLost:
            return
    assert len(result.head) + len(result.tail) <= min(100, result.total_bytes)
    assert result.exit_code is None or 0 <= result.exit_code <= 255


def test_the_reason_of_an_error_is_told() -> None:
    with supervisor(b"error 17\nmemfd_create: no!") as client, pytest.raises(SandboxLost, match="memfd_create: no!"):
        execute(client)


def test_silence_is_a_lost_sandbox() -> None:
    with supervisor(b"", ends=False, silence=0.05) as client, pytest.raises(SandboxLost, match="silent"):
        execute(client)


def test_half_a_result_and_then_silence_is_a_lost_sandbox() -> None:
    with supervisor(GOOD[:-2], ends=False, silence=0.05) as client, pytest.raises(SandboxLost, match="silent"):
        execute(client)


@pytest.mark.parametrize("says", [b"ready 1\n", b"ready\n", b"done 1\n", b"", b"error 9\nno bash x"])
def test_another_protocol_is_a_lost_sandbox(says: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(says)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(SandboxLost):
            Client(Pair(ours), Setup(Limits()))


READS: list[tuple[bytes, Callable[[Client], object]]] = [
    (b"data 1 5 6\nhello!", lambda client: client.read("x", 0, 100)),  # more than the file has
    (b"data 1 500 101\n" + b"x" * 101, lambda client: client.read("x", 0, 100)),  # more than was asked for
    (b"data 1 5\nhello", lambda client: client.read("x", 0, 100)),
    (b"ok 1\n", lambda client: client.read("x", 0, 100)),
    (GOOD, lambda client: client.read("x", 0, 100)),
    (b"failed 1 9999\n", lambda client: client.read("x", 0, 100)),
    (b"failed 2 2\nno", lambda client: client.read("x", 0, 100)),
    (b"data 1 0 0\n", lambda client: client.write("x", b"")),
    (b"ok 2\n", lambda client: client.write("x", b"")),
    (b"ok\n", lambda client: client.write("x", b"")),
]


@pytest.mark.parametrize(("says", "use"), READS)
def test_an_odd_answer_about_a_file_is_a_lost_sandbox(says: bytes, use: Callable[[Client], object]) -> None:
    with supervisor(says) as client, pytest.raises(SandboxLost):
        use(client)


def test_a_files_failure_is_no_lost_sandbox() -> None:
    with supervisor(b"failed 1 9\nNot there") as client, pytest.raises(SandboxFileError, match="x: Not there"):
        client.read("x", 0, MAX_TRANSFER)
