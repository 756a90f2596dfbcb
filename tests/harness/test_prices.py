"""What tokens cost."""

from __future__ import annotations

import pytest

from harness.messages import Usage
from harness.prices import Prices, cost


def test_cost_by_class():
    prices = Prices(input=2.0, cached=0.5, output=8.0)
    assert cost(Usage(1_000_000, 400_000, 100_000, 50_000), prices) == pytest.approx(1.2 + 0.2 + 0.8)
    assert cost(Usage(1_000_000, None, 0, None), Prices(input=2.0, output=8.0)) == 2.0
    assert cost(Usage(1_000_000, 1_000_000, 0, None), Prices(input=2.0, output=8.0)) == 2.0
    apart = Prices(input=0.0, output=8.0, reasoning=1.0)
    assert cost(Usage(0, 0, 1_000_000, 500_000), apart) == pytest.approx(4.5)


@pytest.mark.parametrize("usage", [Usage(None, 0, 5, 0), Usage(5, 0, None, 0), Usage()])
def test_cost_of_unknown_counts_is_unknown(usage):
    assert cost(usage, Prices(1.0, 1.0, 1.0)) is None


def test_cost_at_unknown_prices_is_unknown():
    assert cost(Usage(1, 0, 1, 0), Prices()) is None
    assert cost(Usage(0, 0, 0, 0), Prices()) is None
    assert cost(Usage(1, 0, 1, 0), Prices(input=1.0)) is None
