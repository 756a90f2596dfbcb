"""What a run would take: from earlier attempts of its kind, else from an assumption that is stated."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from exporter import Export
from harness.estimate import estimate
from harness.messages import Usage
from harness.modes import load_mode
from harness.prices import Prices, cost
from harness.settings import parse_assignments
from tests.support.runs import attempt, make_export, make_run

FILES = load_mode("files").as_dict()
PRICES = Prices(input=1.0, cached=0.1, output=10.0)


def price(usage: Usage) -> float | None:
    return cost(usage, PRICES)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def test_an_assumption_scales_with_the_attempts_and_is_stated(tmp_path: Path) -> None:
    one, ten = (estimate(n, tmp_path, "small", FILES, "tester", price) for n in (1, 10))
    assert "assumed" in one.basis
    assert one.cost is not None
    assert ten.cost is not None
    for low_high in ("requests", "input", "output", "cost"):
        assert tuple(end * 10 for end in getattr(one, low_high)) == pytest.approx(getattr(ten, low_high))
        assert getattr(one, low_high)[0] < getattr(one, low_high)[1]
    assert one.cost[0] > 0


def test_unknown_prices_make_an_unknown_cost(tmp_path: Path) -> None:
    assert estimate(1, tmp_path, "small", FILES, "tester", lambda _: None).cost is None


def test_earlier_attempts_of_the_same_kind_are_the_basis(tmp_path: Path, export: Export) -> None:
    turns = [2, 4, 6, 8, 10]
    records = [attempt("q1", attempt=i, turns=count) for i, count in enumerate(turns)]
    make_run(tmp_path / "runs" / "earlier", export, [*records, attempt("q2", "backbone_error", turns=99)])
    found = estimate(100, tmp_path / "runs", "small", FILES, "tester", price)
    assert "5 earlier attempts" in found.basis
    low, high = found.requests
    assert low < 100 * statistics.fmean(turns) < high
    assert found.input == (100_000, 100_000)
    each = (600 * 1.0 + 400 * 0.1 + 100 * 10.0) / 1e6
    assert found.cost == pytest.approx((100 * each, 100 * each))


@pytest.mark.parametrize(
    "kind",
    [
        ("other", "files", (), "tester"),
        ("small", "tools", (), "tester"),
        ("small", "files", (), "x"),
        ("small", "files", ("limits.turns=20",), "tester"),
    ],
)
def test_runs_of_another_kind_are_none(
    tmp_path: Path, export: Export, kind: tuple[str, str, tuple[str, ...], str]
) -> None:
    make_run(tmp_path / "runs" / "earlier", export, [attempt("q1", attempt=i) for i in range(9)])
    graph, mode, settings, model = kind
    table = load_mode(mode, parse_assignments(settings)).as_dict()
    assert "assumed" in estimate(1, tmp_path / "runs", graph, table, model, price).basis
    recorded = estimate(1, tmp_path / "runs", graph, table, model, price, asks=False)
    assert (recorded.input, recorded.cost) == ((0, 0), (0.0, 0.0))
    assert "no model is asked" in recorded.basis


def test_a_damaged_run_nearby_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    assert "assumed" in estimate(1, tmp_path, "small", FILES, "tester", price).basis
