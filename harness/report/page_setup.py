"""The page's account of how the runs were made: modes, models, limits, runs, sandboxes, versions, prompts."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from typing import Any

from harness.report.data import Report
from harness.report.html import Child, h, join, table
from harness.results import RunResults
from harness.servers import where_asked
from harness.systems import System
from harness.text import count_of


def setup_section(report: Report) -> Child:
    """Settings side by side (those that differ first), then each run."""
    settings = [dict(_flat(_settings(system))) for system in report.systems]
    keys = list(dict.fromkeys(key for values in settings for key in values))
    header = ("", *(system.label for system in report.systems))
    rows = {key: [_value(values.get(key)) for values in settings] for key in keys}
    differing = [[h("code", key, class_="key"), *row] for key, row in rows.items() if len(set(row)) > 1]
    every = [[h("code", key, class_="key"), *row] for key, row in rows.items()]
    width = len(header)
    return [
        [h("h3", "Settings that differ"), table(header, differing, left=width)] if differing else None,
        h("details", h("summary", f"All settings ({len(every)})"), table(header, every, left=width)),
        [_prompt(system) for system in report.systems],
        h("h3", "Runs"),
        [_run(system, graph, run) for system in report.systems for graph, run in system.runs.items()],
    ]


def _settings(system: System) -> dict[str, Any]:
    """A system's mode and model, without the texts that are shown by themselves."""
    run = next(iter(system.runs.values()))
    mode = {key: value for key, value in run.mode.items() if key not in ("name", "prompt", "access")}
    return {**mode, "model": run.manifest["model"]}


def _prompt(system: System) -> Child:
    prompt = str(system.mode.get("prompt", "")).replace("$access", str(system.mode.get("access", "")).strip())
    return h("details", h("summary", f"Prompt of {system.label}"), h("pre", prompt.strip()))


def _run(system: System, graph: str, run: RunResults) -> Child:
    manifest = run.manifest
    export, questions = manifest["export"], manifest["questions"]
    probe = manifest.get("probe") or []
    failed = [result["name"] for result in probe if not result["passed"]]
    facts: dict[str, Child] = {
        "folder": h("code", str(run.path)),
        "started": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(manifest.get("created", 0))),
        "command": h("code", shlex.join(manifest.get("command") or [])),
        "model asked": where_asked(manifest) or _value(manifest["model"].get("endpoint")),
        "questions": f"{len(run.questions):,} from {questions['source']}, sha256 {questions['sha256'][:16]}",
        "export": f"{count_of(export['nodes'], 'node')}, {count_of(export['edges'], 'edge')},"
        f" digest {export['digest'][:16]}",
        "prompts": ", ".join(f"{name} {digest[:16]}" for name, digest in manifest.get("prompts", {}).items()) or "-",
        "sandbox": _value(manifest.get("sandbox")),
        "isolation probe": _probe(len(probe), failed),
        "workers, retry": f"{manifest.get('workers')}, {manifest.get('retry')}",
        "versions": join(_versions(manifest.get("versions") or {}), ", "),
    }
    rows = [[h("span", name, class_="dim"), h("div", fact, class_="text")] for name, fact in facts.items()]
    return h("details", h("summary", f"{system.label} on {graph}"), table(("", ""), rows, left=2))


def _probe(count: int, failed: list[str]) -> str:
    if not count:
        return "not recorded"
    return f"failed: {', '.join(failed)}" if failed else f"{count_of(count, 'check')} passed"


def _versions(versions: Mapping[str, Any]) -> Iterator[str]:
    for name, version in versions.items():
        yield f"{name} {version or 'unknown'}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
