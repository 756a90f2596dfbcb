"""The Python that commands in a bubblewrap sandbox get: the one this process runs on, with its standard library alone.

Below /usr it is there already. Anywhere else (pyenv, conda, uv) its binary, its standard library and the shared
libraries below its prefix that these need are shown, and nothing else of the prefix: each at its own path, since
binaries hold the absolute paths of their libraries.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.elf import shared_libraries

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
    libraries = shared_libraries([program, *extensions], [Path(sys.base_prefix) / "lib"])
    inside = [library / name for name in _PACKAGES if (library / name).is_dir()]
    return Interpreter(program, (program, library, *libraries), (*_package_folders(), *inside))


def _package_folders() -> Iterator[Path]:
    """Installed packages of every Python below /usr."""
    for root in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"):
        for python in sorted(Path(root).glob("python3*")):
            yield from (python / name for name in _PACKAGES if (python / name).is_dir())
