"""Twins: two sandboxes that have the same scratch, each with its own programs, processes and limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox import Backend, Sandbox, SandboxLost, Spec, clean, leftovers
from sandbox.contract import GiB, Limits, MiB
from tests.support.sandboxes import alone, run, sleepers, still_works, text
from tests.support.waiting import wait_until

LIMITS = Limits(memory=GiB + 64 * MiB, scratch=64 * MiB, tmp=8 * MiB, shm=8 * MiB, pids=64)


@pytest.fixture(scope="module", params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def twins(kind: Backend, graph: Path) -> Iterator[tuple[Sandbox, Sandbox]]:
    """One with shell tools alone and a mount of its own, and its twin with all programs."""
    first = Spec(None, limits=LIMITS, programs="shell", shared=True, mounts={"/attempt": graph})
    with kind.open(first) as one, kind.open(Spec(graph, limits=LIMITS), twin_of=one) as other:
        yield one, other


def test_what_one_writes_the_other_sees(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    text(one, "mkdir -p d; echo 1 > d/a; echo 2 > /tmp/b; ln -s d/a link")
    assert text(other, "cat d/a /tmp/b link; echo 3 >> d/a; rm /tmp/b; mkdir -m 700 e; echo 4 > e/f; pwd") == (
        "1\n2\n1\n/scratch\n"
    )
    assert text(one, "cat d/a e/f; ls /tmp; rm -r d e link") == "1\n3\n4\n"
    one.write("deep/file", b"from outside")
    assert other.read("deep/file", 0, 100).data == b"from outside"


def test_all_else_is_each_ones_own(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    assert text(one, "ls /attempt; ls /graph 2>/dev/null; type -P python3; echo x > /dev/shm/x; true") == (
        "DATA_FORMAT.txt\nnodes\n"
    )
    assert text(other, "ls /graph; ls /attempt 2>/dev/null; ls /dev/shm; python3 -c 'print(1)'") == (
        "DATA_FORMAT.txt\nnodes\n1\n"
    )
    assert alone(one) and alone(other)
    run(other, "kill -9 -1")
    assert still_works(one)


def test_the_size_is_of_both_together(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    text(one, "head -c 40M /dev/zero > one")
    assert run(other, "head -c 40M /dev/zero > other").exit_code == 1
    assert text(
        other, "rm one other; head -c 40M /dev/zero > other; rm other; df --output=size . /tmp | tr -d ' '"
    ) == (f"1K-blocks\n{64 * 1024}\n{8 * 1024}\n")


def test_what_lies_in_it_counts_once(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    for writer in (one, other):
        text(writer, "head -c 50M /dev/zero > big")
        assert 50 * MiB <= one.memory < 60 * MiB
        assert other.memory < 10 * MiB
        text(other, "rm big")
        assert one.memory < 10 * MiB


def test_calls_in_both_at_once(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    text(one, "mkfifo there back")
    with ThreadPoolExecutor(2) as threads:
        asking = threads.submit(text, one, "echo question > there; cat back")
        answering = threads.submit(text, other, "read -r x < there; echo answer to $x > back")
        assert (asking.result(), answering.result()) == ("answer to question\n", "")
    text(one, "rm there back")


def test_both_have_their_number_of_processes(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    text(one, "mkfifo a b")
    many = "for i in {1..50}; do sleep 1000 & done; echo > %s; read -r x < %s; echo $x"
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(text, one, many % ("a", "b"))
        second = threads.submit(
            text, other, "read -r x < a; " + many.replace("echo >", "echo done >") % ("b", "/dev/null")
        )
        assert first.result() == "done\n"
        assert second.result() == "\n"
    text(one, "rm a b")


def test_outputs_do_not_overwrite_each_other(twins: tuple[Sandbox, Sandbox]) -> None:
    spills = [run(sandbox, f"echo {word}; seq 1000", cap=10).spill for word in ("a", "b") for sandbox in twins]
    assert spills == [f"outputs/00{number}.txt" for number in (1, 2, 3, 4)]
    assert text(twins[0], "head -qn 1 outputs/*; rm -r outputs") == "a\na\nb\nb\n"


def test_programs_written_by_one_are_not_run_by_the_other(twins: tuple[Sandbox, Sandbox]) -> None:
    one, other = twins
    text(other, "printf '#!/bin/bash\\necho ran\\n' > script; chmod +x script")
    assert run(one, "./script").exit_code == 126
    assert text(one, "bash script; rm script") == "ran\n"


def test_a_twin_is_closed_with_its_first(kind: Backend) -> None:
    one = kind.open(Spec(None, limits=LIMITS, shared=True))
    other = kind.open(Spec(None, limits=LIMITS), twin_of=one)
    assert still_works(other)
    one.close()
    with pytest.raises(SandboxLost):
        other.exec("true", 10, 10)
    other.close()
    with pytest.raises(SandboxLost):
        kind.open(Spec(None, limits=LIMITS), twin_of=one)


def test_a_first_outlives_its_twins(kind: Backend) -> None:
    with kind.open(Spec(None, limits=LIMITS, shared=True)) as one:
        for number in range(2):
            with kind.open(Spec(None, limits=LIMITS), twin_of=one) as other:
                text(other, f"echo {number} >> file")
            with pytest.raises(SandboxLost):
                other.exec("true", 10, 10)
        assert text(one, "cat file") == "0\n1\n"


def test_only_a_sandbox_that_is_shared_can_have_one(kind: Backend) -> None:
    with kind.open(Spec(None, limits=LIMITS)) as one, pytest.raises(ValueError, match="opened to be shared"):
        kind.open(Spec(None, limits=LIMITS), twin_of=one)


HARNESS = """
import sys, threading
from sandbox import Spec, choose
backend, seconds = choose(sys.argv[1]), sys.argv[2]
one = backend.open(Spec(None, shared=True, labels={"attempt": seconds}))
other = backend.open(Spec(None, labels={"attempt": seconds}), twin_of=one)
calls = [threading.Thread(target=s.exec, args=(f"sleep {seconds}", 1000, 100)) for s in (one, other)]
for call in calls: call.start()
for call in calls: call.join()
"""


def test_a_harness_that_is_killed_leaves_nothing_of_either(kind: Backend) -> None:
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    root = Path(__file__).resolve().parents[2]
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, kind.kind, seconds],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(sleepers(seconds)) == 2)
    harness.send_signal(signal.SIGKILL)
    harness.wait(60)
    wait_until(lambda: not sleepers(seconds))

    def left() -> list[str]:
        found = [orphan for orphan in leftovers() if orphan.labels.get("attempt") == seconds]
        if found:  # volumes of containers that ended at once
            clean(found)
        return [orphan.status for orphan in found]

    wait_until(lambda: not left())
