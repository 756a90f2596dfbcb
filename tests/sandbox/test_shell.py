"""A person's shell in the sandbox, driven through a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from sandbox import Backend

ROOT = Path(__file__).resolve().parents[2]
SHELL = """
import sys
from pathlib import Path
from sandbox import Limits, Spec, choose
end = choose(sys.argv[1]).shell(Spec(Path(sys.argv[2]), limits=Limits(pids=64, memory=1100 << 20, scratch=64 << 20)))
print(f"left with {end.code} {end.termination}")
"""
PROMPT = r"sandbox:~\$ "


@pytest.fixture
def terminal(backend: Backend, graph: Path) -> Iterator[pexpect.spawn]:
    arguments = ["-c", SHELL, backend.kind, str(graph)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    child = pexpect.spawn(
        sys.executable, arguments, env=env, cwd=ROOT, dimensions=(31, 97), timeout=60, encoding="utf-8"
    )
    try:
        child.expect(PROMPT)
        yield child
    finally:
        child.close(force=True)


def test_it_is_the_agents_sandbox(terminal: pexpect.spawn) -> None:
    terminal.sendline("id -un; pwd; cat $GRAPH/DATA_FORMAT.txt; rg --version | head -n 1; echo $TERM")
    terminal.expect("agent\r\n/scratch\r\nnodes/0000.jsonl\r\nripgrep [^\r]*\r\nxterm\r\n")
    terminal.expect(PROMPT)
    terminal.sendline("touch /graph/x")
    terminal.expect("Read-only file system")


def test_the_exit_code_comes_out_and_the_terminal_is_as_before(terminal: pexpect.spawn) -> None:
    terminal.sendline("exit 7")
    terminal.expect("left with 7 exit\r\n")
    terminal.expect(pexpect.EOF)


def test_it_is_a_real_terminal(terminal: pexpect.spawn) -> None:
    terminal.sendline("tty; stty size")
    terminal.expect("/dev/pts/[0-9]+\r\n31 97\r\n")
    terminal.expect(PROMPT)
    terminal.setwinsize(40, 120)
    terminal.sendline("until [ \"$(stty size)\" = '40 120' ]; do :; done; echo resized")
    terminal.expect("[\r\n]resized\r\n")


def test_keys_that_mean_something(terminal: pexpect.spawn) -> None:
    terminal.sendline("cat; echo code $?")
    terminal.sendline("typed")
    terminal.expect("typed\r\ntyped\r\n")
    terminal.sendintr()
    terminal.expect(PROMPT)
    terminal.sendline("sh -c 'echo lef\x7fft; exec sleep 1000'")  # one job, which Ctrl-Z stops at any moment
    terminal.expect("left\r\n")
    terminal.send("\x1a")  # Ctrl-Z
    terminal.expect("Stopped")
    terminal.expect(PROMPT)
    terminal.sendline("kill -KILL %1; wait %1; echo é中")  # else Ctrl-D may come before it is gone
    terminal.expect("é中\r\n")
    terminal.send("\x04")
    terminal.expect("left with [0-9]+ exit\r\n")


def test_a_flood_on_the_screen(terminal: pexpect.spawn) -> None:
    terminal.sendline("seq 100000; echo end of it")
    terminal.expect("99999\r\n100000\r\nend of it\r\n", timeout=120)


def test_it_has_the_agents_limits(terminal: pexpect.spawn) -> None:
    terminal.sendline("f() { f | f; }; f")
    terminal.expect("left with 137 pid_limit\r\n", timeout=120)


def test_it_says_that_memory_ran_out(terminal: pexpect.spawn) -> None:
    """The kernel may take the program alone, by which the shell lives on; the watch ends all."""
    terminal.sendline("exec python3 -c 'x = [bytearray(1 << 20) for _ in range(1 << 20)]'")
    terminal.expect("left with (137 oom|137 exit)\r\n", timeout=120)


def test_a_shell_that_is_killed_from_inside(terminal: pexpect.spawn) -> None:
    terminal.sendline("kill -KILL $$")
    terminal.expect("left with 137 exit\r\n")


def test_without_a_terminal_there_is_no_shell(backend: Backend, graph: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHELL, backend.kind, str(graph)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        check=False,
        timeout=120,
    )
    assert "a shell in the sandbox needs a terminal" in done.stderr
