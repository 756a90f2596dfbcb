"""Builds the programs that run in sandboxes, static and byte for byte the same on every machine.

    python sandbox/build_supervisor.py [FOLDER]

writes `supervisor-x86_64`, `supervisor-aarch64` and likewise `stand_in` to FOLDER, by default to `sandbox/bin/`, from
where they are committed: whoever installs the package needs no compiler. Needs the package `ziglang` (its version
matters: see the `dev` extra), which carries the compiler and the C library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("supervisor", "stand_in")  # folders of C files beside this one
ARCHITECTURES = ("x86_64", "aarch64")
FLAGS = ("-static", "-O2", "-s", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fno-sanitize=all")


def build(program: str, architecture: str, folder: Path, cache: Path) -> Path:
    """Compile for one architecture. Raises subprocess.CalledProcessError with the compiler's words on stderr.

    In `cache` the compiler keeps what it made of the C library. One at a time may use it: two that fill a shared one
    can wait for each other for ever.
    """
    sources = Path(__file__).parent / program
    target = folder / f"{program}-{architecture}"
    # File names without a folder, so that no path gets into the binary.
    names = sorted(path.name for path in sources.glob("*.c"))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-musl"]
    own = {"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
    command = [*compiler, *FLAGS, "-o", str(target.resolve()), *names]
    subprocess.run(command, cwd=sources, env={**os.environ, **own}, check=True)
    target.chmod(0o755)
    return target


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        for architecture in ARCHITECTURES:
            for program in PROGRAMS:
                build(program, architecture, folder, Path(cache))


if __name__ == "__main__":
    main()
