"""What ELF programs need to run, read from the files themselves: `ldd` would run them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_LOAD, _DYNAMIC, _INTERP = 1, 2, 3  # kinds of segments
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29  # tags of the dynamic section
_DEFAULT = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")


@dataclass(frozen=True)
class Elf:
    """An ELF file's machine, its dynamic linker (None: it needs none), what it needs by name, and where to look."""

    machine: int
    linker: str | None
    needed: tuple[str, ...]
    run_paths: tuple[str, ...]


def parse(data: bytes) -> Elf | None:
    """What an ELF file says of itself; None if it is anything else, or of another class than 64-bit little-endian."""
    if data[:6] != _MAGIC:
        return None
    try:
        return _parse(data)
    except (struct.error, ValueError, OverflowError):  # the last for a place beyond all memory
        return None


def _parse(data: bytes) -> Elf:
    (machine,) = struct.unpack_from("<H", data, 18)
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, start + index * size) for index in range(count)]
    loads = [(address, offset, length) for kind, _, offset, address, _, length in segments if kind == _LOAD]
    linker = next(
        (data[at : at + length].rstrip(b"\0") for kind, _, at, _, _, length in segments if kind == _INTERP), b""
    )
    entries: list[tuple[int, int]] = []
    for kind, _, offset, _, _, length in segments:
        if kind == _DYNAMIC:
            entries += struct.iter_unpack("<qQ", data[offset : offset + length // 16 * 16])
    strings = next((value for tag, value in entries if tag == _STRTAB), 0)
    table = next(
        (strings - address + offset for address, offset, length in loads if 0 <= strings - address < length), 0
    )

    def texts(wanted: int) -> list[str]:
        places = [table + value for tag, value in entries if tag == wanted]
        return [os.fsdecode(data[at : data.index(b"\0", at)]) for at in places]

    paths = texts(_RUNPATH) or texts(_RPATH)
    return Elf(
        machine=machine,
        linker=os.fsdecode(linker) or None,
        needed=tuple(texts(_NEEDED)),
        run_paths=tuple(path for joined in paths for path in joined.split(":") if path),
    )


def shared_libraries(programs: Iterable[Path], folders: Sequence[Path]) -> list[Path]:
    """The libraries in `folders` that ELF files need, directly or through each other; those found nowhere are left out.

    Each is given by the path it was found at, the first of its name and machine: in the folders that the file which
    needs it names, then in `folders`.
    """
    found: dict[str, Path] = {}
    waiting = list(programs)
    while waiting:
        user = waiting.pop()
        elf = parse(user.read_bytes())
        if elf is None:
            continue
        own = [
            Path(path.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(user.resolve().parent)))
            for path in elf.run_paths
        ]
        for name in elf.needed:
            if name in found or "/" in name:
                continue
            for path in (folder / name for folder in (*own, *folders)):
                library = parse(path.read_bytes()) if path.is_file() else None
                if library is not None and library.machine == elf.machine:
                    found[name] = path
                    waiting.append(path)
                    break
    return list(found.values())


def system_folders(root: Path = Path("/")) -> list[Path]:
    """Where this system's dynamic linker looks for libraries: as configured, then by default."""
    configured = [*_configured(root / "etc" / "ld.so.conf", root), *_musl(root)]
    triplets = [path for folder in ("lib", "usr/lib") for path in sorted((root / folder).glob("*-linux-*"))]
    default = [root / path.lstrip("/") for path in _DEFAULT]
    return [path for path in dict.fromkeys((*configured, *triplets, *default)) if path.is_dir()]


def _configured(path: Path, root: Path, depth: int = 0) -> Iterator[Path]:
    """The folders in a file like /etc/ld.so.conf, and in those that it includes."""
    if not path.is_file() or depth > 4:
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, _, rest = line.partition("#")[0].strip().partition(" ")
        if word == "include":
            pattern = rest.strip()
            folder = root if pattern.startswith("/") else path.parent
            for included in sorted(folder.glob(pattern.lstrip("/"))):
                yield from _configured(included, root, depth + 1)
        elif word.startswith("/"):
            yield root / word.lstrip("/")


def _musl(root: Path) -> Iterator[Path]:
    for path in sorted((root / "etc").glob("ld-musl-*.path")):
        for word in path.read_text(encoding="utf-8", errors="replace").replace(":", "\n").split():
            yield root / word.lstrip("/")
