"""Data that lies beside the repository and not in it; tests that use it are skipped where it isn't there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("KGSHELL_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def shared(name: str) -> Path:
    """A folder of the data beside the repository; skips the test where there is none."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"no {path.name} beside the repository (in ../shared/data, or under KGSHELL_SHARED)")
    return path
