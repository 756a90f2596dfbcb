"""A Python that lives from call to call: what persists, how it ends, and that a call keeps the rules of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox import Backend, Kernel, KernelResult, Limits, Sandbox, SandboxLost, Spec
from sandbox.contract import GiB, MiB
from tests.support.sandboxes import alone, sleepers, text
from tests.support.waiting import wait_until

SMALL = Limits(memory=GiB + 64 * MiB, scratch=64 * MiB, tmp=8 * MiB, shm=8 * MiB, pids=40, cpu_seconds=2.0)


@pytest.fixture(scope="module", params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def both(kind: Backend, graph: Path) -> Iterator[tuple[Sandbox, Kernel]]:
    """A sandbox and the kernel beside it, for the tests that leave both as they found them."""
    spec = Spec(graph, limits=SMALL, shared=True)
    with kind.open(spec) as sandbox, Kernel(kind, Spec(graph, limits=SMALL), sandbox) as kernel:
        yield sandbox, kernel


@pytest.fixture
def fresh(both: tuple[Sandbox, Kernel]) -> Kernel:
    """The kernel with a new interpreter."""
    both[1].run("import os; os._exit(0)", 10, 100)
    return both[1]


def said(kernel: Kernel, code: str, timeout: float = 20) -> str:
    """The output of code that must succeed, in an interpreter that lives on."""
    done = run(kernel, code, timeout)
    assert (done.exec.termination, done.exec.exit_code, done.alive) == ("exit", 0, True), done
    return done.exec.head.decode()


def run(kernel: Kernel, code: str, timeout: float = 20, cap: int = 100_000) -> KernelResult:
    return kernel.run(code, timeout, cap)


def test_functions_and_data_persist(fresh: Kernel) -> None:
    assert said(fresh, "import json\nkept = {'a': [1, 2]}\ndef double(x):\n    return x * 2") == ""
    assert said(fresh, "double(kept['a'])") == "[1, 2, 1, 2]\n"
    assert said(fresh, "kept['b'] = json.dumps(double(kept['a']))") == ""
    assert (said(fresh, "5"), said(fresh, "_ * 2")) == ("5\n", "10\n")
    assert said(fresh, "print(kept)\nclass C:\n    x = _ = 3\nC.x") == "{'a': [1, 2], 'b': '[1, 2, 1, 2]'}\n3\n"


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("1 + 1", "2\n"),
        ("'text'", "'text'\n"),
        ("None", ""),
        ("print(1); 2", "1\n2\n"),
        ("x = 1", ""),
        ("1\n2\n3", "3\n"),
        ("if True:\n    5", ""),
        ("(1,\n 2)", "(1, 2)\n"),
        ("", ""),
        ("# nothing", ""),
        ("\n\n  \n7", "7\n"),
        ("'æ 中 🧬'", "'æ 中 🧬'\n"),
        ("'''a\n'b\"'''", "'a\\n\\'b\"'\n"),
        ("def f():\n    'doc'", ""),
        ("lambda: 0", "<function <lambda> at"),
        ("from __future__ import annotations\n1", "1\n"),
        ("__name__", "'__main__'\n"),
        ("import sys; sys.argv, sys.path[0]", "([''], '')\n"),
        ("import os; os.getcwd()", "'/scratch'\n"),
        (
            "import os, sys; os.write(1, b'a'); print('b', flush=True); x = sys.stderr.write('c'); print('d')",
            "ab",
        ),
        ("try:\n    input()\nexcept EOFError:\n    print('end')", "end\n"),
        ("import inspect\ndef g(): return 1\ninspect.getsource(g)", "'def g(): return 1\\n'\n"),
    ],
)
def test_code_runs_as_if_typed(both: tuple[Sandbox, Kernel], code: str, output: str) -> None:
    assert said(both[1], code).startswith(output) if output else said(both[1], code) == ""


@pytest.mark.parametrize(
    ("code", "exit_code", "last"),
    [
        ("print('before')\n1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("a b", 1, "SyntaxError: invalid syntax"),
        ("def f(:", 1, "SyntaxError: invalid syntax"),
        ("  1", 1, "IndentationError: unexpected indent"),
        ("'\0'", 1, "source code string cannot contain null bytes"),
        ("(" * 2000, 1, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('words')", 1, "words"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("raise BaseException('mine')", 1, "BaseException: mine"),
        ("def f(): f()\nf()", 1, "RecursionError: maximum recursion depth exceeded"),
        ("compile('a b', 'x', 'exec')", 1, "SyntaxError: invalid syntax"),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", 1, ""),
    ],
)
def test_a_failure_is_shown_and_ends_nothing(fresh: Kernel, code: str, exit_code: int, last: str) -> None:
    assert said(fresh, "kept = 1") == ""
    done = run(fresh, code)
    shown = done.exec.head.decode()
    assert (done.exec.termination, done.exec.exit_code, done.alive, done.notice) == ("exit", exit_code, True, "")
    assert last in shown.splitlines()[-1] if last else True
    assert "_execute" not in shown and 'File "<string>"' not in shown  # none of the kernel's own frames
    assert said(fresh, "kept") == "1\n"


def test_a_traceback_shows_the_lines_of_every_call(fresh: Kernel) -> None:
    said(fresh, "def inner(x):\n    return 1 / x  # the culprit")
    shown = run(fresh, "def outer():\n    inner(0)\nouter()").exec.head.decode()
    assert [line.strip() for line in shown.splitlines() if "File" in line or "culprit" in line] == [
        'File "<call 2>", line 3, in <module>',
        'File "<call 2>", line 2, in outer',
        'File "<call 1>", line 2, in inner',
        "return 1 / x  # the culprit",
    ]


def test_files_are_the_sandboxs(both: tuple[Sandbox, Kernel]) -> None:
    sandbox, kernel = both
    text(sandbox, "echo from bash > one; echo tmp > /tmp/two")
    assert said(kernel, "open('/tmp/three', 'w').write(open('one').read() + open('/tmp/two').read())") == "14\n"
    assert text(sandbox, "cat /tmp/three; rm one /tmp/*") == "from bash\ntmp\n"
    assert said(kernel, "import os; sorted(os.listdir('/graph'))") == "['DATA_FORMAT.txt', 'nodes']\n"
    assert alone(sandbox)


# The deadline


def test_a_call_that_takes_too_long_is_interrupted(fresh: Kernel) -> None:
    said(fresh, "import time\nkept = 1")
    done = run(fresh, "print('partial')\ntime.sleep(1000)", timeout=0.3)
    assert (done.exec.termination, done.exec.exit_code, done.alive, done.notice) == ("timeout", None, True, "")
    shown = done.exec.head.decode()
    assert shown.startswith("partial\nTraceback") and shown.endswith("\nKeyboardInterrupt\n")
    assert 'File "<string>"' not in shown
    assert said(fresh, "kept") == "1\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    try: time.sleep(1)\n    except BaseException: pass",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}); time.sleep(1000)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_one_that_goes_on_is_killed_and_the_next_starts_anew(fresh: Kernel, code: str) -> None:
    said(fresh, "import time\nkept = 1")
    done = run(fresh, code, timeout=0.2)
    assert (done.exec.termination, done.exec.exit_code, done.alive) == ("timeout", None, False)
    assert "the next call starts it anew" in done.notice
    after = run(fresh, "print('kept' in globals())")
    assert (after.exec.head, after.anew, after.alive) == (b"False\n", True, True)
    assert "started anew" in after.notice
    assert run(fresh, "1").notice == ""


def test_an_interruption_that_comes_too_late_does_no_harm(fresh: Kernel) -> None:
    said(fresh, "import time\ndone = 0")
    for _ in range(30):
        ended = run(fresh, "time.sleep(0.01)\ndone += 1", timeout=0.0101)
        assert ended.alive and ended.exec.termination in {"exit", "timeout"}
    assert 0 <= int(said(fresh, "done")) <= 30


# Limits


def test_memory(fresh: Kernel) -> None:
    said(fresh, "kept = bytearray(b'x') * 600_000_000")
    done = run(fresh, "more = []\nwhile True: more.append(bytearray(b'x') * 5_000_000)")
    assert (done.exec.termination, done.exec.exit_code, done.alive) == ("oom", None, False)
    assert run(fresh, "print(1)").anew


def test_memory_that_it_holds_is_told(both: tuple[Sandbox, Kernel], fresh: Kernel) -> None:
    sandbox, kernel = both
    said(kernel, "kept = bytearray(b'x') * 200_000_000")
    assert kernel.memory >= 200_000_000
    assert sandbox.memory >= 200_000_000
    done = run(kernel, "del kept")
    assert kernel.memory < 100_000_000
    assert done.exec.memory < 300_000_000


def test_processes(fresh: Kernel) -> None:
    start = "import threading, time\nwhile True:\n    try: threading.Thread(target=time.sleep, args=(100,)).start()\n"
    done = run(fresh, start + "    except RuntimeError: time.sleep(0.001)")
    assert done.exec.termination == "pid_limit"
    assert not done.alive


def test_cpu_time_is_a_calls_own(fresh: Kernel) -> None:
    """The limit is 2 s: several calls use more together, and one that uses more is interrupted."""
    burn = "end = time.process_time() + {}\nwhile time.process_time() < end: pass"
    said(fresh, "import time\nkept = 1")
    for _ in range(3):
        said(fresh, burn.format(0.8))
    done = run(fresh, burn.format(1000))
    assert (done.exec.termination, done.exec.exit_code, done.alive) == ("cpu_limit", None, True)
    assert 1.5 < done.exec.cpu < 20
    assert said(fresh, "kept") == "1\n"


# Output


def test_output_is_cut_and_spilled_as_a_commands(both: tuple[Sandbox, Kernel]) -> None:
    sandbox, kernel = both
    done = run(kernel, "for i in range(1, 100_001): print(i)", cap=100)
    expected = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
    assert (done.exec.head, done.exec.tail) == (expected[:50], expected[-50:])
    assert (done.exec.total_bytes, done.exec.lines, done.exec.spilled_bytes) == (len(expected), 100_000, len(expected))
    assert done.exec.spill is not None
    assert sandbox.read(done.exec.spill, 0, 10**6).data == expected
    text(sandbox, "rm -r outputs")


def test_output_that_does_not_fit_into_scratch(both: tuple[Sandbox, Kernel], fresh: Kernel) -> None:
    sandbox, kernel = both
    said(kernel, "kept = 1")
    done = run(kernel, "while True: print('x' * 1_000_000)", cap=100)
    assert (done.exec.termination, done.alive) == ("output_limit", True)
    text(sandbox, "rm -r outputs")
    assert said(kernel, "kept") == "1\n"


def test_the_output_of_subprocesses_is_the_calls(both: tuple[Sandbox, Kernel]) -> None:
    assert (
        said(both[1], "import subprocess\nsubprocess.run('echo a; echo b >&2', shell=True).returncode") == "a\nb\n0\n"
    )


# What the code starts


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def test_what_it_starts_is_stopped_between_calls_and_ends_with_it(fresh: Kernel) -> None:
    ticking = "import itertools, threading, time\ncount = 0\ndef tick():\n    global count\n"
    ticking += "    while True:\n        count += 1\n        time.sleep(0.001)\n"
    said(fresh, ticking + "threading.Thread(target=tick, daemon=True).start()")
    said(fresh, "import subprocess\nchild = subprocess.Popen(['sleep', '123456789'])")
    wait_until(lambda: bool(sleepers("123456789")))
    before = int(said(fresh, "count"))
    wait_until(lambda: [state(pid) for pid in sleepers("123456789")] == ["T"])  # the signal is on its way
    assert int(said(fresh, "time.sleep(0.1); count")) > before
    assert said(fresh, "child.poll()") == ""
    run(fresh, "import os; os._exit(3)")
    assert sleepers("123456789") == []


def test_a_fork_that_returns_does_not_answer(fresh: Kernel) -> None:
    assert said(fresh, "import os\nif os.fork():\n    os.wait()\nelse:\n    print('child')\nkept = 1") == "child\n"
    assert said(fresh, "kept") == "1\n"
    assert said(fresh, "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))") == "[1, 2]\n"


@pytest.mark.parametrize(
    "code", ["os._exit(7)", "os.abort()", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"]
)
def test_an_interpreter_that_ends_itself(fresh: Kernel, code: str) -> None:
    said(fresh, "import os")
    done = run(fresh, f"print('before', flush=True)\n{code}")
    assert not done.alive and done.exec.exit_code != 0
    assert done.exec.head.startswith(b"before\n")
    assert done.exec.termination == ("exit" if "_exit" in code else "killed")
    assert said(fresh, "2") == "2\n"


@pytest.mark.parametrize(
    "code",
    [
        "os.close(4)",
        "s.shutdown(socket.SHUT_RDWR)",
        "s.send(b'')",
        "s.send(b'999999 0')",
        "s.send(b'\\xff' * 1000)",
        "for i in range(100): s.send(b'%d 0' % i)",
        "s.setblocking(False)\nwhile True:\n    try: s.send(b'1 0')\n    except BlockingIOError: pass",
        "os.dup2(os.open('/dev/null', os.O_RDWR), 4)",
    ],
)
def test_its_socket_misused(fresh: Kernel, code: str) -> None:
    """The code can end its own call, or the interpreter; nothing else."""
    run(fresh, "import os, socket\ns = socket.socket(fileno=os.dup(4))")
    run(fresh, code, timeout=0.5)
    for _ in range(101):  # each of its answers may be taken for that of a later call
        done = run(fresh, "print(6 * 7)")
        if done.exec.head == b"42\n":
            break
    assert done.exec.head == b"42\n"


def test_it_is_closed_with_its_sandbox(kind: Backend) -> None:
    with ExitStack() as stack:
        sandbox = stack.enter_context(kind.open(Spec(None, limits=SMALL, shared=True)))
        kernel = stack.enter_context(Kernel(kind, Spec(None, limits=SMALL), sandbox))
        said(kernel, "import subprocess; subprocess.Popen(['sleep', '123456788']); 1")
        assert text(sandbox, "echo still here") == "still here\n"
        sandbox.close()
        with pytest.raises(SandboxLost):
            kernel.run("1", 10, 100)
        wait_until(lambda: not sleepers("123456788"))


def test_a_sandbox_that_is_not_shared_has_none(kind: Backend) -> None:
    with kind.open(Spec(None, limits=SMALL)) as sandbox, pytest.raises(ValueError, match="shared"):
        Kernel(kind, Spec(None, limits=SMALL), sandbox)


def test_a_call_out_of_bounds_is_refused(both: tuple[Sandbox, Kernel]) -> None:
    kernel = both[1]
    for code, timeout, cap in (("1", 0.0, 10), ("1", float("nan"), 10), ("1", 10, -1), ("'\ud800'", 10, 10)):
        with pytest.raises(ValueError, match=r"timeout|cap|surrogate"):
            kernel.run(code, timeout, cap)
    assert said(kernel, "1") == "1\n"
