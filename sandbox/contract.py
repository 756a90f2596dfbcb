"""What every sandbox promises: the `Sandbox` protocol, the limits it is opened with, and what a call returns.

A sandbox that is lost raises `SandboxLost`. A failing command is data (`ExecResult`), never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self, runtime_checkable

GRAPH = "/graph"  # where the agent finds the export's files/, read-only
SCRATCH = "/scratch"  # the agent's working directory, writable, of limited size, empty at the start
SHARED = (SCRATCH, "/tmp")  # noqa: S108 - what twins have in common, paths inside
OUTPUTS = "outputs"  # inside SCRATCH: whole outputs of calls that were cut, as NNN.txt

MiB = 1024 * 1024
GiB = 1024 * MiB

Programs = Literal["all", "shell"]
Termination = Literal["exit", "timeout", "oom", "pid_limit", "cpu_limit", "file_limit", "output_limit", "killed"]


class SandboxError(Exception):
    """Base of what this package raises. `hint` tells a person what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SandboxUnavailable(SandboxError):
    """No sandbox of this kind can be had on this machine (no daemon, no image, user namespaces forbidden)."""


class SandboxLost(SandboxError):
    """The sandbox died or broke its protocol: an infrastructure failure, never an observation of the agent."""


class SandboxFileError(SandboxError):
    """A `read` or `write` that failed as a file operation (no such file, a directory, no space): data."""


@dataclass(frozen=True)
class Limits:
    """Limits of one sandbox. Sizes in bytes, times in seconds; a tmpfs is charged to `memory`."""

    memory: int = 4 * GiB
    scratch: int = GiB
    tmp: int = 256 * MiB
    shm: int = 64 * MiB
    pids: int = 256
    cpus: float = 1.0  # docker only: share of the host's CPUs
    cpu_seconds: float = 3600.0  # CPU time of one call, all its processes together
    file_bytes: int = GiB  # the largest file a process may write

    def __post_init__(self) -> None:
        if self.memory < self.scratch + GiB:
            raise ValueError(
                f"sandbox.memory is {self.memory // MiB:,} MiB; it must be at least sandbox.scratch + 1 GiB,"
                f" {(self.scratch + GiB) // MiB:,} MiB"
            )


# Top-level folders of a sandbox that hold its own system, and those that it can write to.
_OWN_FOLDERS = {
    *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sandbox"),
    *("sbin", "scratch", "srv", "sys", "tmp", "usr", "var"),
}


@dataclass(frozen=True)
class Spec:
    """What to open: what is shown of the host, the limits, extra environment, who owns it.

    `graph` is the folder shown at GRAPH (None: there is no graph). `mounts` are further files and folders of the
    host, by their absolute path inside, where they are read-only too. A socket that listens in such a folder can be
    connected to from inside: see `sandbox.sockets`.

    `programs` is "all" for what the system or the image has and Python, or "shell" for shell tools alone: then no other
    language's interpreter is there, and nothing that can be written to can be executed (see `sandbox.shell_root`).

    `shared` is needed for a sandbox that is to have a twin: see `Backend.open`.
    """

    graph: Path | None
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)  # e.g. {"run": ..., "attempt": ...}, for clean
    mounts: Mapping[str, Path] = field(default_factory=dict)
    programs: Programs = "all"
    shared: bool = False

    def __post_init__(self) -> None:
        for inside in self.mounts:
            path = PurePosixPath(inside)
            top, *below = path.parts[1:] or ("",)
            plain = path.root == "/" and str(path) == inside and ".." not in path.parts and "\0" not in inside
            a_program = top == "sandbox" and len(below) == 2 and below[0] == "bin"
            if not plain or not top or (top in _OWN_FOLDERS and not a_program):
                raise ValueError(f"nothing can be mounted at {inside!r}: it is no plain path, or the sandbox's own")
            around = {str(parent) for parent in path.parents}
            if around & {*self.shown} or (inside == GRAPH and self.graph is not None):
                raise ValueError(f"nothing can be mounted at {inside!r}: something else is shown there")

    @property
    def shown(self) -> dict[str, Path]:
        """All that is shown of the host, the graph included: path inside -> file or folder."""
        return {**({} if self.graph is None else {GRAPH: self.graph}), **self.mounts}


@dataclass(frozen=True)
class ExecResult:
    """One call's outcome. `head + tail` is the whole output when `spill` is None; stdout and stderr are merged.

    `total_bytes` and `lines` count the whole output even where `head`/`tail` are cut. When the output is larger
    than the cap asked for, `spill` is the file's path relative to SCRATCH and `spilled_bytes` how much of the
    output it holds (less than `total_bytes` only where termination is "output_limit"). A line is a newline, and
    an unfinished last line counts. `exit_code` is the shell's (128 + signal if a signal ended it), None where
    the harness ended the call. `wall` and `cpu` are seconds, `memory` the peak bytes in use that were seen.
    """

    exit_code: int | None
    head: bytes
    tail: bytes
    total_bytes: int
    lines: int
    spill: str | None
    spilled_bytes: int
    termination: Termination
    wall: float
    cpu: float
    memory: int


@dataclass(frozen=True)
class FileSlice:
    """`data` is the bytes [offset, offset + len(data)) of a regular file that has `size` bytes in all."""

    data: bytes
    size: int


class ShellEnd(NamedTuple):
    """How a person's shell ended: its exit code, 137 where a limit ended it, and which one (`exit`: none)."""

    code: int
    termination: Termination


@runtime_checkable
class Sandbox(Protocol):
    """One attempt's sandbox; a context manager. Calls are not concurrent. `memory` may be read at any time."""

    kind: str  # "docker", "bwrap"

    @property
    def memory(self) -> int:
        """Bytes in use, as last reported from inside (a heartbeat while a call runs)."""
        ...

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        """Run `command` in a fresh bash and return when the shell exits, a limit is hit or `timeout` passes.

        At most `cap` bytes of output come back (half head, half tail). After the call nothing that it started
        is alive. Raises SandboxLost; ValueError if the command holds a NUL byte.
        """
        ...

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        """Read bytes of a regular file, as the agent would see it. Relative paths start at SCRATCH.

        Raises SandboxFileError (the file's fault) or SandboxLost.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file; missing parent folders are made. Raises SandboxFileError or SandboxLost."""
        ...

    def close(self) -> None:
        """End everything inside and remove the sandbox. Idempotent; never raises for an already lost sandbox."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Backend(Protocol):
    """A way to open sandboxes on this machine: one per kind, made by `sandbox.choose`. Thread-safe."""

    kind: str

    def open(self, spec: Spec, twin_of: Sandbox | None = None) -> Sandbox:
        """Open a sandbox; ready for calls on return. Raises SandboxUnavailable or SandboxLost.

        With `twin_of`, an open sandbox of this backend whose spec says `shared`, both have the same SHARED folders:
        what one writes there the other sees. All else is the twin's own: processes, limits, mounts, programs. Calls
        in the two may overlap. The twin is closed with its first; the memory of the first includes the twin's, and
        what is in the folders counts once.
        """
        ...

    def describe(self) -> dict[str, object]:
        """What a run's manifest records: kind, versions, image id and base (docker), the sandbox's Python."""
        ...

    def shell(self, spec: Spec) -> ShellEnd:
        """Give the person at this terminal a shell in a fresh sandbox; returns how it ended."""
        ...
