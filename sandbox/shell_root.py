"""The system of a sandbox that has shell tools and nothing that runs another language: an allow-list of programs.

Bash, GNU coreutils, grep, sed, find, xargs, diff and cmp, with the libraries that they need, found on a system that has
them; rg is added by the backends. Everything else is absent: python3, perl, awk, node, ruby, lua, tclsh, php, gdb, vim,
ed, bc, dc, jq, sqlite3, m4, make, compilers, busybox. Left out of coreutils are chroot, chcon and runcon, which nobody
may use here, and stdbuf, which works by a library that it loads into other programs. A program that is part of one
that can be all of these (busybox) counts as missing; so does a script for anything but the shell.

What could still run another program's code is closed by the backends: the folders that can be written to are mounted
noexec, the supervisor's filter of system calls lets no memory become executable, and no process can write to its own
code through /proc/self/mem, since /proc is read-only (bubblewrap) or programs can be run but not read (Docker). So
neither an ELF file that a command has written, nor a library (LD_PRELOAD, `enable -f`), nor machine code is run.

What stays open: bash and sed are languages themselves, and that is the point; with data alone, an agent can have the
dynamic linker call functions of the C library (a crafted file without code in LD_PRELOAD), which is no interpreter
either.

This module runs on the host for bubblewrap and, by itself, in a stage of the image's build for Docker.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox.elf import parse, shared_libraries, system_folders

REQUIRED = frozenset(
    {
        *("bash", "grep", "sed", "find", "xargs", "diff", "cmp"),
        *("[", "basename", "cat", "chmod", "comm", "cp", "cut", "date", "dd", "df", "dirname", "du", "echo", "env"),
        *("expr", "false", "fold", "head", "id", "join", "ln", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mv", "nl"),
        *("nproc", "od", "paste", "printf", "pwd", "readlink", "realpath", "rm", "rmdir", "seq", "sha256sum", "shuf"),
        *("sleep", "sort", "split", "stat", "tac", "tail", "tee", "test", "timeout", "touch", "tr", "true", "truncate"),
        *("uname", "uniq", "wc", "whoami", "yes"),
    }
)
OPTIONAL = frozenset(
    {
        *("egrep", "fgrep", "which", "diff3", "coreutils"),  # coreutils: all of them in one program, on some systems
        *("arch", "b2sum", "base32", "base64", "basenc", "chgrp", "chown", "cksum", "csplit", "dir", "dircolors"),
        *("expand", "factor", "fmt", "groups", "hostid", "install", "link", "logname", "mknod", "nice", "nohup"),
        *("numfmt", "pathchk", "pinky", "pr", "printenv", "ptx", "sha1sum", "sha224sum", "sha384sum", "sha512sum"),
        *("shred", "stty", "sum", "sync", "tsort", "tty", "unexpand", "unlink", "users", "vdir", "who"),
    }
)
SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash", "/usr/bin/coreutils")  # what a script may be for
PROGRAMS = "usr/bin"  # where they lie in the sandbox, wherever they lie in the system

_PLACES = ("usr/bin", "bin")
_MERGED = ("lib", "lib32", "lib64", "libx32")
_ALL_IN_ONE = (b"BusyBox v", b"toybox")  # what the programs that are many others say about themselves
_EXTRA_LIBRARIES = ("libnss_files.so.2",)  # loaded by name, by an older C library, to find the user's name
_SETTINGS = ("etc/ld.so.cache", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/localtime")
_LOCALES = ("usr/lib/locale/C.utf8", "usr/lib/locale/C.UTF-8")


class Missing(Exception):
    """Programs of the allow-list that a system does not have."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"this system has no {', '.join(names)} of their own")


@dataclass(frozen=True)
class ShellRoot:
    """What to show: path inside, relative to its root -> file or folder of the system; links -> their targets.

    `binaries` are the paths inside of the programs, but for scripts, and of the dynamic linker.
    """

    files: dict[str, Path]
    links: dict[str, str]
    binaries: frozenset[str]


def find_shell_root(system: Path = Path("/")) -> ShellRoot:
    """The allow-list's programs of this system and what they need. Raises Missing."""
    programs = {name: path for name in sorted(REQUIRED | OPTIONAL) if (path := _program(system, name)) is not None}
    if missing := sorted(REQUIRED - programs.keys()):
        raise Missing(missing)
    parsed = {name: elf for name, path in programs.items() if (elf := parse(path.read_bytes()))}
    linkers = [system / linker.lstrip("/") for linker in sorted({elf.linker for elf in parsed.values() if elf.linker})]
    folders = system_folders(system)
    libraries = shared_libraries(programs.values(), folders)
    libraries += [path for name in _EXTRA_LIBRARIES for path in _first(folder / name for folder in folders)]
    files = {f"{PROGRAMS}/{name}": path for name, path in programs.items()}
    for path in (*libraries, *linkers):
        inside = Path(os.path.realpath(path.parent)).relative_to(os.path.realpath(system)) / path.name
        files[str(inside)] = path.resolve()
    linking = {path.resolve() for path in linkers}
    binaries = {f"{PROGRAMS}/{name}" for name in parsed} | {name for name, path in files.items() if path in linking}
    for name in (*_SETTINGS, *_musl(system), *_LOCALES):
        if (system / name).exists():
            files[name] = (system / name).resolve()
    links = {name: str((system / name).readlink()) for name in _MERGED if (system / name).is_symlink()}
    return ShellRoot(files, {**links, "bin": PROGRAMS, f"{PROGRAMS}/sh": "bash"}, frozenset(binaries))


def _program(system: Path, name: str) -> Path | None:
    """The file behind a program's name; None if there is none that may be shown."""
    for place in _PLACES:
        path = (system / place / name).resolve()
        if not path.is_file() or not os.access(path, os.X_OK):
            continue
        data = path.read_bytes()
        first = data.split(b"\n", 1)[0].decode("utf-8", "replace")
        script_for = first[2:].split()[:1] if first.startswith("#!") else []
        if script_for and script_for[0] in SHELLS:
            return path
        if parse(data) is not None and not any(mark in data for mark in _ALL_IN_ONE):
            return path
    return None


def _first(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.is_file()][:1]


def _musl(system: Path) -> list[str]:
    return [f"etc/{path.name}" for path in (system / "etc").glob("ld-musl-*.path")]


def copy_root(to: Path, system: Path = Path("/")) -> None:
    """Make a root of one's own of it, in which binaries can be run but not read, and libraries read but not run."""
    root = find_shell_root(system)
    for inside, path in root.files.items():
        target = to / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)
            script = inside.startswith(PROGRAMS + "/") and inside not in root.binaries
            target.chmod(0o755 if script else 0o111 if inside in root.binaries else 0o644)
    for inside, text in root.links.items():
        (to / inside).symlink_to(text)


if __name__ == "__main__":
    try:
        copy_root(Path(sys.argv[1]))
    except Missing as error:
        sys.exit(str(error))
