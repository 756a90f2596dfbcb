"""Which Python the sandbox is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sandbox.interpreter import find_interpreter


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
