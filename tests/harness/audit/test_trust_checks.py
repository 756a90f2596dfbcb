"""Every check of whether a run can be trusted: it finds the fault that was planted, and nothing in a sound run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.audit import CHECKS, Audit, audit_run
from harness.audit.checks import run as run_checks
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.saved import Ask, make_export

# What an agent does that raises no suspicion, though it looks a bit like it.
SOUND = [
    Step("cat /graph/DATA_FORMAT.txt /graph/schema.json", "answers lie elsewhere"),
    Step("(cd /graph && rg 'Permission denied' nodes) > out.txt; tee copy < out.txt", '{"name":"Permission denied"}'),
    Step(
        "cat > a.py <<'X'\nfor l in open('/graph/nodes/0000.jsonl'):\n    print(l)\nX\npython3 a.py",
        "0\n2\n4\n6",
    ),
    Step("rg x /graph/none", "", exit_code=1),
    Step("mkdir -p d && cd d && touch x && rm x; sleep 1 & kill $!; wait", ""),
]  # fmt: skip
PASSED = [{"name": "network", "passed": True, "detail": ""}]


@dataclass(frozen=True)
class Plant:
    """A run with one fault: its attempts by question beside the sound ones, or what is done to it afterwards."""

    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    unledgered: tuple[str, ...] = ()
    then: Callable[[Path], None] = lambda run: None


def one(*steps: Step, **more: Any) -> Plant:
    return Plant({"q4": [Attempt(steps, (8,), **more)]})


def tear(run: Path) -> None:
    path = run / "trajectories" / "q4" / "0-0.jsonl"
    path.write_bytes(path.read_bytes()[:-9])


def spoil_line(run: Path) -> None:
    path = run / "trajectories" / "q4" / "0-0.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0" * 40 + b"\n", *lines[3:]]))


def change_questions(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["questions"]["sha256"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(manifest))


def spoil_ledger(run: Path) -> None:
    path = run / "attempts.jsonl"
    line = json.loads(path.read_bytes().splitlines()[0])
    path.write_bytes(path.read_bytes() + json.dumps({**line, "agent": 7}).encode() + b"\n")


CANARY = "the canary"
PLANTED: dict[tuple[str, str], Plant] = {
    ("labels_seen", "the canary of the label files"): one(Step("cat x", CANARY)),
    ("labels_seen", "the name of a label file's field"): one(Step("cat x", '{"answer_ids": [1]}')),
    ("labels_seen", "the gold in the label file's own order"): one(Step("cat x", "[4, 2, 6]")),
    ("attempts_at", "to reach the network"): one(Step("curl -s x | sh")),
    ("attempts_at", "to change the graph"): one(Step("cd /graph; touch x")),
    ("attempts_at", "to look outside of the graph and the scratch directory"): one(Step("ls /etc")),
    ("attempts_at", "to touch processes or mounts"): one(Step("kill -9 1")),
    ("sandbox_failures", "read_only"): one(Step("touch x; echo done", "touch: x: Read-only file system\ndone")),
    ("ended_by_limits", "oom"): one(Step("python3 a.py", termination="oom")),
    ("answers_at_limits", ""): one(extra={"limit": "turn_limit"}),
    ("infrastructure", ""): one(stop="backbone_error"),
    ("lost_in_call", ""): one(extra={"counts": {"lost_in_call": 1}}),
    ("unledgered", ""): Plant({"q4": [Attempt()]}, unledgered=("q4",)),
    ("faults", ""): Plant({"q4": [Attempt()]}, then=tear),
    ("damaged_lines", ""): Plant({"q4": [Attempt([Step("ls", "8")], (8,))]}, then=spoil_line),
    ("differing_prompts", "prompt"): one(prompt="Guess: {query}"),
    ("differing_prompts", "tools"): one(tools=("bash",)),
    ("differing_prompts", "mode"): one(mode="shell"),
    ("changed_inputs", ""): Plant(then=change_questions),
    ("probe", "failed"): Plant(manifest={"probe": [{"name": "dns", "passed": False, "detail": "resolved"}]}),
    ("manifest_and_ledger", ""): Plant(then=spoil_ledger),
    ("retried", ""): Plant({"q4": [Attempt(stop="sandbox_lost"), Attempt(ids=(8,))]}),
    ("retry_bias", "hits by retrying"): Plant({"q4": [Attempt(stop="sandbox_lost"), Attempt(ids=(4,))]}),
    ("stop_reasons", "time_limit"): one(stop="time_limit"),
}  # fmt: skip


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    gold = {"q1": (0, 2), "q2": (4,), "q3": (6,), "q4": (4, 2, 6)}
    asked = [Ask(query, nodes) for query, nodes in gold.items()]
    return make_export(tmp_path_factory.mktemp("graph") / "graph", "small", asked)


def audited(folder: Path, export: Export, plant: Plant) -> Audit:
    canary = str(export.manifest["canary"])
    planted = {
        query: [
            Attempt(**{**vars(each), "steps": [_with_canary(step, canary) for step in each.steps]}) for each in attempts
        ]
        for query, attempts in plant.attempts.items()
    }
    sound = {query: [Attempt(SOUND, ids)] for query, ids in (("q1", (0, 2)), ("q2", (4,)), ("q3", (6, 4)))}
    fields = {"probe": PASSED, **plant.manifest}
    run = make_audited_run(folder / "run", export, {**sound, **planted}, unledgered=plant.unledgered, **fields)
    plant.then(run)
    return audit_run(run)


def _with_canary(step: Step, canary: str) -> Step:
    return Step(**{**vars(step), "output": step.output.replace(CANARY, f"x {canary}")})


def counts(audit: Audit) -> dict[tuple[str, str], float]:
    """What every check of trust counts, but how attempts ended and what is in every run."""
    names = [check.name for check in CHECKS if check.section == "trust"] + [check.name for check in run_checks.CHECKS]
    found = {(name, label): tally.count for name in names for label, tally in audit.rows(name).items()}
    usual = {("stop_reasons", "answered"), *(("retry_bias", f"hits of {which}") for which in USUAL)}
    return {key: count for key, count in found.items() if count and key not in usual}


USUAL = ("first attempts", "attempts that count")
# What a fault brings with it besides the check that is for it.
ALONG = {
    "infrastructure": {"stop_reasons"}, "lost_in_call": set(), "unledgered": set(),
    "retried": {"retry_bias", "stop_reasons"}, "retry_bias": {"retried", "stop_reasons"},
    "manifest_and_ledger": {"retried"},
}  # fmt: skip


def test_a_sound_run(tmp_path: Path, export: Export) -> None:
    audit = audited(tmp_path, export, Plant())
    assert counts(audit) == {}
    assert audit.alarms() == []


@pytest.mark.parametrize(("name", "label"), PLANTED, ids=lambda text: text or "-")
def test_a_planted_fault(tmp_path: Path, export: Export, name: str, label: str) -> None:
    audit = audited(tmp_path, export, PLANTED[name, label])
    found = counts(audit)
    assert found[name, label] == 1
    assert {other for other, _ in found} <= {name, *ALONG.get(name, ())}
    tally = audit.rows(name)[label]
    assert tally.of >= tally.count
    assert tally.places or name == "stop_reasons"
    alarm = {check.name: check.alarm for check in (*CHECKS, *run_checks.CHECKS)}[name]
    assert bool(audit.alarms()) == (alarm or any(other == "infrastructure" for other, _ in found))


def test_every_check_of_trust_has_a_planted_fault() -> None:
    names = {check.name for check in CHECKS if check.section == "trust"} | {check.name for check in run_checks.CHECKS}
    assert names == {name for name, _ in PLANTED}


def test_a_run_without_sandboxes_needs_no_probe(tmp_path: Path, export: Export) -> None:
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(ids=(0,))]}, sandbox={"kind": "none"})
    manifest = json.loads((run / "manifest.json").read_bytes())
    for kind, expected in (("none", 0), ("docker", 1)):
        kept = {key: value for key, value in manifest.items() if key != "probe"} | {"sandbox": {"kind": kind}}
        (run / "manifest.json").write_text(json.dumps(kept))
        assert audit_run(run).rows("probe")["no probe"].count == expected
