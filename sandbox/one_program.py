"""A sandbox with shell tools alone in which exactly one Python program can be run.

There is no interpreter in it: its `python3` is a stand-in (`sandbox/stand_in/`) that asks us, over a Unix socket, to
run the program. We run the first one, in a twin with Python over the same /scratch and /tmp, and refuse all others; a
program that fails, or that is no program (`python3 --version`), counts too. It ends with the call that started it.

The protocol. The stand-in speaks first; lengths are those of what follows, strings each ended by a NUL:

    run MERGED CWD ARGUMENTS ENVIRONMENT    payload: the folder, the arguments, the environment. MERGED is 1 where
                                            standard output and error are one
    exit CODE LENGTH                        from us: refused, or over. payload: a text for standard error
    make                                    from us: make the pipes
    made FOLDER                             they are the folder's `in`, `out` and, unless merged, `err`
    exit CODE LENGTH                        from us, when the program is over

What the program writes goes through the pipes and what comes out of them is the call's own output. What is not shared:
/dev/shm, and the stand-in's working directory where that is in none of the shared folders or mounts. The twin has
limits of its own, so that shell and program together may use twice a sandbox's memory and processes.

What stays open: it is one execution that is counted, not one text. While its call lasts, a program can start others,
and run what the shell meanwhile writes to files; it finds what a sandbox with Python has, other interpreters too.
"""

from __future__ import annotations

import contextlib
import os
import platform
import posixpath
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from sandbox.around import Around
from sandbox.contract import (
    Backend,
    ExecResult,
    MiB,
    Sandbox,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    SandboxUnavailable,
    ShellEnd,
    Spec,
    Termination,
)
from sandbox.program_request import LONGEST_LINE, Request, code_of, gone, read_line, received
from sandbox.sockets import listening

REFUSAL = "python3: one Python program can be run here per question, and it has been run"
STAND_INS = ("/sandbox/bin/python3", "/sandbox/bin/python")

_FOLDER = "/attempt"  # where the stand-in looks for the socket
_SOCKET = "python"
_MAX_CODE = MiB  # bytes of a program that is told
_PATIENCE = 10.0  # seconds that the stand-in may take to say what it has to
_OVERTIME = 5.0  # seconds past the call's deadline: the call ends first, and the program with it
_KILLED = 137
_ENDED: dict[Termination, str] = {
    "timeout": "it ran out of time",
    "oom": "it used too much memory",
    "pid_limit": "it started too many processes",
    "cpu_limit": "it used too much CPU time",
    "file_limit": "it wrote too large a file",
    "output_limit": "it wrote too much",
}


@dataclass(frozen=True)
class ProgramRun:
    """One time that Python was asked for. Where it was `refused` there is nothing but arguments and folder.

    `code` is the program as it was given or lay in its file (up to 1 MiB); None where it came on standard input, or
    is a module, or none at all. `exit_code` and `termination` are those of a call; both are None where it ended
    because its call did. Text that is not UTF-8 has its bytes escaped. `wall` and `cpu` are seconds, `memory` the peak
    bytes that were seen.
    """

    arguments: tuple[str, ...]
    cwd: str
    refused: bool
    code: bytes | None = None
    exit_code: int | None = None
    termination: Termination | None = None
    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0


class OneProgramBackend:
    """Opens such sandboxes on another backend. `ran` is told of every time that Python is asked for, from a thread of
    its own but before the call returns."""

    def __init__(self, backend: Backend, ran: Callable[[ProgramRun], None]) -> None:
        self.kind = backend.kind
        self._backend = backend
        self._ran = ran

    def open(self, spec: Spec, twin_of: Sandbox | None = None) -> OneProgramSandbox:
        """As the contract says. `spec.programs` is what there is beside Python; raises ValueError if it is "all"."""
        if spec.programs == "all":
            raise ValueError("a sandbox for one program has no other interpreter")
        if twin_of is not None:
            raise ValueError("a sandbox for one program is no twin")
        with ExitStack() as stack:
            folder, server = stack.enter_context(listening(_SOCKET))
            stand_in = stack.enter_context(_stand_in())
            twin = replace(spec, programs="all")
            mounts = {**spec.mounts, _FOLDER: folder, **dict.fromkeys(STAND_INS, stand_in)}
            first = self._backend.open(replace(spec, shared=True, mounts=mounts))
            stack.callback(first.close)
            broker = _Broker(server, first, lambda: self._backend.open(twin, twin_of=first), self._ran)
            stack.callback(broker.close)
            stack.callback(first.close)  # which ends what the broker waits for
            return OneProgramSandbox(first, broker, stack.pop_all().close)

    def describe(self) -> dict[str, object]:
        return self._backend.describe()

    def shell(self, spec: Spec) -> ShellEnd:
        """A shell without Python: there is no call whose end would end the program."""
        return self._backend.shell(spec)


class OneProgramSandbox(Around):
    """A `Sandbox` (see the contract)."""

    def __init__(self, first: Sandbox, broker: _Broker, end: Callable[[], None]) -> None:
        super().__init__(first, end)
        self._broker = broker

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        with self._broker.call(timeout) as runs:
            result = self.first.exec(command, timeout, cap)
        cpu, memory = sum(run.cpu for run in runs), max((run.memory for run in runs), default=0)
        return replace(result, cpu=result.cpu + cpu, memory=max(result.memory, memory))


