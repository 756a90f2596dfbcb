"""Runs as the systems that are compared: a mode with a model, and its runs over one graph or several.

Folders are given in any number: runs, or parents that hold runs. Runs of the same mode and model over different graphs
are one system; two runs over the same graph never are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from harness.errors import UserError
from harness.prices import PriceList
from harness.results import QuestionResult, RunResults, read_results
from harness.runfiles import MANIFEST, read_manifest
from harness.servers import model_now


class Key(NamedTuple):
    """Which question: the graph's name and the question's id."""

    graph: str
    id: str


@dataclass(frozen=True)
class System:
    """One row of a comparison. `runs` is by graph name, in the order in which they were found."""

    label: str
    runs: dict[str, RunResults]

    def __iter__(self) -> Iterator[tuple[Key, QuestionResult]]:
        for graph, run in self.runs.items():
            for identity, result in run.questions.items():
                yield Key(graph, identity), result

    def __len__(self) -> int:
        return sum(len(run.questions) for run in self.runs.values())

    @property
    def mode(self) -> dict[str, Any]:
        """The resolved mode, the same in all runs."""
        return next(iter(self.runs.values())).mode

    @property
    def model(self) -> str:
        """The model's name."""
        return next(iter(self.runs.values())).model

    def get(self, key: Key) -> QuestionResult | None:
        """The result of a question; None where it isn't one of this system's."""
        run = self.runs.get(key.graph)
        return run.questions.get(key.id) if run else None

    def has(self, key: Key) -> bool:
        """Whether the question was asked to its end."""
        result = self.get(key)
        return result is not None and result.asked

    def field_names(self) -> list[str]:
        """Every name that `field` knows, in the order of the first run that has it."""
        return list(dict.fromkeys(name for run in self.runs.values() for name in run.field_names()))

    def field(self, name: str, key: Key) -> Any:
        """A field of one of its questions."""
        return self.runs[key.graph].field(name, key.id)


@dataclass
class _Group:
    identity: bytes
    runs: dict[str, RunResults] = field(default_factory=dict)

    def names(self) -> tuple[str, str, str]:
        """What may tell it from another of the same mode, the shortest first: model, folder, path."""
        run = next(iter(self.runs.values()))
        return run.model, run.path.name, str(run.path)

    @property
    def mode(self) -> str:
        return str(next(iter(self.runs.values())).mode["name"])


def load_systems(folders: Sequence[Path], prices: PriceList | None = None, data: Path | None = None) -> list[System]:
    """The systems in these run and parent folders, in their order; `prices` and `data` as in `read_results`.

    Raises UserError.
    """
    paths = list(dict.fromkeys(all_runs(folders)))
    names: dict[str, str] = {}  # the first name that a graph went by, by the digest of its export
    groups: list[_Group] = []
    for path in paths:
        run = read_results(path, prices, data)
        graph = names.setdefault(run.manifest["export"]["digest"], run.graph)
        _group_for(groups, run, graph).runs[graph] = run
    return [System(label, group.runs) for label, group in zip(_labels(groups), groups, strict=True)]


def all_runs(folders: Sequence[Path]) -> list[Path]:
    """The runs in these run and parent folders, in their order. Raises UserError as `find_runs`."""
    return [run for folder in folders for run in find_runs(folder)]


def find_runs(folder: Path) -> list[Path]:
    """The run folder itself, or the runs in it by the time they were started. Raises UserError where there is none."""
    if not (folder / MANIFEST).is_file():
        inside = [path.parent for path in folder.glob(f"*/{MANIFEST}")]
        if inside:
            return sorted(inside, key=lambda path: (read_manifest(path).get("created", 0), path.name))
        if folder.is_dir():
            raise UserError(f"{folder} holds no runs", "give the folder that `harness run` named, or its parent")
    read_manifest(folder)
    return [folder]


def _group_for(groups: list[_Group], run: RunResults, graph: str) -> _Group:
    """The group that a run joins: the same mode and model, its graph not yet there; best one in the same parent."""
    identity = orjson.dumps([run.mode, model_now(run.manifest)], option=orjson.OPT_SORT_KEYS)
    open_ = [group for group in groups if group.identity == identity and graph not in group.runs]
    if not open_:
        groups.append(_Group(identity))
        return groups[-1]
    beside = [group for group in open_ if run.path.parent in {other.path.parent for other in group.runs.values()}]
    return (beside or open_)[-1]


def _labels(groups: Sequence[_Group]) -> list[str]:
    """The mode; where several have it, with the first of model, folder and path that tells all of them apart."""
    labels = {}
    for mode, members in _by_mode(groups).items():
        columns = zip(*(groups[i].names() for i in members), strict=True)
        names = next(column for column in columns if len(set(column)) == len(members))
        for i, name in zip(members, names, strict=True):
            labels[i] = mode if len(members) == 1 else f"{mode} ({name})"
    return [labels[i] for i in range(len(groups))]


def _by_mode(groups: Sequence[_Group]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, group in enumerate(groups):
        found.setdefault(group.mode, []).append(i)
    return found
