"""`harness check`: is an export or a run folder what it should be?"""

from __future__ import annotations

from pathlib import Path

import click

import exporter
from harness.cli.file_progress import file_progress
from harness.cli.output import notice
from harness.errors import UserError
from harness.rundir import is_in_use
from harness.schemas import check_run
from harness.text import count_of, line

FAULTS = 1


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
def command(path: Path) -> int:
    """Verify an export, a run folder, or all runs in a folder.

    Prints one line per fault, with file and line, and exits with 1 where there is any.

    \b
    Example:
      $ harness check runs/biogo-files
    """
    if not path.exists():
        raise UserError(f"there is no folder {path}", "give an export, a run folder, or a folder that holds runs")
    inside = [] if _is_one(path) or not path.is_dir() else [each for each in sorted(path.iterdir()) if _is_run(each)]
    return max(map(_check, inside or [path]))


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in ("attempts.jsonl", "trajectories", "manifest.json"))


def _is_one(path: Path) -> bool:
    return (path / "files").is_dir() or _is_run(path)


def _what(fault: exporter.Fault) -> str:
    return f"{fault.message}; {fault.remedy}" if fault.remedy else fault.message


def _check(path: Path) -> int:
    """Check one export or run, and say what was found."""
    if (path / "files").is_dir():
        with file_progress() as progress:
            faults = [(fault.file, fault.line, _what(fault)) for fault in exporter.check(path, progress)]
        if not faults:
            _tell_halved(exporter.Export.open(path))
    elif _is_run(path):
        if is_in_use(path):
            notice(f"{path}: a run is writing it; attempts in flight are checked as far as they are")
        faults = [(fault.file, fault.line, fault.message) for fault in check_run(path)]
    else:
        raise UserError(
            f"{path} is neither an export nor a run folder",
            "an export has a folder files/, a run folder has a manifest.json",
        )
    for file, at, message in faults:
        click.echo(line(f"{file}{'' if at is None else f':{at}'}: {message}"))
    notice(f"{path}: {count_of(len(faults), 'fault')}" if faults else f"{path}: no faults")
    return FAULTS if faults else 0


def _tell_halved(export: exporter.Export) -> None:
    """Both counts of every relation whose source stores each edge in both directions."""
    for relation in export.schema["relations"]:
        if relation["symmetric"]:
            rows, edges = count_of(relation["source_rows"], "row"), count_of(relation["rows"], "edge")
            are = "is" if relation["rows"] == 1 else "are"
            both = f"the source stores each edge in both directions, {rows}; here {are} {edges}"
            halved = relation["source_rows"] != relation["rows"]
            told = both if halved else f"the source gives them no direction, {edges}"
            notice(f"relation {relation['id']} ({relation['name']}) is symmetric: {told}")
