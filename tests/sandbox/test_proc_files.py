"""What /proc says of the host's other users and processes can't be read in a sandbox."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Sandbox, Spec
from sandbox.bwrap import BwrapBackend
from tests.support.sandboxes import run, text

ROOT = Path(__file__).resolve().parents[2]
# Puts a key into a session keyring of its own, as logging in or Kerberos does, and looks for it in a sandbox: one with
# the programs named first, whose twin is looked into as well.
KEY = """
import ctypes, platform, sys
from pathlib import Path
from sandbox import Spec
from sandbox.bwrap import BwrapBackend
libc = ctypes.CDLL(None, use_errno=True)
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
JOIN_SESSION_KEYRING, SESSION = 1, -3
joined = libc.syscall(keyctl, JOIN_SESSION_KEYRING, None)
if joined < 0 or libc.syscall(add_key, b"user", b"canary", b"x", 1, SESSION) < 0:
    sys.exit(77)
assert "canary" in Path("/proc/keys").read_text()
backend = BwrapBackend()
with backend.open(Spec(graph=None, programs=sys.argv[1], shared=True)) as first:
    for sandbox in (first, backend.open(Spec(graph=None), twin_of=first)):
        done = sandbox.exec("cat /proc/keys /proc/self/root/proc/keys; echo end", timeout=60, cap=4000)
        print(done.head.decode(), end="")
"""


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("programs", ["all", "shell"])
def test_a_key_of_the_harnesss_session_is_not_seen(programs: str) -> None:
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the numbers of the system calls for keys are not known here")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KEY, programs]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=120)
    if done.returncode == 77:
        pytest.skip("kernel keys can't be made here")
    assert (done.returncode, done.stdout) == (0, "end\nend\n"), done.stderr


@pytest.mark.parametrize(
    "name", ["keys", "key-users", "locks", "timer_list", "timer_stats", "sched_debug", "latency_stats"]
)
def test_files_about_others_are_empty(bwrap: BwrapBackend, name: str) -> None:
    if not Path("/proc", name).exists():
        pytest.skip("this kernel has no such file")
    with bwrap.open(Spec(graph=None)) as sandbox:
        assert text(sandbox, f"cat /proc/{name} /proc/self/root/proc/{name}") == ""
        for change in (f"echo x > /proc/{name}", f"rm /proc/{name}", f"umount /proc/{name}", f"mv /proc/{name} /tmp/x"):
            assert run(sandbox, change).exit_code != 0


def test_keys_and_timers_tell_nothing_in_either_kind(shared: Sandbox) -> None:
    assert text(shared, "cat /proc/keys; cat /proc/timer_list 2>/dev/null || :") == ""


def test_what_programs_need_of_proc_is_there(shared: Sandbox) -> None:
    found = text(shared, "grep -c ^processor /proc/cpuinfo; grep -c MemTotal /proc/meminfo; wc -w < /proc/loadavg")
    assert all(int(count) > 0 for count in found.split())
    assert text(shared, "readlink /proc/self/cwd; tr '\\0' ' ' < /proc/$$/cmdline | cut -d ' ' -f 1").startswith(
        "/scratch"
    )
