"""What one pass over a trajectory finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from exporter import Export
from harness.audit.checks.answers import error_class, gold_classes, returned_ids
from harness.audit.checks.behaviour import failed_program_calls, graph_tools, program_calls_per_attempt
from harness.audit.facts import AttemptFacts
from harness.audit.numbers import find_ids
from harness.audit.sightings import Sightings
from harness.audit.walk import Context, Job, walk
from harness.ledger import read_ledger
from harness.messages import Usage
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.runs import make_export

GOLD = (4, 2, 6)  # not in the order of a sorted list
Walk = Callable[..., AttemptFacts]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def walked(tmp_path: Path, export: Export) -> Walk:
    """Write an attempt at q1, and walk over it."""

    def do(
        steps: Sequence[Step], ids: tuple[int, ...] = (4,), gold: tuple[int, ...] | None = GOLD, ours: bool = True,
        **more: object,
    ) -> AttemptFacts:  # fmt: skip
        attempt = Attempt(steps, ids, **more)  # type: ignore[arg-type]
        run = make_audited_run(tmp_path / "run", export, {"q1": [attempt]})
        (record,) = read_ledger(run)
        canary = str(export.manifest["canary"]).encode()
        context = Context(run, export.node_count, canary, export.is_candidate, prompt_is_ours=ours)
        return walk(Job(record.trajectory, record, True, gold), context)

    return do


def states(facts: AttemptFacts) -> dict[int, str]:
    return {sighting.node: sighting.state for sighting in (*facts.answer, *facts.gold_sightings)}


def test_where_ids_were_shown(walked: Walk) -> None:
    steps = [
        Step("rg x /graph", "12\t4\n30\t8"),
        Step("rg y /graph", "ids 30", hidden=" and 2", spill="outputs/001.txt"),
        Step("rg z /graph", "4 again", clear=(2,)),
    ]
    facts = walked(steps, ids=(8, 30, 2, 10))
    assert states(facts) == {8: "shown", 30: "shown", 2: "cut", 10: "never", 4: "shown", 6: "never"}
    assert (facts.answer[2].turn, facts.answer[2].line, facts.answer[2].seen) == (2, 5, False)
    first = facts.answer[0]
    text = "[exit code 0]\n12\t4\n30\t8"
    assert (first.turn, first.line, first.offset) == (1, 3, text.index("8"))


def test_what_was_cleared_by_the_time_of_the_answer(walked: Walk) -> None:
    steps = [Step("a", "4 and 8"), Step("b", "8"), Step("c", "", clear=(1,))]
    assert states(walked(steps, ids=(8,))) == {8: "shown", 4: "cleared", 2: "never", 6: "never"}


def test_the_harnesss_own_words_show_no_ids(walked: Walk) -> None:
    steps = [Step("a", "nothing", exit_code=4, hidden="x" * 8, spill="outputs/006.txt")]
    assert states(walked(steps, ids=(8,))) == {8: "never", 4: "never", 2: "never", 6: "never"}


def test_the_question_shows_ids_and_the_rest_of_our_prompt_does_not(walked: Walk) -> None:
    facts = walked([], ids=(8, 2), prompt="At most 2 ids. {query}", query="Who knows node 8?")
    eight, two = facts.answer
    assert (eight.state, eight.turn, eight.line, eight.offset) == ("shown", 0, 1, len("At most 2 ids. Who knows node "))
    assert two.state == "never"


def test_a_foreign_prompt_shows_ids(walked: Walk) -> None:
    facts = walked([], ids=(8,), prompt="Candidates: 8 and 9. {query}", ours=False)
    assert (facts.answer[0].state, facts.answer[0].line) == ("shown", 1)


def test_where_results_of_other_tools_show_ids(walked: Walk) -> None:
    listed = "Search around [30] x found 2 results:\n\n0. -next-> [4] a (t)\n\n2. [8] b - Score: 6.000"
    steps = [
        Step(tool="neighbors", arguments={"node_id": 30}, output=listed, bare=True),
        Step(tool="get_node", arguments={"node_id": 10}, output='{"node_id":10,"attributes":{"n":2}}', bare=True),
        Step(tool="get_schema", output="2 nodes", bare=True),
        Step(tool="add_to_answer", output="Added the following nodes to the answer:\n- [6] x", bare=True),
        Step(tool="read", arguments={"path": "x"}, output="[bytes 2-6 of 9]\n12\n[3 bytes more: read on with offset 6]",
             bare=True),
    ]  # fmt: skip
    facts = walked(steps, ids=(8, 10, 12))
    assert states(facts) == {8: "shown", 10: "shown", 12: "shown", 4: "shown", 2: "never", 6: "never"}


def test_ids_that_the_agent_named_first(walked: Walk) -> None:
    steps = [
        Step("rg '\"node_id\":8,' /graph", "8"),
        Step("x", "30", says="What about 30?"),
        Step("y", "4"),
        Step("z 4", ""),
    ]
    named = {sighting.node for sighting in walked(steps, ids=(8, 30, 4)).answer if sighting.named_before}
    assert named == {8, 30}


def test_results_of_a_turn_are_known_from_the_next_turn_on() -> None:
    sightings = Sightings(10, ())
    sightings.show(find_ids(b"4", 10), 1, 3, "c1")
    assert not sightings.was_shown(4)
    sightings.next_turn()
    assert sightings.was_shown(4)
    assert not sightings.was_shown(5)
    assert not sightings.was_shown(-6)


@pytest.mark.parametrize(
    ("steps", "ids", "stop", "expected"),
    [
        ([Step("a", "4")], (4,), "answered", "hit"),
        ([Step("a", "4")], (8, 4), "answered", "ranking"),
        ([], (8, 4), "answered", "ranking"),
        ([Step("a", "4")], (8,), "answered", "selection"),
        ([Step("a", "4"), Step("b", "", clear=(1,))], (8,), "answered", "cleared"),
        ([Step("a", "x", hidden=" 4 ", spill="outputs/001.txt")], (8,), "answered", "cut"),
        ([Step("a", "30")], (8,), "answered", "search"),
        ([Step("a", "4")], (), "no_answer", "no answer"),
        ([Step("a", "4")], (8, 4), "turn_limit", "ranking"),
        ([Step("a", "4")], (), "sandbox_lost", "failed"),
    ],
)
def test_error_classes(walked: Walk, steps: list[Step], ids: tuple[int, ...], stop: str, expected: str) -> None:
    assert error_class(walked(steps, ids=ids, stop=stop)) == expected


def test_what_cant_be_read_to_its_end_has_no_class_that_takes_reading_it(walked: Walk, tmp_path: Path) -> None:
    facts = walked([Step("a", "30")], ids=(8,))
    assert error_class(facts) == "search"
    path = tmp_path / "run" / facts.file
    path.write_bytes(path.read_bytes()[:-9])
    context = Context(tmp_path / "run", 40, None)
    for ids, expected in (((8,), "unreadable"), ((8, 4), "ranking"), ((4,), "hit")):
        assert facts.record is not None
        record = replace(facts.record, ids=ids)
        again = walk(Job(facts.file, record, True, GOLD), context)
        assert error_class(again) == expected
        assert list(gold_classes(again)) == list(returned_ids(again)) == []


@pytest.mark.parametrize("gold", [None, (), (1,)])
def test_without_a_gold_candidate_there_is_no_error_class(walked: Walk, gold: tuple[int, ...] | None) -> None:
    facts = walked([Step("a", "4")], gold=gold)
    assert (error_class(facts), facts.hit) == ("no gold", False)


def test_labels_in_outputs(walked: Walk, export: Export) -> None:
    canary = str(export.manifest["canary"])
    steps = [
        Step("cat x", f"found {canary}"),
        Step("cat y", "short", hidden=f"long {canary}", spill="outputs/001.txt"),
        Step("cat z", '{"id": "q1", "answer_ids": [4]}'),
        Step("python3 a.py", "[4, 2, 6]"),
        Step("python3 b.py", "[2, 4, 6]"),
    ]
    facts = walked(steps)
    assert (facts.canaries, facts.answer_keys, facts.gold_lists) == ([3, 5], [7], [9])


def test_a_sorted_gold_list_is_no_sign_of_labels(walked: Walk) -> None:
    assert walked([Step("python3 b.py", "[2, 4, 6]")], gold=(2, 4, 6)).gold_lists == []


def test_coming_back_to_what_was_cut_or_cleared(walked: Walk) -> None:
    steps = [
        Step("a", "x", hidden="y" * 90, spill="outputs/001.txt"),
        Step("b", "x", hidden="y" * 90, spill="outputs/002.txt"),
        Step("c", "x"),
        Step("d", "x"),
        Step("rg z outputs/001.txt", "z", clear=(3, 4)),
        Step("c", "x"),
    ]
    facts = walked(steps)
    assert facts.read_later == [(3, True), (5, False)]
    assert facts.read_again == [(7, True), (9, False)]


def test_repeats_and_loops(walked: Walk) -> None:
    steps = [Step("a", "1"), Step("b", "2")] * 3 + [Step("a", "1")] + [Step("c", str(n)) for n in range(40, 44)]
    facts = walked(steps)
    assert [call.repeated for call in facts.calls] == [False] * 2 + [True] * 5 + [False] + [True] * 3
    assert facts.loops == [13]  # the third time that a and b come one behind the other


def test_caches_that_were_lost(walked: Walk) -> None:
    figures = [(5000, 0), (6000, 5000), (7000, 0), (7000, 6900), (800, 700), (900, 0)]
    steps = [Step(f"s{n}", "", usage=Usage(given, cached, 9, None)) for n, (given, cached) in enumerate(figures)]
    facts = walked(steps)
    assert (facts.requests_with_cache, facts.cache_resets) == (4, [6, 10])


def test_kinds_of_calls_and_failures(walked: Walk) -> None:
    steps = [
        Step("cat /graph/DATA_FORMAT.txt"),
        Step("rg x /graph | head"),
        Step("rg x /graph | python3 -c 'print(1)'", "Traceback (most recent call last):\nKeyError: 1"),
        Step("ls", exit_code=2),
        Step("sleep 99", termination="timeout"),
        Step(tool="read", arguments={"path": "x"}, output="bad", error="file_error"),
        Step(tool="neighbors", arguments={"node_id": 4}, output="nothing"),
        Step(tool="search_in_graph", arguments={"query": "x"}, output="nothing"),
        Step(tool="python", arguments={"code": "for l in open('/graph/nodes/0000.jsonl'): print(l)"}, output=""),
    ]
    calls = walked(steps).calls
    assert [call.kind for call in calls] == [
        "read", "search", "python", "other", "other", "read", "graph_neighbours", "graph_search", "python",
    ]  # fmt: skip
    assert [call.failed for call in calls] == [False, False, True, True, True, True, False, False, False]
    assert [len(call.programs) for call in calls] == [0, 0, 1, 0, 0, 0, 0, 0, 1]


def test_what_was_tried_and_what_failed(walked: Walk) -> None:
    steps = [
        Step("curl x; rm /graph/a", "bash: line 1: curl: command not found\nrm: x: Read-only file system", exit_code=1),
        Step("python3 -c 'import socket'", "Permission denied"),
    ]
    first, second = walked(steps).calls
    assert first.suspicions == {"network", "graph_write"}
    assert first.sandbox_failures == {"no_program", "read_only"}
    assert (second.suspicions, second.sandbox_failures) == ({"network"}, frozenset())


def test_damaged_trajectories_are_told(walked: Walk, tmp_path: Path, export: Export) -> None:
    facts = walked([Step("a", "4"), Step("b", "30")])
    path = tmp_path / "run" / facts.file
    good = path.read_bytes().splitlines(keepends=True)
    context = Context(tmp_path / "run", export.node_count, None)

    def again(lines: list[bytes]) -> AttemptFacts:
        path.write_bytes(b"".join(lines))
        return walk(Job(facts.file, facts.record, True, GOLD), context)

    torn = again([*good[:-1], good[-1][:-5]])
    assert torn.faults == [(len(good), "torn by a crash")]
    assert torn.answer == facts.answer
    assert torn.unreadable
    broken = again([*good[:3], b"nonsense\n", *good[4:]])
    assert not broken.unreadable
    assert broken.is_partial
    assert not facts.is_partial
    assert [line for line, _ in broken.damaged] == [4]
    assert broken.faults == []
    assert len(broken.calls) == len(facts.calls)
    event = json.loads(good[2])
    del event["text"]
    odd = again([*good[:2], json.dumps(event).encode() + b"\n", *good[3:]])
    assert [line for line, _ in odd.damaged] == [3]
    assert [call.line for call in odd.calls] == [5]
    assert again([*good[:2], b"[]\n"]).damaged == [(3, "not a JSON object")]
    assert not facts.faults


def test_calls_of_the_graphs_tools_by_the_model_and_by_its_programs(walked: Walk) -> None:
    steps = [
        Step(tool="search", arguments={"query": "x"}, output="[4] four"),
        Step("python3 p.py", "8", made=(("neighbors", False), ("neighbors", True), ("no_such_tool", True))),
        Step(tool="get_node", arguments={"node_id": 99}, output="there is no node 99", error="not_found"),
    ]
    facts = walked(steps, ids=(8, 4))
    assert [(call.kind, call.program, call.failed) for call in facts.graph_calls] == [
        ("graph_search", False, False), ("graph_neighbours", True, False), ("graph_neighbours", True, True),
        ("graph_record", False, True),
    ]  # fmt: skip
    assert [call.line for call in facts.program_calls] == [5, 6]
    assert len(facts.calls) == 3
    rows = {row.label: (row.count, row.of) for row in graph_tools(facts)}
    assert rows == {"search": (1, 4), "neighbours": (2, 4), "record": (1, 4)}
    assert [(row.count, row.of) for row in failed_program_calls(facts)] == [(1, 2)]
    assert [value for value, _ in program_calls_per_attempt(facts)] == [2]
