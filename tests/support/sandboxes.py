"""What the sandbox tests share: a graph to open sandboxes on, and a look at the machine's processes from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox import Backend, ExecResult, Sandbox, ShellEnd, Spec
from sandbox.bwrap import BwrapBackend, candidates

CANARY = "canary-5d1c7e90-gold-label"
NODE = '{"node_id":0,"node_type":"gene","name":"TP53","is_candidate":true,"attributes":{}}'


def make_export(folder: Path) -> Path:
    """A folder like an export: files/ for the agent, and labels beside it that the agent must not see."""
    for name, text in {
        "files/DATA_FORMAT.txt": "nodes/0000.jsonl\n",
        "files/nodes/0000.jsonl": NODE + "\n",
        "queries/test.jsonl": f'{{"id":"q1","query":"?","answer_ids":[0],"note":"{CANARY}"}}\n',
        "index/offsets.bin": CANARY,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder / "files"


def run(sandbox: Sandbox, command: str, timeout: float = 60, cap: int = 20_000) -> ExecResult:
    return sandbox.exec(command, timeout, cap)


def text(sandbox: Sandbox, command: str, timeout: float = 60) -> str:
    """The output of a command that must succeed and not be cut."""
    result = sandbox.exec(command, timeout, 1_000_000)
    assert (result.termination, result.exit_code, result.spill) == ("exit", 0, None), result
    return result.head.decode()


def still_works(sandbox: Sandbox) -> bool:
    return text(sandbox, "echo alive") == "alive\n"


def alone(sandbox: Sandbox) -> bool:
    """No process lives in the sandbox but the supervisor and the shell that looks."""
    return text(sandbox, "set -- /proc/[0-9]*; echo $#") == "2\n"


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """(pid, arguments) of every process of this machine that we may look at."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                data = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            yield int(entry.name), data.decode(errors="replace").split("\0")[:-1]


def sleepers(seconds: str) -> list[int]:
    """Processes that run `sleep SECONDS`: a number that no other process uses marks those of one test."""
    return [pid for pid, line in command_lines() if line == ["sleep", seconds]]


def lives(pid: int) -> bool:
    """There is such a process, and it is no zombie that only waits for its parent to look."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def ancestors(pid: int) -> list[int]:
    """PIDs of a process's parents, nearest first, as far as they can be seen."""
    found = []
    while pid > 1:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


@dataclass(frozen=True)
class ShellOnly:
    """A backend whose sandboxes have shell tools alone."""

    inner: Backend

    @property
    def kind(self) -> str:
        return self.inner.kind

    def open(self, spec: Spec) -> Sandbox:
        return self.inner.open(replace(spec, programs="shell"))

    def describe(self) -> dict[str, object]:
        return self.inner.describe()

    def shell(self, spec: Spec) -> ShellEnd:
        return self.inner.shell(replace(spec, programs="shell"))


# A bwrap that changes the arguments it is given before it passes them to the real one.
WEAKENING = """#!{python}
import os, sys
arguments = sys.argv[1:]
if arguments[0] == "--args":
    words = os.read(int(arguments[1]), 1 << 20).split(b"\\0")[:-1]
    words = [word.decode() for word in words]
    {change}
    fd = os.memfd_create("arguments", 0)
    os.write(fd, b"".join(word.encode() + b"\\0" for word in words))
    os.lseek(fd, 0, os.SEEK_SET)
    arguments[1] = str(fd)
os.execv({bwrap!r}, ["bwrap", *arguments])
"""


def changed_bwrap(folder: Path, change: str) -> BwrapBackend:
    """Bubblewrap with its arguments, the list `words`, changed by this Python statement."""
    program = folder / "bwrap"
    program.write_text(WEAKENING.format(python=sys.executable, change=change, bwrap=next(iter(candidates()))))
    program.chmod(0o755)
    return BwrapBackend([str(program)])
