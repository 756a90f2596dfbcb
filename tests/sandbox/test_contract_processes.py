"""Processes: what a call starts ends with it, the supervisor can't be reached, and a lost sandbox says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, Sandbox, SandboxLost, Spec
from tests.support.sandboxes import (
    alone,
    ancestors,
    command_lines,
    lives,
    run,
    sleepers,
    still_works,
    text,
)
from tests.support.waiting import wait_until

DOUBLE_FORK = """
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
print("daemon", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000 & echo done",
        "(sleep 1000; echo late) & disown; echo done",
        "nohup sleep 1000 2>/dev/null & echo done",
        "setsid sleep 1000 & echo done",
        "setsid setsid bash -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' & echo done",
        "coproc sleep 1000; echo done",
        f"cat > d.py <<'E'\n{DOUBLE_FORK}\nE\npython3 d.py; echo done",
        "sleep 1000 > >(cat) & echo done",
    ],
)
def test_a_background_process_does_not_hold_the_call_and_does_not_survive_it(shared: Sandbox, command: str) -> None:
    result = run(shared, command, timeout=600)
    assert (result.termination, result.exit_code) == ("exit", 0)
    assert b"done\n" in result.head
    assert alone(shared)


def test_what_a_background_process_wrote_before_the_end_is_kept(shared: Sandbox) -> None:
    assert text(shared, "mkfifo f; (echo from the background; echo > f; sleep 1000) & read < f; rm f") == (
        "from the background\n"
    )


def test_killing_everything_that_it_sees(shared: Sandbox) -> None:
    result = run(shared, "kill -9 -1; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done; kill -9 $$")
    assert (result.termination, result.exit_code) == ("killed", 137)
    assert still_works(shared)
    run(shared, "pkill -9 .; kill -9 0")
    assert still_works(shared)


@pytest.mark.parametrize(
    "name", ["KILL", "STOP", "TERM", "INT", "CHLD", "PIPE", "SEGV", "TSTP", "HUP", "USR1", "RTMIN"]
)
def test_signals_do_not_reach_the_supervisor(shared: Sandbox, name: str) -> None:
    run(shared, f"kill -{name} 1")
    assert still_works(shared)


@pytest.mark.parametrize(
    "name", ["fd", "mem", "environ", "maps", "root", "cwd", "exe", "map_files", "task/1/mem", "fdinfo"]
)
def test_the_supervisors_memory_and_descriptors_are_closed(shared: Sandbox, name: str) -> None:
    result = run(shared, f"ls /proc/1/{name}/ ; head -c 1 /proc/1/{name}; readlink /proc/1/{name}/")
    assert b"denied" in result.head or b"not permitted" in result.head, result.head
    assert result.exit_code != 0


@pytest.mark.all_programs
def test_replies_cannot_be_forged(shared: Sandbox) -> None:
    forged = "done 1 exit 0 6 1 6 0 0 0 1 1 1 1\\nforged"
    for descriptor in range(10):
        result = run(shared, f"printf '{forged}' > /proc/1/fd/{descriptor}")
        assert result.exit_code != 0
        assert b"ermission denied" in result.head
    writes = f"open('/proc/1/mem', 'r+b').write({forged.encode()!r})"
    assert b"PermissionError" in run(shared, f'python3 -c "{writes}"').head
    assert still_works(shared)


