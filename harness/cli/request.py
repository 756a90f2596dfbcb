"""What `harness run` was asked for, resolved into jobs: one per graph and mode, each with its run folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporter import Export
from exporter.stark import DATASETS
from harness.backbones import OTHERS, Profile, load_profile, make_backbone, maker_of_own, takes_settings
from harness.backbones.profiles import bare_profile, model_settings
from harness.backbones.replay import ReplayBackbone
from harness.budget import Budget
from harness.cli.file_progress import file_progress
from harness.cli.output import notice
from harness.errors import UserError
from harness.events import folder_name
from harness.fuse import Fusion
from harness.graphs import Graph, data_directory, open_graph, verify
from harness.ledger import RetryPolicy
from harness.messages import Backbone
from harness.modes import Mode, Sandbox, load_mode
from harness.questions import QuestionSet, load_questions
from harness.runfiles import MANIFEST
from harness.servers import KEYS
from harness.settings import build, merge, parse_assignments
from harness.slot import total_memory
from harness.tools.kit import needs_sandbox
from sandbox.contract import MiB

RUNS = Path("runs")


@dataclass(frozen=True)
class Job:
    """One graph in one mode: one run folder. `backbone` is None where `lacking` says why there is none."""

    graph: Graph
    mode: Mode
    profile: Profile
    backbone: Backbone | None
    lacking: UserError | None
    questions: QuestionSet
    budget: Budget
    out: Path

    @property
    def attempts(self) -> int:
        """How many attempts are due, without retries."""
        return len(self.questions.questions) * self.mode.agents.count

    @property
    def interactive(self) -> bool:
        """Whether a person at this terminal is the model."""
        return getattr(self.backbone, "interactive", False)

    @property
    def at_once(self) -> int | None:
        """How many questions the model takes at a time, where it says so."""
        return 1 if self.interactive else getattr(self.backbone, "at_once", None)

    @property
    def replays(self) -> bool:
        """Whether the model's words are recorded ones, so that results can be compared with theirs."""
        return getattr(self.backbone, "replays", False)


@dataclass(frozen=True)
class Request:
    """The flags of `harness run`."""

    graphs: tuple[str, ...]
    modes: tuple[str, ...]
    model: str
    base_url: str | None
    splits: tuple[str, ...] | None
    limit: int | None
    sample: int | None
    seed: int
    queries: Path | None
    workers: int
    agents: int | None
    fuse: Fusion | None
    sandbox_kind: str
    retry: RetryPolicy
    out: Path | None
    resume: bool
    data_dir: Path | None
    assignments: tuple[str, ...]
    dry_run: bool

    @property
    def names(self) -> set[str]:
        """Which of `servers.KEYS` it sets itself rather than leaving them to a profile."""
        of_model = model_settings(parse_assignments(self.assignments))
        return {*KEYS} & {*of_model, *(["endpoint"] if self.base_url is not None else [])}

    def jobs(self) -> list[Job]:
        """Everything that is to run. Raises UserError for the first thing that can't be; nothing is written for it
        but the exports of graphs that are used for the first time."""
        flags = {"count": self.agents, "fuse": self.fuse}
        agents = {"agents": {key: value for key, value in flags.items() if value is not None}}
        settings = merge(agents, parse_assignments(self.assignments))
        of_model = model_settings(settings)
        budget = _budget(settings.pop("run", {}))
        modes = [load_mode(name, settings) for name in self.modes]
        for mode in modes:
            _check_memory(mode)
        data = data_directory(self.data_dir)
        models = Models(self, of_model)
        for mode in modes:
            if mode.backbone is None:
                backbone, profile, _ = models.of(mode)
                _check_prices(budget, [mode], profile)
                _check_recorded(backbone, mode, self.graphs)
        with file_progress() as progress:
            graphs = [
                open_graph(name, data, notice, progress=progress, download=not self.dry_run) for name in self.graphs
            ]
        jobs = []
        for graph in graphs:
            verify(graph.export)
            for mode in modes:
                model = None if mode.backbone else models.of(mode)
                known = model and model[0]
                questions = load_questions(
                    graph.export,
                    splits=self.splits or (),
                    limit=self.limit,
                    sample=self.sample,
                    seed=self.seed,
                    file=self.queries,
                    only=getattr(known, "knows", None),
                    only_hint=known.needs.usual if isinstance(known, ReplayBackbone) else "",
                )
                backbone, profile, lacking = model or self._own_model(mode, graph.export)
                jobs.append((graph, mode, profile, backbone, lacking, questions, budget))
        outs = self._outs([(graph.name, mode.name) for graph, mode, *_ in jobs])
        return [Job(*parts, out) for parts, out in zip(jobs, outs, strict=True)]

    def _own_model(self, mode: Mode, export: Export) -> tuple[Backbone | None, Profile, None]:
        """The model that the mode itself names; a dry run doesn't make what it needs."""
        name = str(mode.backbone)
        make = maker_of_own(name)
        backbone = None if self.dry_run else make(export, mode.answer.max_ids, notice)
        return backbone, bare_profile(name), None

    def _outs(self, names: list[tuple[str, str]]) -> list[Path]:
        if self.resume and self.out is None:
            found = sorted((path.parent for path in RUNS.glob(f"*/{MANIFEST}")), key=lambda path: path.stat().st_mtime)
            latest = f"the latest run here is {found[-1]}" if found else "name the run folder"
            raise UserError("--resume needs --out, the folder of the run to finish", latest)
        folders = [folder_name(f"{graph}-{mode}") for graph, mode in names]
        if len(set(folders)) < len(folders):
            raise UserError("two of the graphs have the same name", "run them one by one, each with its own --out")
        if len(folders) == 1:
            return [self.out or _unused(f"{_now()}-{folders[0]}")]
        parent = self.out or _unused(_now())
        return [parent / folder for folder in folders]


