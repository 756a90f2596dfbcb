"""Modes: TOML files in `prompts/`, each a complete description of what an agent has and how it is run.

A mode may extend one other mode; its tables are laid over the other's. Nothing in the code asks for a mode's name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

from exporter.view import View as ExportView
from exporter.view import Words
from harness.errors import UserError
from harness.fuse import Fusion
from harness.settings import LONGEST, SMALLEST_WINDOW, Unfit, build, check_range, merge
from harness.suggest import hint
from sandbox import Limits as SandboxLimits
from sandbox.contract import GiB, MiB, Programs

LARGEST = 64 * 1024 * 1024  # MiB, 64 TiB: what an x86-64 kernel can address
_MIB = {"unit": "MiB"}
KERNEL = "python"  # the tool whose interpreter lives as long as the attempt
FEWEST_PIDS = 16  # for the shell, its pipes and the harness's own processes beside them


@dataclass(frozen=True)
class View:
    """What of the export the agent sees."""

    files: bool = True  # nodes, edges, schema and DATA_FORMAT.txt at /graph
    edges: bool = True  # the edge files, and what schema and DATA_FORMAT.txt say of relations
    words: Words = "python"  # which programs DATA_FORMAT.txt names
    programs: Programs = "all"  # "shell": no Python and no other interpreter is in the sandbox
    one_program: bool = False  # with "shell": a python3 that runs one program per attempt and refuses all others
    client: bool = False  # the graph tools as a Python client in the sandbox (`harness/kb`)

    def __post_init__(self) -> None:
        if self.one_program and self.programs == "all":
            raise ValueError("view.one_program needs view.programs=shell")

    @property
    def of_export(self) -> ExportView:
        """The same in the exporter's terms."""
        return ExportView(self.edges, self.words)


@dataclass(frozen=True)
class Limits:
    """Limits of one attempt. Times in seconds; working time leaves out waits for rate limits and queues."""

    turns: int = 300
    seconds: float = 1800.0
    wall_seconds: float | None = None
    tokens: int | None = None  # input and output of all requests together
    cost: float | None = None  # US dollars; never reached where prices are unknown
    format_errors: int = 5  # malformed calls in a row before the attempt ends
    warn: bool = True  # tell the agent once when few turns or seconds are left
    warn_turns: int = 5
    warn_seconds: float = 180.0
    last_turn: bool = True  # at a limit, one more turn without tools to answer

    def __post_init__(self) -> None:
        check_range(self, "turns", "tokens", "format_errors", least=1)
        check_range(self, "seconds", "wall_seconds", above=0, most=LONGEST)
        check_range(self, "cost", above=0)
        check_range(self, "warn_turns", "warn_seconds", least=0)


@dataclass(frozen=True)
class Output:
    """How much of a call's output is shown, and the time a call may take."""

    cap: int = 20_000
    unit: Literal["characters", "bytes"] = "characters"  # of `cap`
    keep: Literal["ends", "tail"] = "ends"  # what stays of an output over the cap
    lines: int | None = None  # shown at most
    line_cap: int | None = 2_000  # characters of a line
    call_seconds: float = 120.0  # when the agent asks for no timeout
    call_seconds_max: float = 600.0
    blob_bytes: int = 8 * 1024 * 1024  # whole outputs up to this size are kept in the run folder

    def __post_init__(self) -> None:
        check_range(self, "cap", least=100, most=100_000_000)
        check_range(self, "lines", least=2)
        check_range(self, "line_cap", least=10)
        check_range(self, "call_seconds", "call_seconds_max", above=0, most=LONGEST)
        check_range(self, "blob_bytes", least=0, most=1_000_000_000)
        if self.call_seconds > self.call_seconds_max:
            most = f"at most call_seconds_max, {self.call_seconds_max:g}"
            hint = f"--set output.call_seconds_max={self.call_seconds:g}, or a shorter output.call_seconds"
            raise Unfit(f"call_seconds is {self.call_seconds:g}; it must be {most}", hint)


@dataclass(frozen=True)
class Context:
    """When old tool results give way to placeholders; `harness/context.py` has the policies."""

    policy: Literal["marks", "sliding", "none"] = "marks"
    window: int | None = None  # tokens; None: the model profile's
    most: int | None = 128_000  # marks: tokens of a larger window that are used; long requests cost, cached or not
    high: float = 0.75  # marks: share of the window over which results are cleared
    low: float = 0.25  # marks: clear down to this share
    sliding_from: int = 240_000  # sliding: characters of results over which only the last turns' are shown
    keep_turns: int = 3  # results of the last turns are never cleared

    def __post_init__(self) -> None:
        check_range(self, "window", "most", least=SMALLEST_WINDOW)
        check_range(self, "high", above=0, most=1)
        check_range(self, "low", least=0, most=self.high)
        check_range(self, "sliding_from", "keep_turns", least=0)


@dataclass(frozen=True)
class Answer:
    """Where the answer comes from and how long it may be."""

    source: Literal["message", "tool", "names", "selection"] = "message"  # names: in the message, mapped to ids
    max_ids: int = 20

    def __post_init__(self) -> None:
        check_range(self, "max_ids", least=1)


@dataclass(frozen=True)
class Agents:
    """How many independent attempts a question gets, and how their answers become one (`harness/fuse.py`)."""

    count: int = 1
    fuse: Fusion = "vote"
    seed: int = 0  # for the fusion `random`

    def __post_init__(self) -> None:
        check_range(self, "count", least=1)


