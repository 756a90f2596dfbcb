"""STaRK's graphs by name: found on this machine, or downloaded from the Hugging Face dataset repository.

Looked for in the data directory, in its folder stark/, and in huggingface_hub's cache (HF_HOME, HF_HUB_CACHE). A
download goes into stark/, from HF_ENDPOINT where it is set, and never where HF_HUB_OFFLINE is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from exporter import Export, ExportError
from exporter.stark import DATASETS, READER, Place, difference, find
from harness.errors import UserError

REPOSITORY = "snap-stanford/stark"
REVISION = "88269e23e90587f99476c5dd74e235a0877e69be"  # 2024-10-20, the repository's last change so far
_FOLDER = "stark"  # of the data directory

Notice = Callable[[str], None]


def locate(name: str, data: Path) -> Place | None:
    """Where the graph's files lie on this machine, if they do. Asks no network."""
    for root in (data, data / _FOLDER, _snapshot()):
        place = find(DATASETS[name], root)
        if place is not None:
            return place
    return None


def fetch(name: str, data: Path, notice: Notice) -> Place:
    """The graph's files, downloaded where they aren't on this machine.

    Raises UserError where they can't be had from here, InfrastructureError where the download fails: the next one goes
    on where it stopped.
    """
    place = locate(name, data)
    if place is not None and (place.qa is not None or not _is_cached(place) or is_offline()):
        return place
    if is_offline():
        raise UserError(
            f"graph '{name}' is not on this machine, and HF_HUB_OFFLINE forbids to download it", _by_hand(name, data)
        )
    from harness.hub import Repository  # noqa: PLC0415 - half a second to import

    def turn(ours: bool) -> None:
        what = f"{name} ({size_of(name)}) from {_endpoint()}, {REPOSITORY} at {REVISION[:7]}"
        notice(f"downloading {what}" if ours else f"waiting for another process that downloads to {data / _FOLDER}")

    Repository(REPOSITORY, REVISION).download(data / _FOLDER, _needed(name), _optional(name), turn)
    place = find(DATASETS[name], data / _FOLDER)
    assert place is not None
    return place


def is_stale(name: str, export: Export, place: Place | None) -> str:
    """Why an export is not what `place` would give now, in a few words; nothing where it is."""
    if export.manifest["source"].get("reader") != READER:
        return "made by another version"
    if place is None:
        return ""
    try:
        return difference(DATASETS[name], place, export.manifest)
    except (ExportError, OSError) as error:
        return f"the files beside it can't be compared with what it was made of ({error})"


def size_of(name: str) -> str:
    """The size of the download, for people."""
    return f"about {DATASETS[name].archive_bytes / 1e6:,.0f} MB"


def is_offline() -> bool:
    """Whether huggingface_hub was told to stay off the network."""
    return bool(_hub_constants().HF_HUB_OFFLINE)


def _needed(name: str) -> list[str]:
    splits = [f"qa/{name}/split/{split}.index" for split in ("train", "val", "test")]
    return [f"qa/{name}/stark_qa/stark_qa.csv", *splits, f"skb/{name}/processed.zip"]


def _optional(name: str) -> list[str]:
    return [f"qa/{name}/split/test-0.1.index", f"qa/{name}/stark_qa/stark_qa_human_generated_eval.csv"]


def _by_hand(name: str, data: Path) -> str:
    return f"put skb/{name} and qa/{name} of the dataset repository {REPOSITORY} into {data}"


def _hub_constants() -> Any:
    from huggingface_hub import constants  # noqa: PLC0415

    return constants


def _endpoint() -> str:
    return str(_hub_constants().ENDPOINT)


def _snapshot() -> Path:
    """Where huggingface_hub keeps the files of the pinned revision."""
    folder = f"datasets--{REPOSITORY.replace('/', '--')}"
    return Path(_hub_constants().HF_HUB_CACHE) / folder / "snapshots" / REVISION


def _is_cached(place: Place) -> bool:
    return place.processed.is_relative_to(_snapshot())
