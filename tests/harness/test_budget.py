"""What a run has taken, and when that is too much."""

from __future__ import annotations

import threading

import pytest

from harness.accounting import Account
from harness.budget import Budget, Spending
from harness.ledger import AttemptRecord
from harness.messages import Entry, Reply, Usage


def record(started: float, finished: float, cost: float | None = None, **usage: int | None) -> AttemptRecord:
    return AttemptRecord("q", 0, 0, "answered", usage=usage, cost=cost, started=started, finished=finished)


def flying(*usages: Usage) -> Account:
    account = Account(threading.Event(), lambda usage: None if usage.input is None else usage.input / 100)
    for usage in usages:
        account.add(Reply(Entry("assistant", ""), "stop", usage))
    return account


def reached(budget: Budget, *records: AttemptRecord, accounts: tuple[Account, ...] = ()) -> str | None:
    spending = Spending(budget)
    spending.resume(records, lambda usage: None if usage.input is None else usage.input / 100)
    return spending.reached(accounts)


def test_without_limits_nothing_is_too_much() -> None:
    assert reached(Budget(), record(0, 9e9, 1e9, input=10**12, output=1)) is None


def test_tokens_are_input_and_output_of_ended_attempts_and_those_under_way() -> None:
    ended, under_way = record(0, 1, input=600, output=100), flying(Usage(200, None, 50), Usage(None))
    assert reached(Budget(tokens=951), ended, accounts=(under_way,)) is None
    said = reached(Budget(tokens=950), ended, accounts=(under_way,))
    assert said == "run.tokens is reached, 950 of 950"


def test_costs_that_are_known_count_though_another_is_not() -> None:
    crashed = record(0, 1, None, input=100, output=1)  # ledgered at a resume, which knows no prices
    unknown = record(0, 1, None)
    under_way = flying(Usage(50, None, 1), Usage(None))
    assert under_way.cost is None
    assert reached(Budget(cost=2.5), record(0, 1, 1.0), crashed, unknown, accounts=(under_way,)) is not None
    assert reached(Budget(cost=2.51), record(0, 1, 1.0), crashed, unknown, accounts=(under_way,)) is None


def test_time_is_counted_once_however_many_attempts_ran() -> None:
    earlier = [record(100, 160), record(110, 150), record(150, 200), record(1_000, 1_100)]
    assert reached(Budget(seconds=200), *earlier) is not None
    assert reached(Budget(seconds=10_000), *earlier) is None
    assert (reached(Budget(seconds=200), *earlier) or "").endswith(" of 3:20")


def test_runs_side_by_side_count_together_each_at_its_own_prices() -> None:
    spending = Spending(Budget(tokens=330, cost=3.0, seconds=10_000))
    spending.resume([record(0, 5, None, input=100, output=10)], lambda _: 1.0)
    spending.resume([record(3, 8, None, input=100, output=10)], lambda _: None)
    spending.add(record(8, 9, None, input=100, output=9), lambda _: 1.9)
    assert spending.reached([]) is None
    assert spending.reached([flying(Usage(0, None, 1))]) == "run.tokens is reached, 330 of 330"
    assert (Spending(Budget(seconds=1e-9)).reached([]) or "").startswith("run.seconds")


@pytest.mark.parametrize("values", [{"tokens": 0}, {"cost": -1.0}, {"seconds": 0.0}])
def test_limits_are_greater_than_zero(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        Budget(**values)  # type: ignore[arg-type]
