"""The file system of a bubblewrap sandbox, as arguments of bwrap: system folders of the host, or a part of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sandbox.contract import SCRATCH, Limits, SandboxError, SandboxUnavailable
from sandbox.interpreter import find_interpreter
from sandbox.rg import rg_path
from sandbox.shell_root import Missing, find_shell_root

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr, or folders of their own
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path", "localtime")
# Not of a namespace: kernel keys (also those that the harness's session holds) and how many each user has, file locks,
# and what older kernels let anybody read of timers, the scheduler's queues and who waits where.
_HOST_WIDE = ("keys", "key-users", "locks", "timer_list", "timer_stats", "sched_debug", "latency_stats")
_COMMAND = ["--symlink", "/dev/fd/3", "/sandbox/command"]  # bash's name for what it runs


def whole_system() -> list[str]:
    """The host's system folders, the interpreter, rg."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    python = find_interpreter()
    arguments += _folders([Path("/etc/passwd"), Path("/sandbox/bin/rg"), *python.shown])
    for name in _MERGED:
        path = Path("/") / name
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for path in python.shown:
        arguments += ["--ro-bind", str(path), str(path)]
    for folder in (*python.hidden, *_own_folders()):
        arguments += _empty(folder)
    arguments += ["--ro-bind", str(rg_path()), "/sandbox/bin/rg"]
    arguments += ["--symlink", str(python.program), "/sandbox/bin/python3"]
    arguments += ["--symlink", "python3", "/sandbox/bin/python"]
    return [*arguments, *_COMMAND]


def shell_tools() -> list[str]:
    """Programs of the host that run no other language than the shell's, what they need, and rg, one by one.

    Raises SandboxUnavailable if the host lacks some of them.
    """
    try:
        root = find_shell_root()
    except Missing as error:
        raise SandboxUnavailable(
            f"no sandbox with shell tools alone can be made of this system: {error}",
            "install GNU bash, coreutils, findutils, grep, sed and diffutils, or use --sandbox docker",
        ) from error
    files = {Path("/", inside): path for inside, path in root.files.items()} | {Path("/sandbox/bin/rg"): rg_path()}
    arguments = _folders([Path("/etc/passwd"), *files])
    for inside, path in files.items():
        arguments += ["--ro-bind", str(path), str(inside)]
    for link, target in root.links.items():
        arguments += ["--symlink", target, f"/{link}"]
    return [*arguments, *_COMMAND]


def covered_proc(hand: Callable[[bytes], str]) -> list[str]:
    """Nothing instead of files of /proc that tell of the host's other users and processes; where the kernel has them.

    `hand` gives bwrap a file and returns its descriptor's number.
    """
    names = [name for name in _HOST_WIDE if Path("/proc", name).exists()]
    return [word for name in names for word in ("--perms", "0444", "--ro-bind-data", hand(b""), f"/proc/{name}")]


def _folders(paths: Iterable[Path]) -> list[str]:
    """Makes the folders above these paths: by itself bwrap makes some that only root can enter."""
    above = {folder for path in paths for folder in path.parents} - {Path("/")}
    return [word for folder in sorted(above) for word in ("--perms", "0755", "--dir", str(folder))]


def _empty(folder: Path) -> list[str]:
    return ["--size", "4096", "--perms", "0555", "--tmpfs", str(folder), "--remount-ro", str(folder)]


def _own_folders() -> list[Path]:
    """Folders below /usr that hold this package or its virtual environment, and aren't a system's package folder."""
    own = {Path(__file__).resolve().parents[1]}
    if sys.prefix != sys.base_prefix:
        own.add(Path(sys.prefix).resolve())
    packages = ("site-packages", "dist-packages")
    return [path for path in own if path.is_relative_to("/usr") and path.name not in packages]


def account(uid: int, hand: Callable[[bytes], str]) -> list[str]:
    """The files that say who the agent is, made up."""
    contents = {
        "/etc/passwd": f"agent:x:{uid}:{uid}:agent:{SCRATCH}:/bin/bash\n",
        "/etc/group": f"agent:x:{uid}:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "/etc/hosts": "127.0.0.1 localhost\n",
    }
    arguments: list[str] = []
    for path, content in contents.items():
        arguments += ["--perms", "0444", "--file", hand(content.encode()), path]
    return arguments


def writable(limits: Limits) -> list[str]:
    arguments: list[str] = []
    for size, path in ((limits.scratch, SCRATCH), (limits.tmp, "/tmp"), (limits.shm, "/dev/shm")):  # noqa: S108
        arguments += ["--size", str(size), "--perms", "1777", "--tmpfs", path]
    return arguments


def shown_folders(shown: Mapping[str, Path], beside_usr: bool) -> list[str]:
    """What the host shows; where the sandbox has the host's /usr, the rest of a graph's folder there is hidden."""
    hidden: dict[Path, None] = {}
    arguments = _folders(Path(inside) for inside in shown)
    for inside, path in shown.items():
        source = path.resolve()
        if not source.exists():
            raise SandboxError(f"'{path}', to be shown in the sandbox, isn't there")
        if beside_usr and source.is_relative_to("/usr"):
            hidden[_data_folder(source)] = None
        arguments += ["--ro-bind", str(source), inside]
    return [*(word for folder in hidden for word in _empty(folder)), *arguments]


def _data_folder(shown: Path) -> Path:
    """What to hide of a system folder that holds a graph, and with it perhaps its questions' answers."""
    parts = shown.relative_to("/usr").parts
    depth = 3 if parts[:1] == ("local",) else 2
    if len(parts) <= depth:
        raise SandboxError(f"'{shown}' lies among the system's files, which the sandbox shows", "move it out of /usr")
    return Path("/usr", *parts[:depth])
