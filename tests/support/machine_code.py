"""The smallest programs of this machine's own: one to be run, one to be loaded into others. Both print `ran`."""

from __future__ import annotations

import platform
import struct

_PRINTS = {  # write(1, message, 4), the message's place to be filled in; then what follows
    "x86_64": (b"\xb8\x01\0\0\0\xbf\x01\0\0\0\x48\x8d\x35%b\xba\x04\0\0\0\x0f\x05", 17),
    "aarch64": (b"\x08\x08\x80\xd2\x20\0\x80\xd2%b\x82\0\x80\xd2\x01\0\0\xd4", 8),
}
_ENDS = {
    "x86_64": {"exit": b"\xb8\x3c\0\0\0\x31\xff\x0f\x05", "return": b"\xc3"},
    "aarch64": {"exit": b"\xa8\x0b\x80\xd2\0\0\x80\xd2\x01\0\0\xd4", "return": b"\xc0\x03\x5f\xd6"},
}
_NUMBERS = {"x86_64": 62, "aarch64": 183}
_PAGE = 0x10000  # a multiple of every machine's pages
_HEADER = 64 + 3 * 56


def _code(end: str) -> bytes:
    machine = platform.machine()
    template, after = _PRINTS[machine]
    ending = _ENDS[machine][end]
    length = len(template) + 2 + len(ending)  # the %b becomes four bytes
    if machine == "x86_64":
        place = struct.pack("<i", length - after)
    else:
        place = struct.pack("<I", 0x10000001 | (length - after) % 4 << 29 | (length - after) // 4 << 5)
    return template.replace(b"%b", place) + ending + b"ran\n"


def _elf(kind: int, entry: int, segments: list[tuple[int, ...]], content: bytes) -> bytes:
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQ", kind, _NUMBERS[platform.machine()], 1, entry, 64, 0)
    header += struct.pack("<IHHHHHH", 0, 64, 56, len(segments), 64, 0, 0)
    header += b"".join(struct.pack("<IIQQQQQQ", *segment) for segment in segments)
    return header.ljust(_HEADER, b"\0") + content


def program() -> bytes:
    """A static ELF program that prints `ran` and exits."""
    code = _code("exit")
    base = 0x400000
    size = _HEADER + len(code)
    return _elf(2, base + _HEADER, [(1, 5, 0, base, base, size, size, _PAGE)], code)


def library() -> bytes:
    """A shared object that prints `ran` when it is loaded."""
    code = _code("return")
    symbols, strings, hashes = bytes(24), b"\0", struct.pack("<IIII", 1, 1, 0, 0)
    data = symbols + hashes + strings.ljust(8, b"\0")
    start = _PAGE  # of the second segment, in the file and in memory
    dynamic = start + len(data)
    entries = [(12, _HEADER), (6, start), (11, 24), (4, start + 24), (5, start + 40), (10, 1), (0, 0)]
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    first, second = _HEADER + len(code), len(data) + len(table)
    segments = [
        (1, 5, 0, 0, 0, first, first, _PAGE),
        (1, 6, start, start, start, second, second, _PAGE),
        (2, 6, dynamic, dynamic, dynamic, len(table), len(table), 8),
    ]
    return _elf(3, 0, segments, code).ljust(start, b"\0") + data + table
