"""Which Python the sandbox is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.interpreter import find_interpreter, shared_libraries


def test_the_interpreter_that_runs_this() -> None:
    found = find_interpreter()
    said = subprocess.run([found.program, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.split()[1] == sys.version.split()[0]
    assert not found.program.is_symlink()
    for path in (*found.shown, *found.hidden):
        assert path.exists(), path
    if found.program.is_relative_to("/usr"):
        assert found.shown == ()
    else:
        assert found.shown[0] == found.program
        assert (found.shown[1] / "os.py").is_file()


def test_installed_packages_are_hidden_wherever_it_looks_for_them() -> None:
    found = find_interpreter()
    said = subprocess.run(
        [found.program, "-Ic", "import sys; print(*sys.path, sep='\\n')"], capture_output=True, text=True, check=True
    )
    packages = {Path(line) for line in said.stdout.splitlines() if line.endswith(("site-packages", "dist-packages"))}
    assert packages
    assert packages <= set(found.hidden)


def test_libraries_of_elf_files(tmp_path: Path) -> None:
    """Taken apart against what the dynamic linker itself says."""
    program = Path(sys.executable).resolve()
    try:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no ldd, or a static Python")
    linked = {Path(line.split("=>")[1].split("(")[0].strip()) for line in said.splitlines() if "=>" in line}
    for folder in {path.parent for path in linked}:
        assert {path for path in linked if path.parent == folder} <= set(shared_libraries([program], folder))


def test_files_that_are_no_elf_need_nothing(tmp_path: Path) -> None:
    text = tmp_path / "script.sh"
    text.write_text("#!/bin/sh\n", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert shared_libraries([text, empty], Path("/usr/lib")) == []
