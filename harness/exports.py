"""The data directory and the exports in it. Nothing here asks the network."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

from exporter import Export, ExportError, biogo_sources, export_tables
from harness.config import APP
from harness.errors import UserError

EMBEDDED = "biogo"


def data_directory(named: Path | None) -> Path:
    """`named` (from a flag, the environment or the config), else the platform's folder for user data."""
    return named or platformdirs.user_data_path(APP)


def exports_in(data: Path, name: str) -> Iterator[Export]:
    """Every export that can be opened: `data` itself if it is one, and those in the data directory.

    Where `name` is the embedded sample's and it has not been exported yet, it is, if it can be.
    """
    places = sorted((data / "exports").glob("*"), key=lambda place: place.name != name)
    for place in (data, *places):
        if is_export(place):
            with contextlib.suppress(ExportError):
                yield Export.open(place)
    if name == EMBEDDED and not (data / "exports" / name).exists():
        with contextlib.suppress(UserError, OSError):
            yield export_embedded(data / "exports" / name, lambda _: None)


def is_export(path: Path) -> bool:
    """Whether an export seems to lie there."""
    return (path / "manifest.json").is_file()


def waiting_for(place: Path) -> str:
    """What is said while another process exports to `place`."""
    return f"waiting for another process that exports to {place}"


def export_embedded(place: Path, notice: Callable[[str], None]) -> Export:
    """Export the embedded sample to `place`. Raises UserError."""
    sources = biogo_sources()

    def turn(ours: bool) -> None:
        notice(f"exporting the embedded graph {EMBEDDED} to {place}" if ours else waiting_for(place))

    try:
        return export_tables(
            sources.nodes,
            sources.edges,
            place,
            queries=sources.queries,
            name=EMBEDDED,
            reuse=True,
            index=True,
            turn=turn,
        )
    except ExportError as error:
        raise UserError(str(error), f"{error.hint} with --data-dir or HARNESS_DATA") from None
