"""The harness's side of the protocol that the supervisor speaks, the same for every kind of sandbox.

A backend starts the supervisor (`sandbox/supervisor/`, one static program) as PID 1 of a sandbox, with a pair of byte
streams to its standard input and output, wraps them in a `Transport`, and hands that to `Client`. The supervisor exits,
and the sandbox with it, when its standard input ends.

The protocol, version 2. A frame is an ASCII header line, ended by a newline, and behind it the bytes whose lengths the
header gives. Numbers are decimal. Sizes are bytes, times microseconds.

    harness to sandbox                      sandbox to harness
    init LENGTH                             ready VERSION
      payload: KEY=VALUE, each ended by a NUL: env=NAME=VALUE (repeated: the complete environment of commands),
      cwd, tmpfs (repeated: mounts counted as memory), writable (repeated: mounts that can be written to), memory, pids
      (reaching it ends a call), nproc (RLIMIT_NPROC), cpu_us, file_bytes (0: no limit), uid (user and group to become;
      0: stay), noexec (1: nothing in the writable mounts can be executed), readonly_proc (1: it is), fixed_code (1: no
      memory becomes executable but a file's), share (repeated: mounts whose descriptors come with `ready`), adopt
      (repeated, DESCRIPTOR:PATH: mounts that were inherited, and where they belong)
    exec SEQ TIMEOUT CAP LENGTH             beat SEQ MEMORY            while it runs, every half second
      payload: the command                  done SEQ TERMINATION EXIT TOTAL LINES HEAD TAIL SPILL SPILLED
                                              WALL CPU PEAK MEMORY (all one line)
                                              payload: HEAD bytes, TAIL bytes. EXIT is -1 where there is none, SPILL
                                              the number of outputs/NNN.txt or 0
    start SEQ LENGTH                        ok SEQ                     a session: a command that outlives calls
      payload: the command
    say SEQ TIMEOUT CAP LENGTH              beat, done ... ALIVE       as for exec; ALIVE is 1 if the session lives on
      payload: what the session is told                                (see session.c). Any other operation ends it
    read SEQ OFFSET LIMIT PATHLENGTH        data SEQ SIZE LENGTH       payload: LENGTH bytes
      payload: the path                     failed SEQ LENGTH          payload: the reason
    write SEQ PATHLENGTH LENGTH             ok SEQ, or failed
      payload: the path, the content
    ping SEQ                                pong SEQ MEMORY
    shell SEQ ROWS COLUMNS                  text LENGTH                payload: what the terminal shows
      then any number of                    beat, and at the end
      keys LENGTH (payload: the keys)       end SEQ REASON EXIT        REASON is 0, or the limit that ended it
      size ROWS COLUMNS                       by its number in `_REASONS`; EXIT is -1 then
    anything wrong                          error LENGTH               payload: what; the supervisor exits

`read` and `write` know nothing of what the harness means by them: paths are the agent's. A transfer is at most
MAX_TRANSFER bytes. Nothing that comes out of the sandbox is trusted: a frame that was not asked for, a length beyond
what was, an unknown word, silence, or the end of the stream is `SandboxLost`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast, get_args

from sandbox.contract import (
    GRAPH,
    OUTPUTS,
    SCRATCH,
    ExecResult,
    FileSlice,
    Limits,
    MiB,
    SandboxFileError,
    SandboxLost,
    ShellEnd,
    Termination,
)

VERSION = 2
MAX_TRANSFER = 64 * MiB
MAX_HEADER = 256
LAST_SPILL = 99_999  # the highest NNN of outputs/NNN.txt
MAX_PATH = 4095  # bytes: the kernel's own limit
SILENCE = 10.0  # seconds without a frame, heartbeats included, after which a sandbox is taken for lost
OVERTIME = 10.0  # seconds past a call's deadline within which its result must have come
_REASONS: Mapping[str, Termination] = {"1": "timeout", "2": "oom", "3": "pid_limit", "4": "cpu_limit"}
FILE_TIMEOUT = 40.0  # seconds for a read or write; the supervisor itself gives up after 20

WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # noqa: S108 - paths inside a sandbox

_TERMINATIONS = frozenset(get_args(Termination))
_MAX_TIMEOUT = 10**9  # seconds

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/sandbox/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": SCRATCH,
    "TMPDIR": "/tmp",  # noqa: S108 - a path inside the sandbox
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PAGER": "cat",
    "TERM": "dumb",
    "GRAPH": GRAPH,
    "SCRATCH": SCRATCH,
}


class Transport(Protocol):
    """Two byte streams to a supervisor. One thread may send while another receives; ending the sandbox from a third
    ends both (the stream ends, or OSError)."""

    def send(self, data: bytes, timeout: float) -> None:
        """Send all of it. Raises OSError (TimeoutError included)."""
        ...

    def receive(self, timeout: float) -> bytes:
        """The next bytes, b"" at the end of the stream. Raises TimeoutError after `timeout` seconds, or OSError."""
        ...


@dataclass(frozen=True)
class Setup:
    """What `init` tells the supervisor. `nproc` and `uid` are 0 where the backend takes care of them otherwise."""

    limits: Limits
    env: Mapping[str, str] = field(default_factory=dict)  # on top of ENVIRONMENT
    uid: int = 0
    nproc: int = 0
    tmpfs: Sequence[str] = WRITABLE
    noexec: bool = False
    readonly_proc: bool = False
    fixed_code: bool = False
    share: Sequence[str] = ()
    adopt: Mapping[str, int] = field(default_factory=dict)  # path -> a descriptor that the supervisor inherits

    @property
    def arranges_mounts(self) -> bool:
        """The supervisor has to do things to mounts that it needs the right for."""
        return bool(self.readonly_proc or self.share or self.adopt)

    def payload(self) -> bytes:
        limits = self.limits
        items = [f"env={name}={value}" for name, value in {**ENVIRONMENT, **self.env}.items()]
        items += [f"tmpfs={path}" for path in self.tmpfs]
        items += [f"writable={path}" for path in WRITABLE]
        items += [f"share={path}" for path in self.share]
        items += [f"adopt={descriptor}:{path}" for path, descriptor in self.adopt.items()]
        items += [
            f"cwd={SCRATCH}",
            f"memory={limits.memory}",
            f"pids={limits.pids}",
            f"nproc={self.nproc}",
            f"cpu_us={round(limits.cpu_seconds * 1e6)}",
            f"file_bytes={limits.file_bytes}",
            f"uid={self.uid}",
            f"noexec={self.noexec:d}",
            f"readonly_proc={self.readonly_proc:d}",
            f"fixed_code={self.fixed_code:d}",
        ]
        if any("\0" in item for item in items):
            raise ValueError("an environment variable holds a NUL byte")
        return b"".join(item.encode() + b"\0" for item in items)


class Client:
    """Speaks the protocol over one transport. Calls are not concurrent; `memory` may be read at any time."""

    def __init__(
        self, transport: Transport, setup: Setup, ready_timeout: float = 30.0, silence: float = SILENCE
    ) -> None:
        """Send `init` and wait for the answer. Raises SandboxLost."""
        self.memory = 0
        self._transport = transport
        self._silence = silence
        self._buffer = bytearray()
        self._seq = 0
        self._lost: str | None = None
        payload = setup.payload()
        self._send(b"init %d\n" % len(payload) + payload)
        deadline = time.monotonic() + ready_timeout
        name, words = self._header(deadline, ready_timeout)
        if name != "ready":
            raise self._unexpected(name, words, deadline)
        if words != [str(VERSION)]:
            raise self._broken(f"the supervisor speaks another version of the protocol than {VERSION}: {words}")

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        """See `Sandbox.exec`."""
        if "\0" in command:
            raise ValueError("the command holds a NUL byte")
        return self._timed(b"exec", command.encode(), timeout, cap, 13)[0]

    def start(self, command: str) -> None:
        """Start a command that lives until the next operation that is not `say`, instead of one that there may be."""
        script = command.encode()
        self._seq += 1
        self._send(b"start %d %d\n" % (self._seq, len(script)) + script)
        name, words = self._header(deadline := time.monotonic() + FILE_TIMEOUT, FILE_TIMEOUT)
        if name != "ok" or self._numbers(name, words, 1) != (self._seq,):
            raise self._unexpected(name, words, deadline)

    def say(self, text: str, timeout: float, cap: int) -> tuple[ExecResult, bool]:
        """Tell the started command something and wait for its answer: a result as of `exec`, and whether it lives on.

        At the deadline it is interrupted, and three seconds later killed.
        """
        result, words = self._timed(b"say", text.encode(), timeout, cap, 14)
        return result, words[13] == "1"

    def _timed(
        self, operation: bytes, data: bytes, timeout: float, cap: int, count: int
    ) -> tuple[ExecResult, list[str]]:
        """An operation with a deadline and output: its result, and the `count` words of the header it came in."""
        if len(data) > MAX_TRANSFER or not 0 <= cap <= MAX_TRANSFER:
            raise ValueError(f"a command and a cap are at most {MAX_TRANSFER} bytes")
        if not timeout > 0:
            raise ValueError(f"a timeout is more than 0 seconds, not {timeout}")
        timeout = min(timeout, _MAX_TIMEOUT)
        self._seq += 1
        self._send(b"%b %d %d %d %d\n" % (operation, self._seq, math.ceil(timeout * 1e6), cap, len(data)) + data)
        deadline = time.monotonic() + timeout + OVERTIME
        while True:
            name, words = self._header(deadline, self._silence)
            if name == "beat":
                self.memory = self._numbers(name, words, 2)[1]
            elif name == "done" and len(words) == count:
                return self._result(words[:13], cap, deadline), words
            else:
                raise self._unexpected(name, words, deadline)

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        """See `Sandbox.read`. At most MAX_TRANSFER bytes at a time."""
        if offset < 0 or limit < 0:
            raise ValueError("offset and limit are not negative")
        limit = min(limit, MAX_TRANSFER)
        name = self._path(path)
        self._seq += 1
        self._send(b"read %d %d %d %d\n" % (self._seq, min(offset, 2**62), limit, len(name)) + name)
        deadline = time.monotonic() + FILE_TIMEOUT
        size, length = self._file_reply("data", 2, path, deadline)
        if length > limit or size < length:
            raise self._broken(f"a part of length {length} of a file of {size}, where {limit} were asked for")
        return FileSlice(data=self._take(length, deadline), size=size)

    def write(self, path: str, data: bytes) -> None:
        """See `Sandbox.write`."""
        name = self._path(path)
        if len(data) > MAX_TRANSFER:
            raise SandboxFileError(f"{path}: {len(data)} bytes are more than can be written at once ({MAX_TRANSFER})")
        self._seq += 1
        self._send(b"write %d %d %d\n" % (self._seq, len(name), len(data)) + name + data)
        self._file_reply("ok", 0, path, time.monotonic() + FILE_TIMEOUT)

    def ping(self) -> None:
        """Ask for the memory in use while nothing runs."""
        self._seq += 1
        self._send(b"ping %d\n" % self._seq)
        deadline = time.monotonic() + self._silence
        name, words = self._header(deadline, self._silence)
        if name != "pong":
            raise self._unexpected(name, words, deadline)
        self.memory = self._numbers(name, words, 2)[1]

    def start_shell(self, rows: int, columns: int) -> None:
        """Start an interactive bash on a terminal of this size. From here on only the two below may be called."""
        self._seq += 1
        self._send(b"shell %d %d %d\n" % (self._seq, rows, columns))

    def shell_keys(self, keys: bytes) -> None:
        """What the person typed, at most 32 KiB."""
        self._send(b"keys %d\n" % len(keys) + keys)

    def shell_size(self, rows: int, columns: int) -> None:
        """The person's window has changed its size."""
        self._send(b"size %d %d\n" % (rows, columns))

    def shell_text(self) -> bytes | ShellEnd:
        """Wait for the next text that the terminal shows, or for how the shell ended."""
        while True:
            deadline = time.monotonic() + self._silence
            name, words = self._header(deadline, self._silence)
            if name == "beat":
                self.memory = self._numbers(name, words, 2)[1]
            elif name == "text":
                (length,) = self._numbers(name, words, 1)
                if length > MAX_TRANSFER:
                    raise self._broken("a text without bounds")
                return self._take(length, deadline)
            elif name == "end" and len(words) == 3:
                if words[2] == "-1":
                    return ShellEnd(137, _REASONS.get(words[1], "killed"))
                return ShellEnd(self._numbers(name, words, 3)[2] & 255, "exit")
            else:
                raise self._unexpected(name, words, deadline)

    # What goes out

    def _send(self, data: bytes) -> None:
        if self._lost:
            raise SandboxLost(self._lost)
        try:
            self._transport.send(data, self._silence)
        except OSError as error:
            raise self._broken(f"nothing can be sent to it: {error}") from error

    def _path(self, path: str) -> bytes:
        name = path.encode(errors="surrogateescape") if path else b""
        if not name or b"\0" in name:
            raise SandboxFileError("a path is not empty and holds no NUL byte")
        if len(name) > MAX_PATH:
            raise SandboxFileError(f"a path of {len(name)} bytes is longer than any file's")
        return name

    # What comes back

    def _result(self, words: Sequence[str], cap: int, deadline: float) -> ExecResult:
        termination, exit_word = words[1], words[2]
        numbers = self._numbers("done", [words[0], *words[3:]], 11)
        total, lines, head, tail, spill, spilled, wall, cpu, peak, memory = numbers[1:]
        exit_code = None if exit_word == "-1" else self._number(exit_word)
        cut = head + tail < total
        consistent = (
            termination in _TERMINATIONS
            and (exit_code is None or exit_code <= 255)
            and head + tail <= min(cap, total)
            and lines <= total
            and spilled <= total
            and spill <= LAST_SPILL
            and (not cut or termination == "output_limit" or (spill > 0 and spilled == total))
        )
        if not consistent:
            raise self._broken(f"a result that can't be: {' '.join(words)}")
        self.memory = memory
        data = self._take(head + tail, deadline)
        return ExecResult(
            exit_code=exit_code,
            head=data[:head],
            tail=data[head:],
            total_bytes=total,
            lines=lines,
            spill=f"{OUTPUTS}/{spill:03d}.txt" if spill else None,
            spilled_bytes=spilled,
            termination=cast(Termination, termination),
            wall=wall / 1e6,
            cpu=cpu / 1e6,
            memory=peak,
        )

    def _file_reply(self, name: str, count: int, path: str, deadline: float) -> tuple[int, ...]:
        got, words = self._header(deadline, FILE_TIMEOUT)
        if got == "failed":
            length = self._numbers(got, words, 2)[1]
            if length > MAX_HEADER:
                raise self._broken("a reason without bounds")
            reason = self._take(length, deadline).decode("ascii", "replace")
            raise SandboxFileError(f"{path}: {reason}")
        if got != name:
            raise self._unexpected(got, words, deadline)
        return self._numbers(name, words, count + 1)[1:]

    def _unexpected(self, name: str, words: Sequence[str], deadline: float) -> SandboxLost:
        if name == "error" and len(words) == 1 and (length := self._number(words[0])) <= 1024:
            return self._broken(self._take(length, deadline).decode("ascii", "replace"))
        return self._broken(f"an unexpected frame: {name[:40]!r}")

    def _numbers(self, name: str, words: Sequence[str], count: int) -> tuple[int, ...]:
        """A header's numbers, the first of which must be the number of the call."""
        numbers = tuple(self._number(word) for word in words)
        if len(numbers) != count or (name != "text" and numbers[0] != self._seq):
            raise self._broken(f"an unexpected frame: {name} {' '.join(words)}")
        return numbers

    def _number(self, word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= 20):
            raise self._broken(f"not a number: {word[:40]!r}")
        return int(word)

    def _header(self, deadline: float, silence: float) -> tuple[str, list[str]]:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_HEADER:
                raise self._broken("a header without an end")
            self._receive(deadline, silence)
        words = self._buffer[:end].decode("ascii", "replace").split(" ")
        del self._buffer[: end + 1]
        return words[0], words[1:]

    def _take(self, length: int, deadline: float) -> bytes:
        while len(self._buffer) < length:
            self._receive(deadline, self._silence)
        data = bytes(self._buffer[:length])
        del self._buffer[:length]
        return data

    def _receive(self, deadline: float, silence: float) -> None:
        left = min(silence, deadline - time.monotonic())
        try:
            data = self._transport.receive(max(left, 0.001))
        except TimeoutError as error:
            raise self._broken("it has gone silent") from error
        except OSError as error:
            raise self._broken(f"nothing can be received from it: {error}") from error
        if not data:
            raise self._broken("it has ended")
        self._buffer += data

    def _broken(self, reason: str) -> SandboxLost:
        self._lost = f"the sandbox is lost: {reason}"
        return SandboxLost(self._lost)
