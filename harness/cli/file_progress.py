"""A bar of bytes for work on files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from harness.text import plain


@contextmanager
def file_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar of bytes per stage on a terminal's stderr; None where there is no terminal."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(plain(stage).replace("[", r"\["), total=total or None)
            bars.update(tasks[stage], completed=done, total=total or None)

        yield progress