class _Broker:
    """Answers the stand-in, each connection in a thread of its own."""

    def __init__(
        self, server: socket.socket, first: Sandbox, open_twin: Callable[[], Sandbox], ran: Callable[[ProgramRun], None]
    ) -> None:
        self._server = server
        self._first = first
        self._open_twin = open_twin
        self._ran = ran
        self._used = False
        self._deadline: float | None = None  # of the call that runs; no program is run for another
        self._runs: list[ProgramRun] = []
        self._answering = 0
        self._changed = threading.Condition()
        self._lost: SandboxError | None = None
        self._thread = threading.Thread(target=self._accept, name="python-asked", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def call(self, timeout: float) -> Iterator[list[ProgramRun]]:
        """While it lasts a program can be run; at its end none runs any more. Gives those that were, then."""
        runs: list[ProgramRun] = []
        with self._changed:
            self._deadline = time.monotonic() + timeout
        try:
            yield runs
        except SandboxLost as error:
            if self._lost:
                raise self._lost from error
            raise
        finally:
            with self._changed:
                self._deadline = None
                self._changed.wait_for(lambda: not self._answering)
                runs += self._runs
                self._runs.clear()
        if self._lost:
            raise self._lost

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # which ends `accept`
        self._thread.join()
        with self._changed:
            self._changed.wait_for(lambda: not self._answering)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with self._changed:
                self._answering += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            # Whoever is at the other end may say anything, or nothing, or leave.
            with connection, contextlib.suppress(OSError, ValueError):
                connection.settimeout(_PATIENCE)
                self._serve(connection)
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    def _serve(self, connection: socket.socket) -> None:
        request = received(connection)
        with self._changed:
            if self._deadline is None or gone(connection):
                return
            refused, self._used = self._used, True
            timeout = self._deadline - time.monotonic() + _OVERTIME
        if refused:
            self._note(_told(request, refused=True))
            connection.sendall(_exit(1, REFUSAL))
            return
        run = _told(request, refused=False)
        result: ExecResult | None = None
        start = time.monotonic()
        try:
            connection.sendall(b"make\n")
            folder = read_line(connection).removeprefix(b"made ")
            code, result = self._run(connection, request, folder, max(timeout, 1.0))
            run = replace(run, code=code)
        except SandboxError as error:
            self._lost = error if isinstance(error, SandboxLost) else SandboxLost(str(error), error.hint)
            self._first.close()  # the call that asked is lost too
            return
        finally:
            wall = time.monotonic() - start
            if result is None:
                self._note(replace(run, wall=wall))
            else:
                self._note(
                    replace(
                        run,
                        exit_code=result.exit_code,
                        termination=result.termination,
                        wall=wall,
                        cpu=result.cpu,
                        memory=result.memory,
                    )
                )
        if result is not None:
            connection.sendall(_exit(*_outcome(result)))

    def _run(
        self, connection: socket.socket, request: Request, folder: bytes, timeout: float
    ) -> tuple[bytes | None, ExecResult | None]:
        """Run it in a twin that is opened for it; no result if the connection ends first, and the program with it."""
        outcome: list[ExecResult | SandboxError] = []
        with self._open_twin() as twin:
            code = _code(twin, request)

            def call() -> None:
                try:
                    outcome.append(twin.exec(request.script(folder), timeout, 4000))
                except SandboxError as error:
                    outcome.append(error)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)  # we are waiting below

            thread = threading.Thread(target=call, daemon=True)
            thread.start()
            connection.settimeout(None)
            while connection.recv(LONGEST_LINE):  # it has nothing to say
                continue
            left = not outcome
            twin.close()
            thread.join()
        result = outcome[0]
        if isinstance(result, ExecResult):
            return code, result
        if left:
            return code, None
        raise result

    def _note(self, run: ProgramRun) -> None:
        with self._changed:
            self._runs.append(run)
        self._ran(run)


def _told(request: Request, refused: bool) -> ProgramRun:
    arguments = tuple(argument.decode("utf-8", "backslashreplace") for argument in request.arguments)
    return ProgramRun(arguments, request.cwd.decode("utf-8", "backslashreplace"), refused)


def _code(twin: Sandbox, request: Request) -> bytes | None:
    """The program itself, where it is an argument or a file. Raises SandboxLost."""
    code, path = code_of(request.arguments)
    if path is not None:
        with contextlib.suppress(SandboxFileError, ValueError):  # which Python will say better
            part = twin.read(posixpath.join(request.cwd, path).decode(), 0, _MAX_CODE)
            code = part.data if part.size <= _MAX_CODE else None
    return code


def _outcome(result: ExecResult) -> tuple[int, str]:
    """The stand-in's exit code, and what it says on standard error."""
    text = (result.head + result.tail).decode("utf-8", "replace").strip()
    ended = _ENDED.get(result.termination, "")
    code = _KILLED if result.exit_code is None else result.exit_code
    return code, f"python3: {ended}" if ended else text


def _exit(code: int, text: str) -> bytes:
    data = f"{text}\n".encode() if text else b""
    return b"exit %d %d\n" % (code, len(data)) + data


@contextlib.contextmanager
def _stand_in() -> Iterator[Path]:
    """The program that is called python3, in a folder of ours; it can be run but not read, like its fellows."""
    binary = files("sandbox").joinpath("bin", f"stand_in-{platform.machine()}")
    if not binary.is_file():
        raise SandboxUnavailable(f"sandboxes for one program are not to be had on {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="kgshell-", dir=_place_for_programs()) as folder:
        path = Path(folder, "python3")
        path.write_bytes(binary.read_bytes())
        path.chmod(0o111)
        yield path


def _place_for_programs() -> str | None:
    """A folder whose programs can be run; None for the usual one. Some systems mount /tmp without."""
    places = (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), str(Path.home()))
    for place in places:
        if place and os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_NOEXEC:
            return place
    return None
