"""The Python that commands in a bubblewrap sandbox get: the one this process runs on, with its standard library alone.

Below /usr it is there already. Anywhere else (pyenv, conda, uv) its binary, its standard library and the shared
libraries below its prefix that these need are shown, and nothing else of the prefix: each at its own path, since
binaries hold the absolute paths of their libraries.
"""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Interpreter:
    """The program, what else must be shown for it to run, and the folders of installed packages that must not be."""

    program: Path
    shown: tuple[Path, ...]
    hidden: tuple[Path, ...]


def find_interpreter() -> Interpreter:
    """Where this process's own interpreter lies, and what of it a sandbox must be shown."""
    program = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    if program.is_relative_to("/usr"):
        return Interpreter(program, (), tuple(_package_folders()))
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    extensions = (library / "lib-dynload").glob("*.so")
    libraries = shared_libraries([program, *extensions], Path(sys.base_prefix) / "lib")
    inside = [library / name for name in _PACKAGES if (library / name).is_dir()]
    return Interpreter(program, (program, library, *libraries), (*_package_folders(), *inside))


def _package_folders() -> Iterator[Path]:
    """Installed packages of every Python below /usr."""
    for root in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"):
        for python in sorted(Path(root).glob("python3*")):
            yield from (python / name for name in _PACKAGES if (python / name).is_dir())


def shared_libraries(programs: Iterable[Path], folder: Path) -> list[Path]:
    """The libraries in `folder` that ELF files need, directly or through each other."""
    found: dict[str, Path] = {}
    waiting = list(programs)
    while waiting:
        for name in _needed(waiting.pop()):
            path = folder / name
            if name not in found and "/" not in name and path.is_file():
                found[name] = path
                waiting.append(path)
    return list(found.values())


def _needed(path: Path) -> list[str]:
    """The DT_NEEDED names of a 64-bit little-endian ELF file; none if it is anything else."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, start + index * size) for index in range(count)]
    loads = [(address, offset, length) for kind, _, offset, address, _, length in segments if kind == 1]
    entries: list[tuple[int, int]] = []
    for kind, _, offset, _, _, length in segments:
        if kind == 2:
            entries += struct.iter_unpack("<qQ", data[offset : offset + length // 16 * 16])
    strings = next((value for tag, value in entries if tag == 5), 0)
    table = next(
        (strings - address + offset for address, offset, length in loads if 0 <= strings - address < length), 0
    )
    names = [table + value for tag, value in entries if tag == 1]
    return [data[at : data.index(b"\0", at)].decode("ascii", "replace") for at in names]
