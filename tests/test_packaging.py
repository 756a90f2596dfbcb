"""The wheel and the source archive: what is in them, and that what is installed from them finds its data."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "exporter", "sandbox", "prompts")

# Reads one data file of each kind through the installed packages, as the code does.
READ_DATA = """
from importlib.resources import files
for package, name in [
    ("prompts", "files.toml"),
    ("sandbox", "Dockerfile"),
    ("sandbox", "bin/supervisor-x86_64"),
    ("sandbox", "bin/supervisor-aarch64"),
    ("harness", "examples/biogo/NOTICE"),
    ("harness", "report/page.css"),
]:
    print(package, name, len(files(package).joinpath(name).read_bytes()) > 0)
"""


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, source archive), the wheel built from the unpacked archive: so the archive is complete."""
    for module in ("build", "hatchling"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the package {module} is not installed")
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    (archive,) = out.glob("*.tar.gz")
    return wheel, archive


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the wheel into, without its dependencies."""
    site = tmp_path_factory.mktemp("site")
    done = run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, built[0])
    assert done.returncode == 0, done.stdout + done.stderr
    return site


def source_files(*folders: str) -> set[str]:
    """Files of the repository below the folders, without what running the code leaves there."""
    return {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_four_packages_whole_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    (info,) = {name.partition("/")[0] for name in names} - set(PACKAGES)
    assert info.startswith("kgshell-") and info.endswith(".dist-info")
    packed = {name for name in names if not name.startswith(info)}
    sample = {f"harness/{name}" for name in source_files("examples/biogo")}
    assert packed == source_files(*PACKAGES) | sample
    assert any(name.startswith("prompts/") and name.endswith(".toml") for name in packed)
    assert "harness/examples/biogo/NOTICE" in packed
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/examples/biogo/NOTICE"} <= names


def test_the_source_archive_holds_the_repository_and_nothing_else(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    wanted = source_files(*PACKAGES, "tests", "examples") | {"pyproject.toml", "README.md", "LICENSE"}
    assert wanted - names == set()
    tops = {name.partition("/")[0] for name in names} - set(PACKAGES)
    assert tops <= {
        *("tests", "bench", "docs", "examples", ".ci"),
        *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", "PKG-INFO", ".gitignore"),
    }


def test_the_installed_packages_find_their_data(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", READ_DATA],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 6
    assert all(line.endswith("True") for line in lines), lines


def test_the_supervisor_can_be_executed_where_it_is_installed(installed: Path) -> None:
    for name in ("supervisor-x86_64", "supervisor-aarch64"):
        assert (installed / "sandbox" / "bin" / name).stat().st_mode & 0o111 == 0o111


def test_both_commands_start_where_installed(installed: Path, tmp_path: Path) -> None:
    for name in ("harness", "kgshell"):
        done = run(installed / "bin" / name, "--help", PYTHONPATH=str(installed), PYTHONSAFEPATH="1")
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


@pytest.mark.parametrize("name", ["exporter", "sandbox", "prompts"])
def test_the_installed_command_refuses_a_foreign_package(installed: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('foreign code ran')\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(installed)])
    done = run(installed / "bin" / "harness", "modes", PYTHONPATH=path, PYTHONSAFEPATH="1")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        f"error: the package '{name}' would come from {tmp_path / name}, not from {installed / name}"
    )
    assert done.stderr.splitlines()[1].startswith("hint: ")