class Models:
    """The models of a command: one for all modes that ask for the same settings, so that they share its limits."""

    def __init__(self, request: Request, overrides: Mapping[str, Any]) -> None:
        self._request, self._overrides = request, overrides
        self._made: dict[str, tuple[Backbone | None, Profile, UserError | None]] = {}

    def of(self, mode: Mode) -> tuple[Backbone | None, Profile, UserError | None]:
        """The model asked for, with the mode's settings under the user's.

        In a dry run one that lacks only its key is a profile, with what is lacking. Raises UserError.
        """
        overrides = merge(mode.model, self._overrides) if takes_settings(self._request.model) else self._overrides
        key = repr(sorted(overrides.items()))
        if key not in self._made:
            self._made[key] = self._make(overrides)
        return self._made[key]

    def _make(self, overrides: Mapping[str, Any]) -> tuple[Backbone | None, Profile, UserError | None]:
        name, url = self._request.model, self._request.base_url
        try:
            return *make_backbone(name, base_url=url, overrides=overrides, notice=notice), None
        except UserError as error:
            if not self._request.dry_run:
                raise
            lacking = error
        try:
            profile = load_profile(name, base_url=url, overrides=overrides, others=OTHERS)
        except UserError:
            raise lacking from None
        return None, profile, lacking


def _budget(table: Any) -> Budget:
    if not isinstance(table, Mapping):
        raise UserError("--set run takes a limit of the run", "for example: --set run.tokens=5_000_000")
    return build(Budget, table, "--set run")


def _check_memory(mode: Mode) -> None:
    """Raise UserError for a sandbox that may take more than this machine has, unless it's the default."""
    most = max(total_memory() // MiB, Sandbox().memory)
    if needs_sandbox(mode.tools) and mode.sandbox.memory > most:
        raise UserError(
            f"sandbox.memory is {mode.sandbox.memory:,} MiB; it must be at most {most:,}, this machine's memory",
            "leave it out, or --set sandbox.memory=MIB",
        )


def _check_prices(budget: Budget, modes: Iterable[Mode], profile: Profile) -> None:
    """Raise UserError for a limit of the cost that could never bind."""
    unknown = profile.prices.input is None or profile.prices.output is None
    for name, limit in (("run.cost", budget.cost), *(("limits.cost", mode.limits.cost) for mode in modes)):
        if limit is not None and unknown:
            hint = "--set model.prices.input=… and model.prices.output=… (dollars per million tokens)"
            raise UserError(f"{name} can't be kept: the prices of model '{profile.name}' are unknown", hint)


def _check_recorded(backbone: Backbone | None, mode: Mode, graphs: Iterable[str]) -> None:
    """Raise UserError for recorded turns where the mode's tools or sandbox are others than theirs, or the graph is one
    that may first have to be downloaded."""
    if not isinstance(backbone, ReplayBackbone):
        return
    needs = backbone.needs
    what = f"model '{backbone.name}' can't be used in mode '{mode.name}':"
    if needs.tools - set(mode.tools):
        called, there = (", ".join(sorted(tools)) or "none" for tools in (needs.tools, mode.tools))
        raise UserError(f"{what} its recorded turns call {called}, and the mode's tools are: {there}", needs.usual)
    if needs.mode is not None and load_mode(needs.mode).view != mode.view:
        raise UserError(
            f"{what} its turns were recorded in mode '{needs.mode}', with other files or programs", needs.usual
        )
    for name in graphs:
        if needs.graph is not None and name != needs.graph and name in DATASETS:
            raise UserError(f"model '{backbone.name}' knows none of the questions in graph {name}", needs.usual)


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _unused(name: str) -> Path:
    path, number = RUNS / name, 1
    while path.exists():
        number += 1
        path = RUNS / f"{name}-{number}"
    return path
