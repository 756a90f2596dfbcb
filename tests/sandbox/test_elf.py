"""What programs need to run, taken apart against what the dynamic linker itself says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.elf import parse, shared_libraries, system_folders
from tests.support.machine_code import library, program


def linked(path: Path) -> set[Path]:
    """The libraries that the dynamic linker would load, by real path."""
    try:
        said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no ldd, or a static program")
    found = (line.split("=>")[1].split("(")[0].strip() for line in said.splitlines() if "=>" in line)
    return {Path(name).resolve() for name in found}


@pytest.mark.parametrize("program_path", [Path("/bin/bash"), Path("/bin/ls"), Path(sys.executable)])
def test_libraries_are_those_that_the_linker_loads(program_path: Path) -> None:
    path = program_path.resolve()
    found = {library_path.resolve() for library_path in shared_libraries([path], system_folders())}
    elf = parse(path.read_bytes())
    assert elf is not None and elf.linker is not None
    assert found - {Path(elf.linker).resolve()} == linked(path) - {Path(elf.linker).resolve()}


def test_only_in_the_folders_that_were_named(tmp_path: Path) -> None:
    assert shared_libraries([Path("/bin/bash")], [tmp_path]) == []


def test_programs_without_needs() -> None:
    for data in (program(), library()):
        elf = parse(data)
        assert elf is not None
        assert (elf.linker, elf.needed, elf.run_paths) == (None, (), ())


def test_files_that_are_no_elf_need_nothing(tmp_path: Path) -> None:
    text = tmp_path / "script.sh"
    text.write_text("#!/bin/sh\n", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert shared_libraries([text, empty], [Path("/usr/lib")]) == []


@example(cut=0, at=39, byte=128)
@given(cut=st.integers(0, 600), at=st.integers(0, 600), byte=st.integers(0, 255))
def test_a_damaged_file_is_none_or_needs_something_else(cut: int, at: int, byte: int) -> None:
    data = bytearray(library())
    data[at] = byte
    parse(bytes(data))
    parse(bytes(data[:cut]))


def test_folders_of_a_system(tmp_path: Path) -> None:
    for folder in ("lib/x86_64-linux-gnu", "usr/lib64", "opt/one", "opt/two", "etc/ld.so.conf.d", "musl"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/ld.so.conf").write_text("# first\n/opt/one # mine\ninclude /etc/ld.so.conf.d/*.conf\n/nowhere\n")
    (tmp_path / "etc/ld.so.conf.d/a.conf").write_text("/opt/two\ninclude ../ld.so.conf\n")
    (tmp_path / "etc/ld-musl-x86_64.path").write_text("/musl:/nowhere\n")
    found = [str(path.relative_to(tmp_path)) for path in system_folders(tmp_path)]
    assert found == ["opt/one", "opt/two", "musl", "lib/x86_64-linux-gnu", "usr/lib64", "lib"]
