"""Whole runs audited."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter import Export
from harness.audit import CHECKS, Audit, audit_run
from harness.audit.checks.answers import ERROR_CLASSES, GOLD_CLASSES
from harness.errors import UserError
from harness.events import read_events, trajectory_path
from harness.ledger import AttemptRecord
from harness.questions import load_questions
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.runs import make_export
from tests.support.saved import tree_digest

PYTHON = "python3 -c \"print([l for l in open('/graph/nodes/0000.jsonl')])\""


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def count(audit: Audit, check: str, label: str = "") -> tuple[float, float]:
    tally = audit.rows(check)[label]
    return tally.count, tally.of


def test_checks_have_names_of_their_own() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_figures_over_several_attempts(tmp_path: Path, export: Export) -> None:
    attempts = {
        "q1": [Attempt([Step("rg a", "0 and 2"), Step(PYTHON, "2")], (0, 30))],
        "q2": [Attempt([Step("rg b", "")], stop="backbone_error"), Attempt([Step(PYTHON), Step("rg c", "4")], (8, 4))],
        "q3": [Attempt([Step("cat x"), Step("cat x")], (), "no_answer")],
    }  # fmt: skip
    audit = audit_run(make_audited_run(tmp_path / "run", export, attempts))
    assert count(audit, "calls_by_kind", "python") == (2, 6)
    assert count(audit, "with_python") == (2, 3)
    assert count(audit, "python_commands") == (2, 6)
    assert count(audit, "operations", "node_scan") == (2, 2)
    assert count(audit, "hardest_operation", "node_scan") == (2, 3)
    assert count(audit, "hardest_operation", "no Python") == (1, 3)
    assert count(audit, "error_classes", "hit") == (1, 3)
    assert count(audit, "error_classes", "ranking") == (1, 3)
    assert count(audit, "error_classes", "no answer") == (1, 3)
    assert count(audit, "gold_classes", "returned first") == (1, 4)
    assert count(audit, "gold_classes", "shown, not returned") == (1, 4)
    assert count(audit, "gold_classes", "never seen") == (1, 4)
    assert count(audit, "infrastructure") == (0, 3)
    assert count(audit, "stop_reasons", "backbone_error") == (1, 4)
    assert count(audit, "repeated_calls") == (1, 7)
    assert count(audit, "cached_tokens") == (2400, 4000)
    assert count(audit, "time_by_part", "model") == (24, 40)
    assert count(audit, "retried") == (1, 3)
    assert count(audit, "retry_bias", "hits of first attempts") == (1, 3)
    assert audit.spread("programs_per_attempt").values == [1, 1, 0]
    places = audit.rows("operations")["node_scan"].places
    assert [place[:2] for place in places] == [("trajectories/q1/0-0.jsonl", 5), ("trajectories/q2/0-1.jsonl", 3)]
    assert not audit.facts.unknown


def test_what_retrying_adds(tmp_path: Path, export: Export) -> None:
    attempts = {
        "q1": [Attempt(stop="sandbox_lost", extra={"counts": {"lost_in_call": 1}}), Attempt(ids=(0,))],
        "q2": [Attempt(ids=(4,))],
        "q3": [Attempt(stop="interrupted"), Attempt(ids=(6,))],
    }
    audit = audit_run(make_audited_run(tmp_path / "run", export, attempts))
    assert count(audit, "retry_bias", "hits of first attempts") == (2, 3)
    assert count(audit, "retry_bias", "hits of attempts that count") == (3, 3)
    assert count(audit, "retry_bias", "hits by retrying") == (1, 3)
    assert count(audit, "retried") == (1, 3)
    assert count(audit, "lost_in_call") == (1, 5)


def test_answers_at_limits_and_rejected_ids(tmp_path: Path, export: Export) -> None:
    answer = {
        "repairs": ["fenced"],
        "rejected": [{"value": 99, "why": "unknown"}, {"value": 1, "why": "not_a_candidate"}],
    }
    attempts = {"q1": [Attempt(ids=(0,), extra={"limit": "turn_limit", "answer": answer})], "q2": [Attempt(ids=(4,))]}
    audit = audit_run(make_audited_run(tmp_path / "run", export, attempts))
    assert count(audit, "answers_at_limits") == (1, 2)
    assert count(audit, "rejected_ids", "unknown") == (1, 4)
    assert count(audit, "repaired_answers") == (1, 2)


def test_what_differs_within_a_run(tmp_path: Path, export: Export) -> None:
    attempts = {
        "q1": [Attempt()],
        "q2": [Attempt()],
        "q3": [Attempt(prompt="Guess: {query}")],
        "q4": [Attempt(tools=("bash",))],
    }
    audit = audit_run(make_audited_run(tmp_path / "run", export, attempts))
    assert count(audit, "differing_prompts", "prompt") == (1, 4)
    assert count(audit, "differing_prompts", "tools") == (1, 4)
    assert count(audit, "differing_prompts", "mode") == (0, 4)
    assert audit.rows("differing_prompts")["prompt"].places[0].file == "trajectories/q3/0-0.jsonl"


def test_probes_and_trajectories_in_flight(tmp_path: Path, export: Export) -> None:
    failed = [{"name": "dns", "passed": False, "detail": "resolved"}, {"name": "network", "passed": True, "detail": ""}]
    attempts = {"q1": [Attempt([Step("a", "0")], ids=(0,))], "q2": [Attempt(ids=(4,))]}
    run = make_audited_run(tmp_path / "run", export, attempts, unledgered=["q1"], probe=failed)
    audit = audit_run(run)
    assert count(audit, "probe", "failed") == (1, 2)
    assert count(audit, "unledgered") == (1, 2)
    assert count(audit, "error_classes", "hit") == (1, 1)
    titles = {title for title, _, _ in audit.alarms()}
    assert titles == {"isolation probe", "trajectories not in the ledger"}


def test_a_sound_run_raises_no_alarm(tmp_path: Path, export: Export) -> None:
    assert audit_run(make_audited_run(tmp_path / "run", export, {"q1": [Attempt(ids=(0,))]})).alarms() == []


def test_several_agents_are_attempts_of_their_own(tmp_path: Path, export: Export) -> None:
    attempts = {"q1": [Attempt(ids=(0,), agent=0), Attempt(ids=(30,), agent=1), Attempt(ids=(2,), agent=2)]}
    audit = audit_run(make_audited_run(tmp_path / "run", export, attempts))
    assert count(audit, "error_classes", "hit") == (2, 3)
    assert audit.as_dict()["questions"] == 1


def test_without_the_export_gold_is_left_out(tmp_path: Path) -> None:
    mine = make_export(tmp_path / "graph")
    run = make_audited_run(tmp_path / "run", mine, {"q1": [Attempt([Step("a", "0")], ids=(0,))]})
    shutil.rmtree(tmp_path / "graph")
    audit = audit_run(run)
    assert "can't be read" in audit.facts.unknown[0]
    assert count(audit, "error_classes", "no gold") == (1, 1)
    assert count(audit, "returned_ids", "in an output that was still there") == (1, 1)
    assert count(audit, "changed_inputs") == (1, 1)
    assert audit.rows("gold_classes")["never seen"].of == 0


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        audit_run(tmp_path)


def test_a_damaged_ledger_is_named(tmp_path: Path, export: Export) -> None:
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(ids=(0,))]})
    (run / "attempts.jsonl").write_bytes(b"nonsense\n")
    with pytest.raises(UserError, match=r"attempts\.jsonl:1"):
        audit_run(run)


def test_processes_change_nothing(tmp_path: Path, export: Export) -> None:
    attempts = {
        f"q{number}": [Attempt([Step("rg a", str(number)), Step(PYTHON, "2")], (number,)) for _ in range(12)]
        for number in range(1, 5)
    }
    run = make_audited_run(tmp_path / "run", export, attempts)
    before = tree_digest(run)
    told: list[tuple[int, int]] = []
    one, two = audit_run(run, processes=1), audit_run(run, processes=2, progress=lambda *done: told.append(done))
    assert one.as_dict() == two.as_dict()
    assert told[-1] == (48, 48)
    assert tree_digest(run) == before


def test_the_form_of_json(tmp_path: Path, export: Export) -> None:
    attempts = {"q1": [Attempt([Step("rg a", "0 and 2")], (30, 0))]}
    content = audit_run(make_audited_run(tmp_path / "run", export, attempts)).as_dict()
    assert json.loads(json.dumps(content)) == content
    assert list(content["sections"]) == ["did", "answers", "trust", "cost"]
    checks = {check["name"]: check for section in content["sections"].values() for check in section["checks"]}
    (ranking,) = [row for row in checks["error_classes"]["rows"] if row["label"] == "ranking"]
    assert (ranking["count"], ranking["of"], ranking["rate"]) == (1, 1, 1.0)
    assert ranking["examples"] == [{"file": "trajectories/q1/0-0.jsonl", "line": 3, "what": "node 0, turn 1, byte 14"}]
    (line,) = content["list"]
    assert (line["query_id"], line["error_class"], line["first_gold_turn"]) == ("q1", "ranking", 1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_classes_are_exclusive_and_exhaustive(
    tmp_path_factory: pytest.TempPathFactory, export: Export, data: st.DataObject
) -> None:
    nodes = st.sampled_from([0, 2, 4, 6, 8, 30])
    hidden = st.lists(nodes, max_size=2).map(lambda ids: str(ids) if ids else "")
    step = st.builds(
        Step, st.sampled_from(["a", "b"]), st.lists(nodes).map(str), hidden=hidden, spill=st.just("outputs/001.txt"),
        clear=st.sampled_from([(), (1,), (1, 2)]),
    )  # fmt: skip
    attempt = st.builds(
        Attempt, st.lists(step, max_size=4), st.lists(nodes, unique=True, max_size=3).map(tuple),
        st.sampled_from(["answered", "no_answer", "sandbox_lost", "time_limit"]),
    )  # fmt: skip
    attempts = {f"q{number}": [data.draw(attempt)] for number in range(1, 6)}
    audit = audit_run(make_audited_run(tmp_path_factory.mktemp("runs") / "run", export, attempts))
    assert set(audit.rows("error_classes")) == set(ERROR_CLASSES)
    assert sum(tally.count for tally in audit.rows("error_classes").values()) == 5
    gold = audit.rows("gold_classes")
    assert set(gold) <= set(GOLD_CLASSES)
    assert len({tally.of for tally in gold.values()}) <= 1
    assert sum(tally.count for tally in gold.values()) == next((tally.of for tally in gold.values()), 0)
    returned = audit.rows("returned_ids").values()
    assert sum(tally.count for tally in returned) == next(iter(returned)).of


def test_the_demos_recordings(tmp_path: Path, biogo: Export) -> None:
    run = tmp_path / "run"
    questions = {question.id for question in load_questions(biogo, splits=("all",)).questions}
    make_audited_run(run, biogo, {}, probe=[])
    folder = resources.files("harness") / "demo"
    for source in sorted(folder.iterdir(), key=lambda item: item.name):
        query = source.name.removesuffix(".jsonl")
        assert query in questions
        target = run / trajectory_path(query, 0, 0)
        target.parent.mkdir(parents=True)
        target.write_bytes(source.read_bytes())
        events = list(read_events(target))
        (answer,) = [event for event in events if event["type"] == "answer"]
        usage = {"input": None, "cached": None, "output": None, "reasoning": None}
        record = AttemptRecord(
            query, 0, 0, "answered", tuple(answer["ids"]), turns=max(event.get("turn", 0) for event in events),
            usage=usage, trajectory=str(trajectory_path(query, 0, 0)),
        )  # fmt: skip
        with (run / "attempts.jsonl").open("ab") as ledger:
            ledger.write(record.as_line())
    audit = audit_run(run)
    total = audit.rows("error_classes")["hit"].of
    assert count(audit, "error_classes", "hit") == (total, total)
    assert count(audit, "hardest_operation", "multi_hop") == (total, total)
    assert count(audit, "returned_ids", "in nothing that the agent saw")[0] == 0
    assert audit.rows("revisions")["after a failure"].count >= 3
    assert audit.alarms() == []
