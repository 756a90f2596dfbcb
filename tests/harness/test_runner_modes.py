"""What a mode shows its agent in a real run, and several modes side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from exporter import Export
from harness.budget import Budget
from harness.events import read_events
from harness.messages import Reply, Request
from harness.modes import load_mode
from harness.replay_run import plan_replay, replay_run
from harness.runner import execute_all
from harness.schemas import check_run
from tests.support.running import Make, Notes, run
from tests.support.words import Words, bash, calls, says


def test_closed_book_modes_ask_once_and_open_no_sandbox(make: Make, biogo: Export) -> None:
    names = says('From memory.\nANSWER: ["ABL1", "no such gene", "asic2"]')
    config = make([names], 1, mode=load_mode("closed-book-names"), sandboxes=None)
    outcome, notes = run(config)
    assert outcome.scored == 1
    (record,) = notes.records
    assert [biogo.node(node)["name"] for node in record.ids] == ["ABL1", "ASIC2"]
    assert record.answer["repairs"] == ("normalised_name",)
    assert record.turns == 1
    assert config.backbone.requests[0].tools == ()  # type: ignore[attr-defined]
    assert list(check_run(config.out)) == []


def test_a_closed_book_model_gets_no_second_chance(make: Make) -> None:
    config = make([says("I don't know"), says("ANSWER: [1]")], 1, mode=load_mode("closed-book-ids"), sandboxes=None)
    _, notes = run(config)
    assert [record.stop_reason for record in notes.records] == ["turn_limit"]
    assert len(config.backbone.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mode", "shown", "absent"),
    [
        ("files", ["edges", "nodes", "Python's json/csv modules"], []),
        ("files-rg", ["edges", "nodes"], ["ython"]),
        ("no-edges", ["nodes", "Python's json/csv modules"], ["edges", "relation"]),
    ],
)
def test_an_agent_sees_what_its_mode_shows(make: Make, mode: str, shown: list[str], absent: list[str]) -> None:
    look = "ls /graph; cat /graph/DATA_FORMAT.txt /graph/schema.json; touch /graph/x"
    config = make([calls(bash(look)), says("ANSWER: [1]")], 1, mode=load_mode(mode))
    run(config)
    (path,) = config.out.glob("trajectories/*/*.jsonl")
    (result,) = [event for event in read_events(path) if event["type"] == "result"]
    assert all(word in result["text"] for word in shown)
    assert not any(word in result["text"] for word in absent)
    assert "Read-only file system" in result["text"]


def test_several_runs_are_asked_question_by_question(make: Make, tmp_path: Path) -> None:
    """Side by side, so that what there is after a stop can be compared."""
    asked: list[tuple[str, str]] = []

    def note(name: str) -> Words:
        def turn(request: Request) -> Reply:
            asked.append((request.key.query_id, name))
            return says("ANSWER: [1]")

        return Words([turn])

    configs = [make(note(name), 3, out=tmp_path / name) for name in ("a", "b")]
    listeners = [Notes(), Notes()]
    outcomes = execute_all(list(zip(configs, listeners, strict=True)))
    assert [outcome.scored for outcome in outcomes] == [3, 3]
    assert asked == [(question.id, name) for question in configs[0].questions.questions for name in ("a", "b")]
    assert all(len(listener.records) == 3 and listener.over for listener in listeners)
    assert all(list(check_run(config.out)) == [] for config in configs)


def test_several_runs_share_one_budget_and_stop_at_the_same_question(make: Make, tmp_path: Path) -> None:
    configs = [
        make([says("ANSWER: [1]")], 5, out=tmp_path / name, budget=Budget(tokens=500), cost_of=lambda _: None)
        for name in ("a", "b")
    ]  # 110 tokens each
    listeners = [Notes(), Notes()]
    outcomes = execute_all(list(zip(configs, listeners, strict=True)))
    assert [outcome.scored for outcome in outcomes] == [3, 2]
    assert [outcome.limit for outcome in outcomes] == ["run.tokens is reached, 550 of 500"] * 2
    assert sum("reached" in text for listener in listeners for text in listener.texts) == 1
    again = execute_all([(replace(config, resume=True), Notes()) for config in configs])
    assert [outcome.open for outcome in again] == [2, 3], "what both had taken counts"


def test_programs_call_the_graph_tools_and_each_call_is_an_event(make: Make) -> None:
    program = """cat > find.py <<'END'
import sys; sys.path.insert(0, "/attempt")
import kbtools
kb = kbtools.Client("/attempt/kb.sock")
print(kb.search("mismatch repair", k=2))
print(kb.neighbors(851, relation="involved_in", k=3))
try:
    kb.get_node(99999)
except ValueError as error:
    print("refused:", error)
END
python3 find.py; ls /graph /attempt; touch /attempt/x"""
    config = make([calls(bash(program)), says("ANSWER: [1]")], 1, mode=load_mode("tools-code"))
    outcome, _ = run(config)
    assert outcome.scored == 1
    (path,) = config.out.glob("trajectories/*/*.jsonl")
    events = list(read_events(path))
    (result,) = [event for event in events if event["type"] == "result"]
    assert "[851] mismatch repair" in result["text"]
    assert "refused: [error: there is no node 99999" in result["text"]
    assert "nodes" not in result["text"].split("refused")[1], "no graph files"
    assert "Read-only file system" in result["text"]
    client = [event for event in events if event["type"] == "client_call"]
    assert [event["name"] for event in client] == ["search", "neighbors", "get_node"]
    assert {event["program"] for event in client} == {"find.py"}
    assert [event["error"] for event in client] == [False, False, True]
    assert {event["turn"] for event in client} == {1}
    assert list(check_run(config.out)) == []
    assert config.sandboxes is not None
    replay = replay_run(plan_replay(config.out, config.sandboxes.kind), config.sandboxes)
    assert (replay.commands, replay.matched) == (1, 1), "a replay serves the graph too"


def test_in_shell_mode_there_is_a_shell_and_no_interpreter(make: Make) -> None:
    look = """tail -n 1 /graph/DATA_FORMAT.txt
    for program in python3 python perl awk gawk mawk node ruby lua tclsh php gdb vim sqlite3 busybox jq; do
        type $program
    done 2>/dev/null
    rg -c mismatch /graph/nodes/0000.jsonl; cut -f2 /graph/edges/07.tsv | sort | uniq -c | sort -rn | sed -n 1p"""
    config = make([calls(bash(look)), says("ANSWER: [1]")], 1, mode=load_mode("shell"))
    run(config)
    (path,) = config.out.glob("trajectories/*/*.jsonl")
    (result,) = [event for event in read_events(path) if event["type"] == "result"]
    status, last, *rest = result["text"].splitlines()
    assert status == "[exit code 0]"
    assert last == "Use shell tools and rg to search and read them."
    assert len(rest) == 2, "what rg and the pipe print, and no program that was found"
