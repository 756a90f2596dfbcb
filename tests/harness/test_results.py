"""What each question of a saved run came to, read from real run folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from harness.errors import UserError
from harness.metrics import ZERO
from harness.prices import PriceList, Prices
from harness.results import read_results
from tests.support.saved import Ask, Try, make_export, make_run

QUESTIONS = [
    Ask("hit", (1, 2)),
    Ask("second", (3,), "train"),
    Ask("crashed", (4,)),
    Ask("retried", (5,)),
    Ask("unasked", (6,)),
    Ask("unlabelled", ()),
]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("g"), "g", QUESTIONS)


def test_one_agent(tmp_path: Path, export: Export) -> None:
    run = make_run(
        tmp_path / "run",
        export,
        {
            "hit": Try((1, 9), calls=("bash", "read", "bash")),
            "second": Try((8, 3), turns=5, cost=None, extra={"limit": "turn_limit", "counts": {"calls": 7, "odd": 2}}),
            "crashed": Try((4,), "backbone_error", tokens=None),
            "retried": [Try((), "sandbox_lost", cost=0.5), Try((5,), cost=0.25, seconds=30)],
            "unlabelled": Try((1,)),
        },
    )
    results = read_results(run)
    states = {key: result.state for key, result in results.questions.items()}
    assert states == {
        "hit": "scored", "second": "scored", "crashed": "failed", "retried": "scored", "unasked": "open",
        "unlabelled": "without_gold",
    }  # fmt: skip
    hit, second, retried = (results.questions[key] for key in ("hit", "second", "retried"))
    assert hit.scores == (1, 1, 0.5, 1)
    assert (hit.rank, second.rank, results.questions["crashed"].rank) == (1, 2, None)
    assert results.questions["crashed"].scores == ZERO
    assert (retried.scores.hit1, retried.first) == (1, ZERO)
    assert (retried.cost, retried.attempts, retried.seconds, retried.tokens) == (0.75, 2, 40, 2200)
    assert second.cost is None
    assert results.questions["crashed"].tokens is None
    assert results.field("calls.bash", "hit") == 2
    assert results.field("calls.read", "second") == 0
    assert results.field("calls", "second") == 7
    assert results.field("counts.odd", "second") == 2
    assert results.field("limit", "second") == "turn_limit"
    assert results.field("times.wall", "hit") == 12
    assert results.field("graph", "hit") == "g"
    assert set(results.field_names()) >= {"hit@1", "turns", "counts.odd", "calls.bash", "usage.input", "split"}
    for name in results.field_names():
        results.field(name, "unasked")


def test_calls_that_programs_make_are_calls_of_their_tools(tmp_path: Path, export: Export) -> None:
    attempts = {"hit": Try((1,), calls=("bash",), client=("neighbors",) * 12), "second": Try((3,), calls=("bash",))}
    run = make_run(tmp_path / "run", export, attempts, set_mode={"view": {"client": True}})
    results = read_results(run)
    assert set(results.field_names()) >= {"calls.bash", "calls.search", "calls.neighbors"}
    assert [results.field("calls.neighbors", key) for key in ("hit", "second")] == [12, 0]
    assert results.field("calls", "hit") == 1


def test_several_agents_are_one_question(tmp_path: Path, export: Export) -> None:
    run = make_run(
        tmp_path / "run",
        export,
        {
            "hit": [Try((9, 1), agent=0), Try((1,), agent=1), Try((8, 1), "turn_limit", agent=2)],
            "second": [Try((3,), agent=0), Try((), "backbone_error", agent=1), Try((7, 3), agent=2)],
            "crashed": [Try((4,), agent=0), Try((4,), agent=1)],
        },
        set_mode={"agents": {"count": 3, "fuse": "vote", "seed": 0}, "answer": {"source": "message", "max_ids": 2}},
    )
    results = read_results(run).questions
    assert results["hit"].ids == (1, 9)
    assert results["hit"].scores.hit1 == 1
    assert [agent.hit1 for agent in results["hit"].agents] == [0, 1, 0]
    assert (results["hit"].turns, results["hit"].cost, results["hit"].stop_reason) == (9, pytest.approx(0.03), "mixed")
    assert results["second"].ids == (3, 7)
    assert results["second"].failed_agents == 1
    assert results["crashed"].state == "open"  # the third agent has not been asked


def test_a_price_list_costs_a_run_anew(tmp_path: Path, export: Export) -> None:
    run = make_run(
        tmp_path / "run", export, {"hit": Try((1,), tokens=(1_000_000, 500_000)), "second": Try(tokens=None)}
    )
    results = read_results(run, PriceList({"m": Prices(input=1.0, output=4.0)}, "a list")).questions
    assert results["hit"].cost == pytest.approx(3.0)
    assert results["second"].cost is None


def test_a_broken_ledger_or_trajectory_is_named(tmp_path: Path, export: Export) -> None:
    run = make_run(tmp_path / "run", export, {"hit": Try((1,), calls=("bash",))})
    trajectory = next(run.glob("trajectories/hit/*.jsonl"))
    trajectory.unlink()
    with pytest.raises(UserError, match="can't be read"):
        read_results(run).field("calls.bash", "hit")
    (run / "attempts.jsonl").write_bytes(b"{nonsense\n")
    with pytest.raises(UserError, match=r"attempts\.jsonl:1"):
        read_results(run)