# What a process may do to another of the same user, tried on PID argv[1]. Prints the names of what was let through.
INTERFERE = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
PTRACE_ATTACH, PTRACE_SEIZE, PRIO_PGRP, PRIO_USER, SCHED_IDLE = 16, 0x4206, 1, 2, 5
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
buffer = ctypes.create_string_buffer(64)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
local = ctypes.byref(Vector(ctypes.cast(buffer, ctypes.c_void_p), 8))
def pair(soft, hard): return ctypes.byref((ctypes.c_uint64 * 2)(soft, hard))
def written(name, data): return os.write(os.open(f"/proc/{pid}/{name}", os.O_WRONLY), data)
calls = {
    "ptrace attach": lambda: libc.ptrace(PTRACE_ATTACH, pid, 0, 0),
    "ptrace seize": lambda: libc.ptrace(PTRACE_SEIZE, pid, 0, 0),
    "process_vm_readv": lambda: libc.process_vm_readv(pid, local, 1, local, 1, 0),
    "process_vm_writev": lambda: libc.process_vm_writev(pid, local, 1, local, 1, 0),
    "pidfd_getfd": lambda: libc.syscall(438, os.pidfd_open(pid), 1, 0),
    "prlimit read": lambda: libc.prlimit(pid, resource.RLIMIT_CPU, None, buffer),
    "prlimit cpu": lambda: libc.prlimit(pid, resource.RLIMIT_CPU, pair(1, 1), None),
    "prlimit files": lambda: libc.prlimit(pid, resource.RLIMIT_NOFILE, pair(0, 0), None),
    "priority": lambda: libc.setpriority(0, pid, 19),
    "priority of the group": lambda: libc.setpriority(PRIO_PGRP, os.getpgid(pid), 19),
    "priority of the user": lambda: libc.setpriority(PRIO_USER, 0, 19),
    "affinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)) or 0,
    "scheduler": lambda: libc.sched_setscheduler(pid, SCHED_IDLE, bytes(64)),
    "input priority": lambda: libc.syscall(IOPRIO_SET, 1, pid, 3 << 13),
    "oom score": lambda: written("oom_score_adj", b"1000"),
    "timer slack": lambda: written("timerslack_ns", b"1000000000"),
    "name": lambda: written("comm", b"x"),
}
for name, call in calls.items():
    try:
        allowed = call() >= 0
    except OSError:
        allowed = False
    if allowed:
        print(name)
"""


@pytest.mark.all_programs
def test_the_supervisor_cannot_be_interfered_with(shared: Sandbox) -> None:
    shared.write("interfere.py", INTERFERE.encode())
    assert text(shared, "python3 interfere.py 1") == ""
    assert still_works(shared)
    # The same program finds what a process may do to another one of the agent's.
    other = text(shared, "sleep 100 & python3 interfere.py $!").splitlines()
    assert other == [
        "prlimit read",
        "prlimit cpu",
        "prlimit files",
        "priority",
        "affinity",
        "scheduler",
        "input priority",
        "oom score",
    ]


@pytest.mark.all_programs
def test_a_process_may_lower_its_own_priority_and_limits(shared: Sandbox) -> None:
    lower = "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); os.nice(5); os.setpriority(0, 0, 6)"
    assert text(shared, f"python3 -c 'import os, resource; {lower}'; nice -n 3 renice -n 4 $$; ulimit -n 50").strip()


@pytest.mark.all_programs
def test_flooding_the_supervisor_with_signals_does_not_stop_it(shared: Sandbox) -> None:
    flood = "import os\nwhile True: os.kill(1, 17)"
    assert run(shared, f"python3 -c '{flood}'", timeout=0.5).termination == "timeout"
    assert still_works(shared)


@pytest.mark.all_programs
def test_threads_subprocesses_and_multiprocessing_work(shared: Sandbox) -> None:
    program = """
import concurrent.futures, multiprocessing, multiprocessing.shared_memory, subprocess, tempfile, threading
def square(x): return x * x
if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(square, range(100))))
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool: print(sum(pool.map(square, range(100))))
    lock, queue = multiprocessing.Lock(), multiprocessing.Queue()
    child = multiprocessing.Process(target=queue.put, args=("queued",)); child.start(); print(queue.get()); child.join()
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=1000); block.close(); block.unlink()
    print(subprocess.run(["bash", "-c", "cat; echo $0"], input="in ", text=True, capture_output=True).stdout, end="")
    with tempfile.NamedTemporaryFile() as file: print(file.name.startswith("/tmp/"))