Ranking = Literal["substring", "bm25"]


@dataclass(frozen=True)
class Neighbors:
    """How the tool that looks around a node works (`harness/tools/neighborhood.py`)."""

    ranking: Ranking = "substring"  # of neighbours by a query
    query: bool = True  # whether ARK's takes a query
    types: bool = True  # whether ARK's filters by types of nodes and edges


@dataclass(frozen=True)
class Sandbox:
    """Limits of the attempt's sandbox, sizes in MiB, and the image's base (docker)."""

    memory: int = field(default=4096, metadata=_MIB)
    scratch: int = field(default=1024, metadata=_MIB)
    tmp: int = field(default=256, metadata=_MIB)
    shm: int = field(default=64, metadata=_MIB)
    pids: int = 256
    cpus: float = 1.0
    cpu_seconds: float = 3600.0
    file_size: int = field(default=1024, metadata=_MIB)
    base: str | None = None

    def __post_init__(self) -> None:
        check_range(self, "scratch", "tmp", "shm", "file_size", least=1, most=LARGEST)
        check_range(self, "memory", most=LARGEST)
        if self.memory < (least := self.scratch + GiB // MiB):
            raise Unfit(f"memory is {self.memory:,} MiB; it must be at least scratch + 1,024 = {least:,}", key="memory")
        check_range(self, "pids", least=FEWEST_PIDS, most=4_194_304)  # Linux's own limit
        check_range(self, "cpus", least=0.01, most=8_192)
        check_range(self, "cpu_seconds", least=1, most=LONGEST)

    def limits(self) -> SandboxLimits:
        """The same in the sandbox's own units (bytes)."""
        return SandboxLimits(
            memory=self.memory * MiB,
            scratch=self.scratch * MiB,
            tmp=self.tmp * MiB,
            shm=self.shm * MiB,
            pids=self.pids,
            cpus=self.cpus,
            cpu_seconds=self.cpu_seconds,
            file_bytes=self.file_size * MiB,
        )


@dataclass(frozen=True)
class Mode:
    """A resolved mode.

    `prompt` is the user message, with $query, $max_ids, $graph, $scratch, $access, $reply to fill in; `access` is
    the part that says what this mode's agent has, `reply` the part that says how to answer.
    """

    name: str
    summary: str
    prompt: str
    tools: tuple[str, ...]
    access: str = ""
    reply: str = ""
    system: str = ""  # a system message, with $node_types and $edge_types to fill in
    tool_choice: Literal["auto", "required"] = "auto"
    backbone: str | None = None  # a model of the mode's own, whatever --model says
    model: dict[str, Any] = field(default_factory=dict)  # settings of the model's profile, under the user's own
    graph_access: str = ""  # the paper's Table 3 column, for reports
    python: str = ""
    policy: str | None = None  # of the files in prompts/policies, which `output` and `context` then follow
    view: View = field(default_factory=View)
    limits: Limits = field(default_factory=Limits)
    output: Output = field(default_factory=Output)
    context: Context = field(default_factory=Context)
    answer: Answer = field(default_factory=Answer)
    agents: Agents = field(default_factory=Agents)
    neighbors: Neighbors = field(default_factory=Neighbors)
    sandbox: Sandbox = field(default_factory=Sandbox)

    def __post_init__(self) -> None:
        if KERNEL in self.tools and self.view.programs != "all":
            raise ValueError(f"the tool {KERNEL} needs view.programs=all")

    def as_dict(self) -> dict[str, Any]:
        """Plain tables and values, for the manifest and `harness modes`."""
        return asdict(self)


def mode_names() -> list[str]:
    """Every mode there is, sorted."""
    return _toml_names(resources.files("prompts"))


def load_mode(name: str, overrides: Mapping[str, Any] | None = None) -> Mode:
    """Resolve mode `name` with `overrides` (a nested table, as `--set` gives) on top. Raises UserError."""
    table = merge(_resolved_table(name, seen=()), _with_policy(overrides or {}))
    return build(Mode, {**table, "name": name}, f"mode '{name}'")


def policy_names() -> list[str]:
    """Every policy there is, sorted."""
    return _toml_names(resources.files("prompts") / "policies")


def _with_policy(table: Mapping[str, Any]) -> dict[str, Any]:
    """`table` over the settings of the policy that it names."""
    name = table.get("policy")
    if name in (None, "none"):
        return dict(table)
    if name not in policy_names():
        raise UserError(f"unknown policy {name!r}", hint(str(name), policy_names(), "policies"))
    text = (resources.files("prompts") / "policies" / f"{name}.toml").read_text("utf-8")
    return merge(tomllib.loads(text), table)


def _toml_names(folder: Traversable) -> list[str]:
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def _resolved_table(name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    if name in seen:
        raise UserError(f"mode '{name}' extends itself: {' -> '.join((*seen, name))}")
    if name not in mode_names():
        raise UserError(f"unknown mode '{name}'", hint(name, mode_names(), "modes"))
    table = _with_policy(tomllib.loads((resources.files("prompts") / f"{name}.toml").read_text("utf-8")))
    parent = table.pop("extends", None)
    return merge(_resolved_table(parent, (*seen, name)), table) if parent else table
