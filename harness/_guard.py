"""Start-up check: the four packages must come from one folder.

`exporter`, `sandbox` and `prompts` are common words, and other distributions install packages of these names. A foreign
one earlier on the path wins silently, so the commands check before they import any of them.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from pathlib import Path

from harness.errors import UserError

_SIBLINGS = ("exporter", "sandbox", "prompts")


def check_packages() -> None:
    """Raise UserError, naming both folders, unless the packages beside `harness` are those that would be imported.

    Nothing is imported to find out: a foreign package's code doesn't run.
    """
    ours = Path(__file__).resolve().parent.parent
    for name in _SIBLINGS:
        found = _folder(name)
        if found is None:
            raise UserError(
                f"the package '{name}' is missing beside {ours / 'harness'}",
                "the installation is damaged: reinstall kgshell in a fresh virtual environment",
            )
        if found != ours / name:
            raise UserError(
                f"the package '{name}' would come from {found}, not from {ours / name}",
                "another distribution has a package of that name: install kgshell in a virtual environment of its own",
            )


def _folder(name: str) -> Path | None:
    """The resolved folder of a regular top-level package; the file of a module; None if there is neither."""
    spec = PathFinder.find_spec(name)
    if spec is None or spec.origin is None:  # no origin: a namespace package, a folder without our __init__.py
        return None
    origin = Path(spec.origin).resolve()
    return origin.parent if spec.submodule_search_locations else origin