"""
    expected = "328350\n" * 4 + "queued\nin bash\nTrue\n"
    assert text(shared, f"cat > p.py <<'E'\n{program}\nE\npython3 p.py") == expected


@pytest.fixture
def calling(backend: Backend, graph: Path) -> Iterator[tuple[Sandbox, str, list[BaseException]]]:
    """(sandbox, seconds, errors) while a thread waits for `sleep SECONDS` in it; the errors are that call's."""
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    errors: list[BaseException] = []
    with backend.open(Spec(graph)) as sandbox:

        def call() -> None:
            try:
                sandbox.exec(f"sleep {seconds}", 1000, 1000)
            except SandboxLost as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        wait_until(lambda: sleepers(seconds))
        yield sandbox, seconds, errors
        sandbox.close()
        thread.join()


def test_a_sandbox_killed_from_outside_is_lost(calling: tuple[Sandbox, str, list[BaseException]]) -> None:
    sandbox, seconds, errors = calling
    inside = ancestors(sleepers(seconds)[0])
    (supervisor,) = [pid for pid, line in command_lines() if line == ["/sandbox/supervisor"] and pid in inside]
    try:
        os.kill(supervisor, signal.SIGKILL)
    except PermissionError:
        pytest.skip("this user may not kill a container's process")
    wait_until(lambda: errors)
    wait_until(lambda: not sleepers(seconds))
    for use in (lambda: sandbox.exec("true", 10, 10), lambda: sandbox.read("x", 0, 1), lambda: sandbox.write("x", b"")):
        with pytest.raises(SandboxLost):
            use()


def test_closing_from_another_thread_ends_the_call(calling: tuple[Sandbox, str, list[BaseException]]) -> None:
    sandbox, seconds, errors = calling
    sandbox.close()
    wait_until(lambda: errors)
    wait_until(lambda: not sleepers(seconds))
    sandbox.close()
    with pytest.raises(SandboxLost):
        sandbox.exec("true", 10, 10)


HARNESS = """
import sys
from sandbox import Spec, choose
with choose(sys.argv[1]).open(Spec(None)) as sandbox:
    sandbox.exec(f"setsid sleep {sys.argv[2]} & sleep {sys.argv[2]}", 1000, 1000)
"""


@pytest.mark.all_programs
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_harness_that_is_killed_leaves_no_process(backend: Backend, number: signal.Signals) -> None:
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    root = Path(__file__).resolve().parents[2]
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, backend.kind, seconds],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(sleepers(seconds)) == 2)
    # The sandbox is a session of its own: the harness's process group is not what ends it.
    assert os.getpgid(sleepers(seconds)[0]) != os.getpgid(harness.pid)
    around = [pid for pid in ancestors(sleepers(seconds)[0]) if pid > 1 and pid != os.getpid()]
    descendants = [pid for pid in around if harness.pid in ancestors(pid)]
    harness.send_signal(number)
    harness.wait(60)
    wait_until(lambda: not sleepers(seconds))
    wait_until(lambda: not [pid for pid in descendants if lives(pid)])


def test_sandboxes_do_not_see_each_other(
    calling: tuple[Sandbox, str, list[BaseException]], backend: Backend, graph: Path
) -> None:
    _, seconds, errors = calling
    with backend.open(Spec(graph)) as other:
        assert alone(other)
        run(other, "kill -9 -1; kill -9 -- -1")
        assert still_works(other)
    assert sleepers(seconds)
    assert not errors


def test_sandboxes_share_no_files(backend: Backend, graph: Path) -> None:
    with backend.open(Spec(graph)) as one, backend.open(Spec(graph)) as other:
        text(one, "for d in /scratch /tmp /dev/shm; do echo 1 > $d/mine; done")
        assert text(other, "ls /scratch /tmp /dev/shm | grep -c mine || true") == "0\n"
