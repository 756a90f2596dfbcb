"""Shell tools alone, and exactly one Python program: run in a twin, as if it ran in the shell's own sandbox."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import Backend, Limits, OneProgramBackend, ProgramRun, SandboxLost, Spec, probe
from sandbox.contract import GiB, MiB
from sandbox.one_program import OneProgramSandbox, _Broker
from sandbox.program_request import code_of, quoted
from tests.support.sandboxes import alone, ancestors, command_lines, run, sleepers, still_works, text
from tests.support.waiting import wait_until

REFUSED = "python3: one Python program can be run here per question, and it has been run\n"
SMALL = Limits(memory=GiB + 64 * MiB, scratch=64 * MiB, tmp=8 * MiB, shm=8 * MiB, pids=64)
Open = Callable[[], AbstractContextManager[tuple[OneProgramSandbox, list[ProgramRun]]]]


@pytest.fixture(scope="module", params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def fresh(kind: Backend, graph: Path) -> Open:
    """Opens a sandbox that has run no program yet; beside it, what it tells of programs."""

    @contextmanager
    def opened() -> Iterator[tuple[OneProgramSandbox, list[ProgramRun]]]:
        runs: list[ProgramRun] = []
        with OneProgramBackend(kind, runs.append).open(Spec(graph, limits=SMALL, programs="shell")) as sandbox:
            yield sandbox, runs

    return opened


def test_one_is_run_and_no_second(fresh: Open) -> None:
    with fresh() as (sandbox, runs):
        assert text(sandbox, "echo before; ls /graph | wc -l") == "before\n2\n"
        assert text(sandbox, "python3 -c 'print(6 * 7)'") == "42\n"
        assert text(sandbox, "python3 -c 'print(6 * 7)' 2>&1; echo $?") == REFUSED + "1\n"
        refused = run(sandbox, "python script.py < /dev/null > out.txt")
        assert (refused.exit_code, refused.head.decode()) == (1, REFUSED)
        assert [(one.arguments, one.refused, one.exit_code) for one in runs] == [
            (("-c", "print(6 * 7)"), False, 0),
            (("-c", "print(6 * 7)"), True, None),
            (("script.py",), True, None),
        ]
        assert (runs[0].termination, runs[0].cwd, runs[0].code) == ("exit", "/scratch", b"print(6 * 7)")
        assert runs[0].wall > 0 and runs[0].cpu > 0 and runs[0].memory > 0


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cd /tmp; printf 'print(1)\\n' > s.py; python3 -B s.py x", b"print(1)\n"),
        ("mkdir d; printf pass > d/__main__.py; python3 d", None),
        ("python3 -m json.tool <<< []", None),
        ("head -c 1200000 /dev/zero | tr '\\0' '#' > large.py; python3 large.py", None),
    ],
)
def test_what_it_runs_is_told(fresh: Open, command: str, code: bytes | None) -> None:
    with fresh() as (sandbox, runs):
        text(sandbox, command)
        assert [(one.code, one.exit_code) for one in runs] == [(code, 0)]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["-c", "pass", "x"], (b"pass", None)),
        (["-Ibc", "pass"], (b"pass", None)),
        (["-cpass"], (b"pass", None)),
        (["-c"], (b"", None)),
        (["a.py", "-c", "x"], (None, b"a.py")),
        (["-E", "-W", "error", "-Xdev", "a.py"], (None, b"a.py")),
        (["--check-hash-based-pycs", "always", "--", "a.py"], (None, b"a.py")),
        (["-m", "a", "b.py"], (None, None)),
        (["-", "a.py"], (None, None)),
        (["-V"], (None, None)),
        (["-W"], (None, None)),
        ([], (None, None)),
    ],
)
def test_what_the_program_is_is_read_from_the_arguments(
    arguments: list[str], found: tuple[bytes | None, bytes | None]
) -> None:
    assert code_of([argument.encode() for argument in arguments]) == found


@pytest.mark.parametrize("first", ["python3 -c 'raise SystemExit(5)'", "python3 nosuch.py", "python3 -V", "python3"])
def test_a_failed_first_counts(fresh: Open, first: str) -> None:
    with fresh() as (sandbox, runs):
        run(sandbox, first)
        assert run(sandbox, "python3 -c 'print(1)'").head.decode() == REFUSED
        assert [one.refused for one in runs] == [False, True]


def test_of_many_at_once_one_is_run(fresh: Open) -> None:
    with fresh() as (sandbox, runs):
        result = run(sandbox, "for i in {1..20}; do python3 -c 'print(\"ran\")' & done; wait")
        assert result.head.decode().count("ran\n") == 1
        assert result.head.decode().count(REFUSED) == 19
        assert sorted(one.refused for one in runs) == [False] + [True] * 19


# A command -> what it prints. Each runs in a sandbox of its own.
COMMANDS = {
    "a script": ("echo 'import sys; print(sys.argv)' > s.py; python3 s.py a 'b c' é", "['s.py', 'a', 'b c', 'é']\n"),
    "a script in /tmp": ("echo 'print(__file__)' > /tmp/s.py; cd /tmp; python3 s.py; pwd", "/tmp/s.py\n/tmp\n"),
    "a here-document": ("python3 - x <<'E'\nimport sys\nprint(sys.argv)\nE", "['-', 'x']\n"),
    "a program on standard input": ("echo 'print(1)' | python", "1\n"),
    "a pipe in": ("seq 1000 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'", "500500\n"),
    "a pipe out": ("python3 -c 'for i in range(3): print(i)' | tac | tr '\\n' ' '", "2 1 0 "),
    "a reader that leaves": (
        "yes | python3 -c 'import itertools\nfor i in itertools.count(): print(i)' 2>/dev/null | head -n 2;"
        " echo ${PIPESTATUS[@]:1}",
        "0\n1\n1 0\n",
    ),
    "a program that doesn't read": ("yes | python3 -c pass; echo ${PIPESTATUS[1]}", "0\n"),
    "redirections": (
        "python3 -c 'import sys; print(1); print(2, file=sys.stderr)' > out 2> err; cat err out",
        "2\n1\n",
    ),
    "one order": ("python3 -c 'import os\nfor i in range(6): os.write(i % 2 + 1, b\"%d\" % i)'", "012345"),
    "exit codes": ("python3 -c 'raise SystemExit(7)' && echo no || echo $?", "7\n"),
    "a signal": ("python3 -c 'import os; os.kill(os.getpid(), 9)'; echo $?", "137\n"),
    "the environment": (
        "A=$'\\x01 \\'q\\n' python3 -c 'import os; print(ascii(os.environ[\"A\"]), os.environ[\"GRAPH\"])'",
        '"\\x01 \'q\\n" /graph\n',
    ),
    "arguments of any bytes": (
        "python3 -c 'import os, sys; print(*map(os.fsencode, sys.argv[1:]))' $'\\xff\\'' '' -- '$HOME `x`' $'\\n'",
        "b\"\\xff'\" b'' b'--' b'$HOME `x`' b'\\n'\n",
    ),
    "files of both": (
        'echo 1 > a; python3 -c \'open("b", "w").write(open("a").read() * 2)\'; cat b; rm a b; ls -A',
        "1\n1\n",
    ),
    "the graph": ("cd /graph; python3 -c 'import os; print(sorted(os.listdir()))'", "['DATA_FORMAT.txt', 'nodes']\n"),
    "subprocesses": (
        'python3 -c \'import subprocess; print(subprocess.check_output(["seq", "3"]))\'',
        "b'1\\n2\\n3\\n'\n",
    ),
    "not in a shared folder": (
        "mkdir /dev/shm/d; cd /dev/shm/d; python3 -c pass 2>&1 | sed 's/.*: cd/cd/'; echo ${PIPESTATUS[0]}",
        "cd: /dev/shm/d: No such file or directory\n1\n",
    ),
    "a time limit of the shell's": ("timeout 1 python3 -c 'import time; time.sleep(1000)'; echo $?", "124\n"),
    "closed streams": ("python3 -c 'print(1)' >&-; python3 -c 'print(1)' 2>/dev/null <&-; echo $?", "1\n"),
    "no trace in /tmp": ("python3 -c pass; ls -A /tmp", ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_as_if_it_ran_here(fresh: Open, name: str) -> None:
    command, output = COMMANDS[name]
    with fresh() as (sandbox, _):
        result = run(sandbox, command)
        assert (result.termination, result.head.decode()) == ("exit", output)
        assert alone(sandbox)


def test_there_is_no_interpreter_here(fresh: Open) -> None:
    with fresh() as (sandbox, _):
        assert (
            text(sandbox, "find / -xdev \\( -name '*.py' -o -name 'libpython*' -o -name 'python3?*' \\) 2>/dev/null")
            == ""
        )
        assert text(sandbox, "type -a python3 python") == (
            "python3 is /sandbox/bin/python3\npython is /sandbox/bin/python\n"
        )
        assert run(sandbox, "cp /sandbox/bin/python3 copy").exit_code == 1
        for command in (
            "rm /attempt/python",
            "touch /attempt/x",
            "rm /sandbox/bin/python3",
            "cat /sandbox/bin/python3",
        ):
            assert run(sandbox, command).exit_code == 1


def test_the_probe_tries_a_second_program(kind: Backend, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def programs() -> tuple[bool, str]:
        backend = OneProgramBackend(kind, lambda _: None)
        results = {each.name: each for each in probe(backend, Spec(graph, limits=SMALL, programs="shell"), [])}
        return results["programs"].passed, results["programs"].detail

    assert programs() == (True, "what the mode asks for")
    monkeypatch.setattr(_Broker, "_used", property(lambda _: False, lambda *_: None), raising=False)
    assert programs() == (False, "a second program was run")


def test_what_streams_is_of_any_size(fresh: Open) -> None:
    program = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line.upper())"
    with fresh() as (sandbox, _):
        result = run(sandbox, f"yes abcdefghi | head -c 300000000 | python3 -c '{program}' | tail -c 300000000 | wc -c")
        assert result.head == b"300000000\n"
    with fresh() as (sandbox, _):
        result = run(sandbox, "python3 -c 'for i in range(1_000_000): print(i)'", cap=1000)
        assert (result.lines, result.total_bytes, result.spill) == (1_000_000, 6_888_890, "outputs/001.txt")


@pytest.mark.parametrize(
    ("command", "termination"),
    [
        ("python3 -c 'import time; time.sleep({n})'", "timeout"),
        ("python3 -c 'import os, time; os.fork(); time.sleep({n})' & sleep 1000", "timeout"),
        ('python3 -c \'import subprocess; subprocess.run(["sleep", "{n}"])\' & sleep 1', "exit"),
        ('python3 -c \'import subprocess; subprocess.run(["sleep", "{n}"])\' & echo', "exit"),
        ("(setsid python3 -c 'import time; time.sleep({n})' &) ; kill -9 $$", "killed"),
    ],
)
def test_the_program_ends_with_the_call(fresh: Open, command: str, termination: str) -> None:
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    with fresh() as (sandbox, runs):
        result = run(sandbox, command.format(n=seconds), timeout=2)
        assert result.termination == termination
        assert not sleepers(seconds)
        assert not [line for _, line in command_lines() if any(seconds in word for word in line)]
        assert still_works(sandbox)
        assert all(one.termination is None for one in runs)


def test_a_request_of_a_call_that_is_over_is_none(fresh: Open) -> None:
    with fresh() as (sandbox, runs):
        for _ in range(20):
            run(sandbox, "python3 -c pass & kill -9 $$")
        assert len([one for one in runs if not one.refused]) <= 1


def test_a_limit_ends_the_program_not_the_call(fresh: Open) -> None:
    with fresh() as (sandbox, runs):
        result = run(sandbox, "python3 -c 'print(1, flush=True); x = []\nwhile 1: x.append(b\"x\" * 9999999)'; echo $?")
        assert (result.termination, result.head.decode()) == ("exit", "1\npython3: it used too much memory\n137\n")
        assert runs[0].termination == "oom"
        assert result.memory > 500 * MiB
    with fresh() as (sandbox, runs):
        result = run(
            sandbox, "python3 -c 'import os\nwhile 1:\n try: os.fork()\n except OSError: pass' 2>/dev/null; echo $?"
        )
        assert result.head.decode() == "137\n"
        assert runs[0].termination == "pid_limit"


def test_what_the_program_used_is_the_calls(fresh: Open) -> None:
    with fresh() as (sandbox, runs):
        result = run(sandbox, "python3 -c 'x = bytearray(200_000_000); sum(range(3_000_000))'")
        assert result.memory >= 200_000_000
        assert result.cpu >= runs[0].cpu > 0.01


def test_a_twin_that_is_lost_is_a_lost_sandbox(fresh: Open) -> None:
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    errors: list[SandboxLost] = []
    with fresh() as (sandbox, runs):

        def call() -> None:
            try:
                sandbox.exec(f'python3 -c \'import os; os.execlp("sleep", "sleep", "{seconds}")\'; echo $?', 60, 100)
            except SandboxLost as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        wait_until(lambda: bool(sleepers(seconds)))
        inside = ancestors(sleepers(seconds)[0])
        (supervisor,) = [pid for pid, line in command_lines() if line == ["/sandbox/supervisor"] and pid in inside]
        try:
            os.kill(supervisor, signal.SIGKILL)
        except PermissionError:
            sandbox.close()
            thread.join()
            pytest.skip("this user may not kill a container's process")
        thread.join()
        assert len(errors) == 1
        assert [one.termination for one in runs] == [None]


def test_closing_from_another_thread_ends_the_program(fresh: Open) -> None:
    seconds = str(100_000 + int.from_bytes(os.urandom(4), "big"))
    errors: list[SandboxLost] = []
    with fresh() as (sandbox, _):

        def call() -> None:
            try:
                sandbox.exec(f'python3 -c \'import os; os.execlp("sleep", "sleep", "{seconds}")\'', 60, 100)
            except SandboxLost as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        wait_until(lambda: bool(sleepers(seconds)))
        sandbox.close()
        thread.join()
    assert len(errors) == 1
    wait_until(lambda: not sleepers(seconds))


HOSTILE = [
    b"",
    b"\n",
    b"run\n",
    b"run 0 5 5 5\n",
    b"run 0 99999999 1 1\n",
    b"run 0 999999999999 1 1\n",
    b"run x y z w\n",
    b"run 0 0 0 0\n",
    b"exit 0 0\n",
    b"\xff" * 1000,
    b"run 0 9 2 2\n/scratch\0a\0b\0",
]


def test_hostile_words_are_no_program(fresh: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with fresh() as (sandbox, runs):
        (address,) = tmp_path.glob("*/shown/python")
        for words in HOSTILE:
            with socket.socket(socket.AF_UNIX) as agent:
                agent.connect(str(address))
                agent.sendall(words)
                with contextlib.suppress(ConnectionError):  # it may have hung up at the first word
                    agent.shutdown(socket.SHUT_WR)
                    assert agent.recv(100) == b"", words
        assert runs == []
        assert text(sandbox, "python3 -c 'print(1)'") == "1\n"
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"")), max_size=5))
def test_any_bytes_are_words_of_bash(words: list[bytes]) -> None:
    script = "printf '%s\\0' x " + " ".join(map(quoted, words))
    assert script.isascii()
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert said.split(b"\0")[1:-1] == words


def test_outside_of_a_sandbox_it_says_that_there_is_no_python() -> None:
    program = Path(__file__).resolve().parents[2] / "sandbox" / "bin" / f"stand_in-{platform.machine()}"
    done = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (126, "python3: no Python can be asked for: No such file or directory\n")
