"""Builds the supervisor's two binaries, static and byte for byte the same on every machine.

    python sandbox/build_supervisor.py [FOLDER]

writes `supervisor-x86_64` and `supervisor-aarch64` to FOLDER, by default to `sandbox/bin/`, from where they are
committed: whoever installs the package needs no compiler. Needs the package `ziglang` (its version matters: see the
`dev` extra), which carries the compiler and the C library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "supervisor"
ARCHITECTURES = ("x86_64", "aarch64")
FLAGS = ("-static", "-O2", "-s", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fno-sanitize=all")


def build(architecture: str, folder: Path) -> Path:
    """Compile for one architecture. Raises subprocess.CalledProcessError with the compiler's words on stderr."""
    target = folder / f"supervisor-{architecture}"
    # File names without a folder, so that no path gets into the binary.
    names = sorted(path.name for path in SOURCES.glob("*.c"))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-musl"]
    # A cache of its own: two compilers that fill a shared one at the same time can wait for each other for ever.
    with tempfile.TemporaryDirectory() as cache:
        own = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        command = [*compiler, *FLAGS, "-o", str(target.resolve()), *names]
        subprocess.run(command, cwd=SOURCES, env={**os.environ, **own}, check=True)
    target.chmod(0o755)
    return target


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for architecture in ARCHITECTURES:
        build(architecture, folder)


if __name__ == "__main__":
    main()
