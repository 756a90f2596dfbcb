"""Limits: each is hit, says which it was, and leaves a sandbox that works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, ExecResult, Sandbox, Spec
from sandbox.contract import Limits, MiB
from tests.support.sandboxes import alone, run, still_works, text

FILL = "import sys\nkept = []\nwhile True: kept.append(bytearray(b'x') * 5_000_000)"
FILL_SHARED = """
import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 20_000_000))
    kept[-1].write(b"x" * 20_000_000)
"""
FORK_BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""
THREADS = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()"
# A gigabyte limit, 300 MB in the parent, seven children that share them: 2.4 GB if they were counted in each.
SHARING = """
import multiprocessing, time
data = bytearray(b"x") * 300_000_000
def child(_):
    time.sleep(0.3)
    return data[-1]
with multiprocessing.get_context("fork").Pool(7) as pool:
    print(sum(pool.map(child, range(7))))
"""


@pytest.fixture
def hurried(backend: Backend, graph: Path) -> Iterator[Sandbox]:
    """A sandbox whose calls have a second of CPU time."""
    with backend.open(Spec(graph, limits=Limits(cpu_seconds=1.0))) as opened:
        yield opened


def ended_by(sandbox: Sandbox, command: str, timeout: float = 120) -> ExecResult:
    """The result of a command that a limit ends; the sandbox works afterwards."""
    result = run(sandbox, command, timeout)
    assert result.termination != "exit", result
    assert still_works(sandbox)
    return result


def python(program: str) -> str:
    return f"cat > program.py <<'E'\n{program}\nE\nexec python3 program.py"


@pytest.mark.all_programs
def test_memory_of_one_process(small: Sandbox) -> None:
    result = ended_by(small, f"echo before; {python(FILL)}")
    assert (result.termination, result.exit_code, result.head) == ("oom", None, b"before\n")
    assert result.memory > 700 * MiB


@pytest.mark.all_programs
def test_memory_of_four_processes_together(small: Sandbox) -> None:
    quarter = "kept = bytearray(b'x') * 350_000_000\nimport time\ntime.sleep(100)"
    result = ended_by(small, f"cat > p.py <<'E'\n{quarter}\nE\nfor i in 1 2 3 4; do python3 p.py & done; wait")
    assert result.termination == "oom"


@pytest.mark.all_programs
def test_shared_memory_counts(small: Sandbox) -> None:
    assert ended_by(small, python(FILL_SHARED)).termination == "oom"


@pytest.mark.all_programs
def test_memory_that_processes_share_counts_once(small: Sandbox) -> None:
    assert text(small, python(SHARING)) == f"{7 * ord('x')}\n"


@pytest.mark.all_programs
def test_files_count_as_memory(backend: Backend, graph: Path) -> None:
    limits = Limits(memory=1424 * MiB, scratch=400 * MiB, shm=MiB, tmp=MiB)
    with backend.open(Spec(graph, limits=limits)) as sandbox:
        assert text(sandbox, "head -c 380M /dev/zero > full; wc -c < full") == f"{380 * MiB}\n"
        fits = "kept = bytearray(b'x') * (900 * 2**20)\nimport time\ntime.sleep(1)"
        assert ended_by(sandbox, python(fits.replace("900", "1100"))).termination == "oom"
        assert text(sandbox, f"rm full; {python(fits)}") == ""


@pytest.mark.all_programs
def test_an_allocation_refused_at_once_is_the_programs_own_failure(small: Sandbox) -> None:
    result = run(small, "python3 -c 'bytearray(10**13)'")
    assert (result.termination, result.exit_code) == ("exit", 1)
    assert b"MemoryError" in result.head
    assert still_works(small)


@pytest.mark.parametrize(
    "command",
    [
        "f() { f | f; }; f",
        pytest.param(python(FORK_BOMB), marks=pytest.mark.all_programs),
        "for i in $(seq 200); do sleep 100 & done; wait",
        pytest.param(python(THREADS), marks=pytest.mark.all_programs),
        "while true; do (sleep 100 &) ; setsid sleep 100 & done",
    ],
)
def test_processes(small: Sandbox, command: str) -> None:
    result = ended_by(small, command)
    assert (result.termination, result.exit_code) == ("pid_limit", None)


def test_a_fork_bomb_in_the_background_is_gone_with_its_shell(small: Sandbox) -> None:
    result = run(small, ":(){ :|:& };:")
    assert result.termination in {"exit", "pid_limit"}
    assert alone(small)


def test_cpu_time_of_one_process(hurried: Sandbox) -> None:
    result = ended_by(hurried, "while true; do :; done")
    assert result.termination == "cpu_limit"
    assert result.cpu > 0.75


def test_cpu_time_of_processes_together(hurried: Sandbox) -> None:
    result = ended_by(hurried, "for i in 1 2 3 4; do (while true; do :; done) & done; wait")
    assert (result.termination, result.exit_code) == ("cpu_limit", None)


@pytest.mark.all_programs
def test_cpu_time_of_processes_one_after_the_other(hurried: Sandbox) -> None:
    result = ended_by(hurried, "while true; do python3 -c 'sum(range(3_000_000))'; done")
    assert result.termination == "cpu_limit"


@pytest.mark.parametrize("leave", ["", pytest.param("setsid", marks=pytest.mark.all_programs)])
def test_cpu_time_of_processes_that_nobody_waits_for(hurried: Sandbox, leave: str) -> None:
    orphan = f"({leave} bash -c 'for ((i = 0; i < 100000; i++)); do :; done' &)"
    result = ended_by(hurried, f"for i in $(seq 60); do {orphan}; sleep 0.1; done; sleep 1000")
    assert result.termination == "cpu_limit"


def test_file_size(small: Sandbox) -> None:
    result = ended_by(small, "exec dd if=/dev/zero of=big bs=1M count=10")
    assert (result.termination, result.exit_code) == ("file_limit", 153)
    assert text(small, "wc -c < big; rm big") == f"{4 * MiB}\n"


@pytest.mark.all_programs
def test_a_file_too_large_for_a_program_that_can_tell_is_its_own_failure(small: Sandbox) -> None:
    result = run(small, 'python3 -c \'open("big", "wb").write(bytes(10_000_000))\'')
    assert (result.termination, result.exit_code) == ("exit", 1)
    assert b"File too large" in result.head


@pytest.mark.parametrize(("folder", "size"), [("/scratch", 16), ("/tmp", 8), ("/dev/shm", 8)])
def test_what_can_be_written_is_of_limited_size(small: Sandbox, folder: str, size: int) -> None:
    fill = f"cd {folder}; for i in $(seq 40); do head -c 1M /dev/zero > $i || break; done"
    result = run(small, fill)
    assert (result.termination, result.exit_code) == ("exit", 0)
    assert b"No space left on device" in result.head
    assert int(text(small, f"du -sm {folder} | cut -f 1")) <= size
    assert still_works(small)
    assert text(small, f"rm {folder}/*; head -c 1M /dev/zero > {folder}/again && echo again") == "again\n"


@pytest.mark.parametrize(
    "folder", ["/", "/dev", "/usr", "/etc", "/sandbox", "/sandbox/bin", "/graph", "/proc", "/var", "/run"]
)
def test_nothing_else_can_be_written(small: Sandbox, folder: str) -> None:
    assert run(small, f"touch {folder}/file && echo written").head.endswith(b"written\n") is False
    assert run(small, f"mkdir {folder}/folder").exit_code == 1


@pytest.mark.all_programs
def test_many_small_files_do_not_lock_the_agent_out(small: Sandbox) -> None:
    """Files without content use memory too; however many there are, they can be deleted."""
    make = "import os\nfor i in range(40_000): os.close(os.open(f'/tmp/{i}', os.O_CREAT))"
    run(small, f"cat > m.py <<'E'\n{make}\nE\npython3 m.py")
    assert still_works(small)
    assert text(small, "find /tmp -type f -delete; find /tmp -type f | wc -l") == "0\n"


def test_output_that_does_not_fit_into_scratch(small: Sandbox) -> None:
    result = run(small, "echo first; yes | head -c 100M; echo never", cap=1000)
    assert (result.termination, result.exit_code) == ("output_limit", None)
    assert result.head.startswith(b"first\n")
    assert len(result.head) + len(result.tail) == 1000
    assert result.spill is not None
    assert 15 * MiB < result.spilled_bytes <= 16 * MiB
    assert result.spilled_bytes < result.total_bytes < 100 * MiB
    assert text(small, f"wc -c < {result.spill}; head -n 1 {result.spill}") == f"{result.spilled_bytes}\nfirst\n"
    again = run(small, "seq 10000", cap=1000)
    assert again.termination == "output_limit"  # still full
    assert text(small, f"rm -r {result.spill}; echo small outputs need no space") == "small outputs need no space\n"
    assert run(small, "seq 10000", cap=1000).termination == "exit"


def test_a_full_scratch_does_not_hinder_commands(small: Sandbox) -> None:
    run(small, "head -c 100M /dev/zero > a; head -c 100M /dev/zero > b; head -c 100M /dev/zero > c; cat /dev/zero > d")
    body = "x" * 100_000
    assert text(small, f": <<'E'\n{body}\nE\necho ran; rm a b c d") == "ran\n"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000",
        "trap '' TERM INT HUP QUIT; echo partial; while true; do sleep 1000; done",
        "kill -STOP $$",
        pytest.param("setsid sleep 1000 & wait", marks=pytest.mark.all_programs),
        "exec 1>&- 2>&-; sleep 1000",
        "yes",
        "while true; do :; done",
    ],
)
def test_the_deadline_is_kept(sandbox: Sandbox, command: str) -> None:
    result = ended_by_deadline(sandbox, command)
    if "partial" in command:
        assert result.head == b"partial\n"


def ended_by_deadline(sandbox: Sandbox, command: str) -> ExecResult:
    result = run(sandbox, command, timeout=0.3, cap=1000)
    assert (result.termination, result.exit_code) == ("timeout", None)
    assert result.wall >= 0.3
    assert text(sandbox, "rm -f outputs/*; echo alive") == "alive\n"
    return result


FLOOD = """
import resource, sys
from sandbox import Spec, choose
with choose(sys.argv[1]).open(Spec(None)) as sandbox:
    sandbox.exec("seq 100000", 60, 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sandbox.exec("yes | head -c 500000000", 300, 20_000)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(result.termination, result.total_bytes, result.spilled_bytes, after - before)
"""


@pytest.mark.all_programs
def test_a_flood_of_500_megabytes_needs_no_memory_here(backend: Backend) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, backend.kind],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    termination, total, spilled, kilobytes = done.stdout.split()
    assert (termination, int(total), int(spilled)) == ("exit", 500_000_000, 500_000_000)
    assert int(kilobytes) < 20 * 1024
