"""What a stand-in for Python asks for, read from its socket; see `sandbox.one_program` for the protocol.

Whoever is at the other end may say anything: what comes is bounded, and what is no request raises ValueError.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_LINE = 256

_MAX_REQUEST = 4 << 20  # bytes of each part: more than a program's arguments and environment can be
_CODE, _MODULE, _WITH_VALUE = "c", "m", "WX"  # Python's options of one letter that take a value
_LONG_WITH_VALUE = "--check-hash-based-pycs"


@dataclass(frozen=True)
class Request:
    """A program to run. `merged`: its standard output and error are one."""

    merged: bool
    cwd: bytes
    arguments: Sequence[bytes]
    environment: Sequence[bytes]

    def script(self, folder: bytes) -> str:
        """Bash that becomes the program, with its streams on the pipes in this folder."""
        errors = "2>&1" if self.merged else f"2> {quoted(folder + b'/err')}"
        environment = " ".join(quoted(item) for item in self.environment if b"=" in item)
        arguments = " ".join(quoted(argument) for argument in self.arguments)
        return (
            f"exec < {quoted(folder + b'/in')} > {quoted(folder + b'/out')} {errors}\n"
            f"cd -- {quoted(self.cwd)} || exit\n"
            f"exec env -i -- {environment} /sandbox/bin/python3 {arguments}\n"
        )


def received(connection: socket.socket) -> Request:
    """Raises ValueError if it is no request, OSError if it doesn't come."""
    words = read_line(connection).split(b" ")
    if len(words) != 5 or words[0] != b"run" or not all(word.isdigit() and len(word) < 9 for word in words[1:]):
        raise ValueError("not a request")
    parts = []
    for word in words[2:]:
        if (length := int(word)) > _MAX_REQUEST:
            raise ValueError("a request without bounds")
        data = bytearray()
        while len(data) < length:
            if not (more := connection.recv(length - len(data))):
                raise ValueError("half a request")
            data += more
        parts.append(bytes(data).split(b"\0")[:-1])
    place, arguments, environment = parts
    if len(place) != 1:
        raise ValueError("no folder")
    return Request(words[1] != b"0", place[0], arguments, environment)


def read_line(connection: socket.socket) -> bytes:
    """A line without its end. Raises ValueError if none comes, OSError."""
    line = bytearray()
    while len(line) < LONGEST_LINE:
        byte = connection.recv(1)
        if byte == b"\n":
            return bytes(line)
        if not byte:
            break
        line += byte
    raise ValueError("no line")


def gone(connection: socket.socket) -> bool:
    """The other end is closed already: what it asked for was for a call that is over."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""


def code_of(arguments: Sequence[bytes]) -> tuple[bytes | None, bytes | None]:
    """What Python is to run, by its arguments: (the code itself, None), or (None, the path of a file).

    (None, None) for a module, for standard input, and where there is nothing to run.
    """
    rest = iter(arguments)
    for argument in map(os.fsdecode, rest):
        if argument in {"-", ""}:
            return None, None
        if not argument.startswith("-"):
            return None, os.fsencode(argument)
        if argument.startswith("--"):
            if argument == _LONG_WITH_VALUE:
                next(rest, None)
            continue
        found = re.search(f"[{_CODE}{_MODULE}{_WITH_VALUE}]", argument)
        if found is None:
            continue
        value = os.fsencode(argument[found.end() :]) or next(rest, b"")
        if found[0] == _CODE:
            return value, None
        if found[0] == _MODULE:
            return None, None
    return None, None


def quoted(data: bytes) -> str:
    """The bytes as one word of bash."""
    text = data.decode("ascii", "replace")
    if re.fullmatch(r"[ -~]*", text):
        return shlex.quote(text)
    return "$'" + "".join(f"\\x{byte:02x}" for byte in data) + "'"
