"""The committed binaries are what the committed source gives, and need nothing of the machine they run on."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
from pathlib import Path

import pytest

from sandbox.build_supervisor import ARCHITECTURES, PROGRAMS, build

BINARIES = Path(__file__).resolve().parents[2] / "sandbox" / "bin"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_binaries_are_built_from_the_source(architecture: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("the compiler (the package ziglang) is not installed")
    for program in PROGRAMS:
        built = build(program, architecture, tmp_path, tmp_path / "cache")
        assert built.read_bytes() == (BINARIES / built.name).read_bytes()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_binary_is_static_and_small(program: str, architecture: str) -> None:
    data = (BINARIES / f"{program}-{architecture}").read_bytes()
    machine = {"x86_64": 62, "aarch64": 183}[architecture]
    assert data[:6] == b"\x7fELF\x02\x01"
    assert int.from_bytes(data[18:20], "little") == machine
    assert b"/lib/ld" not in data
    assert len(data) < 150_000


def test_it_refuses_to_run_outside_a_pid_namespace() -> None:
    """It kills every process that it may: as anything but PID 1 that would be its user's whole session."""
    program = BINARIES / f"supervisor-{platform.machine()}"
    done = subprocess.run([program], input=b"init 0\nexec 1 1 1 4\ntrue", capture_output=True, check=False, timeout=60)
    assert done.returncode == 70
    assert b"not the first process" in done.stdout
