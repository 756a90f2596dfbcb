"""The start-up check, with real foreign packages on the path of a real interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = """
from harness._guard import check_packages
from harness.errors import UserError
try:
    check_packages()
except UserError as error:
    print(error)
    print(error.hint)
"""


def check(*path: Path) -> list[str]:
    """The lines that the check prints in a fresh interpreter that searches these folders first."""
    run = subprocess.run(
        [sys.executable, "-S", "-W", "error", "-c", CHECK],  # -S: an installed kgshell plays no part
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_our_own_packages_pass() -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize("name", ["exporter", "sandbox", "prompts"])
@pytest.mark.parametrize("layout", ["{}/__init__.py", "{}.py"])
def test_a_foreign_package_is_refused_and_never_run(tmp_path: Path, name: str, layout: str) -> None:
    ran = tmp_path / "ran"
    foreign = tmp_path / layout.format(name)
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    message, hint = check(tmp_path, ROOT)
    shown = foreign.parent if foreign.name == "__init__.py" else foreign
    assert message == f"the package '{name}' would come from {shown}, not from {ROOT / name}"
    assert "virtual environment" in hint
    assert not ran.exists()


def test_a_folder_without_code_does_not_shadow_ours(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    assert check(tmp_path, ROOT) == []


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    for name in ("harness", "exporter"):
        (tmp_path / name).mkdir()
        for source in (ROOT / name).glob("*.py"):
            (tmp_path / name / source.name).write_bytes(source.read_bytes())
    message, hint = check(tmp_path)
    assert message == f"the package 'sandbox' is missing beside {tmp_path / 'harness'}"
    assert "reinstall" in hint
