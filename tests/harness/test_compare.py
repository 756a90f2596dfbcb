"""Comparisons of saved runs: worked by hand, and against a second implementation that goes question by question."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from exporter import Export
from harness.compare import Figures, Pair, compare
from harness.errors import UserError
from harness.intervals import SEED
from harness.ledger import StopReason
from harness.systems import load_systems
from harness.where import Where
from tests.support.saved import Ask, Try, make_export, make_run, tree_digest

HAND = [Ask(f"q{number}", (number, number + 30), "test" if number % 2 else "val") for number in range(1, 13)]


def hand_runs(folder: Path) -> list[Path]:
    """Twelve questions: 4 right in both, 1 only in the first, 6 only in the second, 1 in neither."""
    export = make_export(folder / "graph", "g", HAND)
    right = {ask.id: Try((ask.gold[0],), cost=0.01, turns=2) for ask in HAND}
    wrong = {ask.id: Try((), "no_answer", cost=0.03, turns=8) for ask in HAND}
    second = {ask.id: Try((ask.gold[0],), cost=0.02, turns=4) for ask in HAND}
    names = [ask.id for ask in HAND]
    one = {name: right[name] if name in names[:5] else wrong[name] for name in names}
    two = {name: second[name] if name in names[:4] + names[5:11] else wrong[name] for name in names}
    return [
        make_run(folder / "one", export, one),
        make_run(folder / "two", export, two, mode="tools"),
    ]


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Pair]:
    runs = hand_runs(tmp_path_factory.mktemp("hand"))
    return runs, compare(load_systems(runs))[0]


def at(pair: Pair, *where: Any) -> Figures:
    found = pair.at(*where)
    assert found is not None
    return found


def test_the_table_worked_by_hand(hand: tuple[list[Path], Pair]) -> None:
    figures = at(hand[1], "miss")
    hit = figures.metrics["hit@1"]
    assert figures.n == 12
    assert (figures.hits.only_first, figures.hits.only_second) == (1, 6)
    assert figures.hits.p == pytest.approx(2 * (1 + 7) / 2**7)  # .125
    assert figures.hits.adjusted == figures.hits.p  # one pair, one test at this level
    assert (hit.first, hit.second) == (pytest.approx(5 / 12), pytest.approx(10 / 12))
    assert hit.difference == pytest.approx(5 / 12)
    assert figures.metrics["recall@20"].difference == pytest.approx(5 / 24)  # one of two gold nodes each
    assert (figures.wins, figures.losses) == (6, 1)
    cost = figures.resources["cost"]
    assert cost.first == pytest.approx((5 * 0.01 + 7 * 0.03) / 12)
    assert cost.difference == pytest.approx((10 * 0.02 + 2 * 0.03) / 12 - (5 * 0.01 + 7 * 0.03) / 12)


def test_per_split_and_their_own_family(hand: tuple[list[Path], Pair]) -> None:
    splits = {figures.name: figures for figures in hand[1].figures if figures.level == "split"}
    assert set(splits) == {"test", "val"}
    # test: q1 q3 q5 q7 q9 q11; q5 only in the first, q7 q9 q11 only in the second. val: q6 q8 q10 only in the second.
    assert (splits["test"].hits.only_first, splits["test"].hits.only_second) == (1, 3)
    assert (splits["val"].hits.only_first, splits["val"].hits.only_second) == (0, 3)
    assert (splits["test"].hits.p, splits["val"].hits.p) == (pytest.approx(0.625), pytest.approx(0.25))
    assert splits["val"].hits.adjusted == pytest.approx(0.5)  # the smaller of two, times two
    assert splits["test"].hits.adjusted == pytest.approx(0.625)
    assert hand[1].at("miss", "graph", "g") is None  # one graph: no breakdown


def test_the_clearest_wins_come_first_and_then_the_losses(hand: tuple[list[Path], Pair]) -> None:
    assert [both.key.id for both in hand[1].decided()] == ["q6", "q7", "q8", "q9", "q10", "q11", "q5"]


def test_nothing_is_written_and_the_same_comes_out_again(hand: tuple[list[Path], Pair]) -> None:
    before = [tree_digest(run) for run in hand[0]]
    again = compare(load_systems(hand[0]))[0]
    assert again.as_dict(questions=True) == hand[1].as_dict(questions=True)
    assert [tree_digest(run) for run in hand[0]] == before


def test_swapping_the_runs_turns_the_signs(hand: tuple[list[Path], Pair]) -> None:
    other = at(compare(load_systems(hand[0][::-1]))[0], "miss")
    here = at(hand[1], "miss")
    for name, difference in here.metrics.items():
        assert other.metrics[name].difference == pytest.approx(-(difference.difference or 0))
    assert (other.hits.only_first, other.hits.only_second, other.hits.p) == (6, 1, here.hits.p)
    assert (other.wins, other.losses) == (1, 6)


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        ("run1.turns > 5", 7),
        ("turns > 5", 1),  # q12 alone is long in both
        ("run1.hit@1 < run2.hit@1", 6),
        ('split == "val"', 6),
        ('other("{first}").hit@1 == 0', 7),
    ],
)
def test_where_keeps_what_it_says(hand: tuple[list[Path], Pair], condition: str, n: int) -> None:
    where = Where(condition.format(first=hand[0][0]))
    others = [load_systems([Path(folder)])[0] for folder in where.folders]
    pair = compare(load_systems(hand[0]), where, others)[0]
    assert (at(pair, "miss").n, pair.left_out.condition) == (n, 12 - n)


def test_what_cannot_be_compared(hand: tuple[list[Path], Pair], tmp_path: Path) -> None:
    systems = load_systems(hand[0])
    with pytest.raises(UserError, match="no question is kept"):
        compare(systems, Where("turns > 1000"))
    with pytest.raises(UserError, match="there is one system, files over g"):
        compare(systems[:1])
    other = make_run(tmp_path / "run", make_export(tmp_path / "h", "h", [Ask("q1", (1,))]), {"q1": Try((1,))})
    with pytest.raises(UserError, match="share no question") as caught:
        compare([*systems[:1], *load_systems([other])])
    assert caught.value.hint == "left out: 12 asked in the first alone, 1 asked in the second alone"


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    one = make_export(
        tmp_path / "one", "g", [Ask("a", (1,)), Ask("b", (2,)), Ask("c", (3,)), Ask("d", ()), Ask("x", (4,))]
    )
    two = make_export(
        tmp_path / "two", "g", [Ask("a", (1,)), Ask("b", (2,), query="something else?"), Ask("c", (3,)), Ask("d", ())]
    )
    answers = {"a": Try((1,)), "b": Try((2,)), "d": Try((1,))}
    first = make_run(tmp_path / "r1", one, {**answers, "x": Try((4,))})
    second = make_run(tmp_path / "r2", two, answers)
    pair = compare(load_systems([first, second]))[0]
    assert pair.left_out.texts() == [
        "1 asked in the first alone",
        "1 not finished in both",
        "1 with another text or gold",
        "1 without gold",
    ]
    assert [both.key.id for both in pair.questions] == ["a"]


STOPS: list[StopReason] = ["answered", "answered", "answered", "turn_limit", "backbone_error", "no_answer"]


def random_runs(folder: Path, seed: int) -> tuple[list[Path], Mapping[str, Sequence[Ask]]]:
    """Three systems over two graphs, with failures, retries, unknown costs, splits and questions left open."""
    draw = random.Random(seed)
    asks = {
        graph: [Ask(f"{graph}{i}", tuple(draw.sample(range(50), 3)), draw.choice(["test", "val"])) for i in range(size)]
        for graph, size in (("g", 60), ("h", 25))
    }
    exports: dict[str, Export] = {
        graph: make_export(folder / graph, graph, questions) for graph, questions in asks.items()
    }
    runs = []
    for mode in ("files", "tools", "shell"):
        for graph, questions in asks.items():
            attempts = {}
            for ask in questions:
                ids = tuple(draw.sample([*ask.gold, *range(40, 60)], 8))
                ids = tuple(dict.fromkeys(ids))
                one = Try(
                    ids, draw.choice(STOPS), cost=draw.choice([None, 0.1, 0.2]), turns=draw.randint(1, 30),
                    seconds=draw.uniform(1, 99),
                )  # fmt: skip
                if draw.random() > 0.05:
                    attempts[ask.id] = [Try((), "sandbox_lost"), one] if draw.random() < 0.2 else [one]
            runs.append(make_run(folder / f"{graph}-{mode}", exports[graph], attempts, mode=mode))
    return runs, asks


def slow_scores(run: Path, asks: Sequence[Ask]) -> dict[str, dict[str, Any]]:
    """Each question's figures straight from the ledger's lines."""
    import json

    lines = [json.loads(line) for line in (run / "attempts.jsonl").read_text().splitlines()]
    found: dict[str, dict[str, Any]] = {}
    for ask in asks:
        own = [line for line in lines if line["query_id"] == ask.id]
        if not own:
            continue
        failed = own[-1]["stop_reason"] == "backbone_error"
        ranked = [] if failed else [node for node in own[-1]["ids"] if node < 50]
        places = [ranked.index(node) + 1 for node in ask.gold if node in ranked]
        costs = [line["cost"] for line in own]
        found[ask.id] = {
            "failed": failed,
            "split": ask.split,
            "hit@1": float(1 in places),
            "hit@5": float(any(place <= 5 for place in places)),
            "recall@20": len(places) / 3,
            "mrr": 1 / min(places) if places else 0.0,
            "cost": None if None in costs else sum(costs),
            "turns": sum(line["turns"] for line in own),
            "seconds": sum(line["times"]["working"] for line in own),
        }
    return found


def test_an_independent_implementation_agrees(tmp_path: Path) -> None:
    runs, asks = random_runs(tmp_path, seed=5)
    pairs = compare(load_systems([tmp_path]))
    assert [(pair.first.label, pair.second.label) for pair in pairs] == [("files", "tools"), ("files", "shell")]
    slow = {run.name: slow_scores(run, asks[run.name[0]]) for run in runs}
    families: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for pair in pairs:
        mode = pair.second.label
        rows = [
            (graph, one, slow[f"{graph}-{mode}"][key])
            for graph in ("g", "h")
            for key, one in slow[f"{graph}-files"].items()
            if key in slow[f"{graph}-{mode}"]
        ]
        assert len(pair.questions) == len(rows)
        for figures in pair.figures:
            chosen = [
                (one, two)
                for graph, one, two in rows
                if (figures.level != "graph" or graph == figures.name)
                and (figures.level != "split" or one["split"] == figures.name)
                and (figures.failures == "miss" or not (one["failed"] or two["failed"]))
            ]
            assert figures.n == len(chosen)
            for name, difference in {**figures.metrics, **figures.resources}.items():
                if name == "tokens":
                    continue
                known = [(one[name], two[name]) for one, two in chosen if None not in (one[name], two[name])]
                assert difference.n == len(known)
                assert difference.first == pytest.approx(statistics.fmean(one for one, _ in known))
                assert difference.second == pytest.approx(statistics.fmean(two for _, two in known))
                deltas = [two - one for one, two in known]
                assert difference.difference == pytest.approx(statistics.fmean(deltas))
                if name == "mrr":
                    theirs = stats.bootstrap(
                        (deltas,), statistics.fmean, n_resamples=10_000, method="percentile", vectorized=False, rng=SEED
                    ).confidence_interval  # fmt: skip
                    assert difference.interval == pytest.approx((theirs.low, theirs.high), abs=1e-9)
            only = [sum(one["hit@1"] > two["hit@1"] for one, two in chosen)]
            only += [sum(one["hit@1"] < two["hit@1"] for one, two in chosen)]
            assert [figures.hits.only_first, figures.hits.only_second] == only
            p = stats.binomtest(min(only), sum(only)).pvalue
            families.setdefault((figures.level, figures.failures), []).append((p, figures.hits.adjusted))
    assert {key: len(members) for key, members in families.items()} == {
        (level, failures): size
        for level, size in (("overall", 2), ("graph", 4), ("split", 4))
        for failures in ("miss", "left_out")
    }
    for members in families.values():
        for p, adjusted in members:  # Holm from its definition
            smaller = [other for other, _ in members if other <= p]
            steps = [min(1, other * sum(q >= other for q, _ in members)) for other in smaller]
            assert adjusted == pytest.approx(max(steps))


def test_micro_averages_weigh_questions_not_graphs(tmp_path: Path) -> None:
    small = make_export(tmp_path / "s", "s", [Ask("q", (1,))])
    large = make_export(tmp_path / "l", "l", [Ask(f"q{i}", (1,)) for i in range(9)])
    for mode, hits in (("files", 3), ("tools", 6)):
        make_run(tmp_path / f"s-{mode}", small, {"q": Try((1,) if mode == "tools" else ())}, mode=mode)
        answers = {f"q{i}": Try((1,) if i < hits else ()) for i in range(9)}
        make_run(tmp_path / f"l-{mode}", large, answers, mode=mode)
    pair = compare(load_systems([tmp_path / f"{g}-{m}" for m in ("files", "tools") for g in ("s", "l")]))[0]
    assert at(pair, "miss").metrics["hit@1"].second == pytest.approx(7 / 10)
    assert at(pair, "miss", "graph", "l").metrics["hit@1"].second == pytest.approx(6 / 9)


def test_with_several_agents_the_interval_is_over_questions(tmp_path: Path) -> None:
    export = make_export(tmp_path / "g", "g", [Ask(f"q{i}", (1,)) for i in range(8)])
    agents = {"agents": {"count": 3, "fuse": "vote", "seed": 0}}
    answers = {f"q{i}": [Try((1,) if i % 2 else (2,), agent=agent) for agent in range(3)] for i in range(8)}
    make_run(tmp_path / "one", export, answers, set_mode=agents)
    make_run(tmp_path / "two", export, {f"q{i}": Try((1,)) for i in range(8)}, mode="tools")
    figures = at(compare(load_systems([tmp_path / "one", tmp_path / "two"]))[0], "miss")
    assert figures.n == 8
    assert (figures.hits.only_first, figures.hits.only_second) == (0, 4)
    assert figures.resources["turns"].first == 9  # three agents of three turns each
