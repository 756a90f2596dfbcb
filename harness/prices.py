"""What tokens cost, and price lists of the user's own, to cost saved runs anew.

["gpt-6-luna"]        # the model's name in the run's manifest
input = 1.25          # US dollars per million tokens
cached = 0.125        # input tokens read from the provider's cache
output = 10.0
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.messages import Usage
from harness.settings import build, check_range
from harness.suggest import hint


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens; None where unknown. `cached` and `reasoning` None: no price of their own."""

    input: float | None = None
    cached: float | None = None
    output: float | None = None
    reasoning: float | None = None

    def __post_init__(self) -> None:
        check_range(self, "input", "cached", "output", "reasoning", least=0)


def cost(usage: Usage, prices: Prices) -> float | None:
    """US dollars for `usage`; None where a count or a price that it needs is unknown, never 0 for lack of one."""
    if usage.input is None or usage.output is None or prices.input is None or prices.output is None:
        return None
    cached = min(usage.cached or 0, usage.input)
    reasoning = min(usage.reasoning or 0, usage.output)
    cached_price = prices.input if prices.cached is None else prices.cached
    reasoning_price = prices.output if prices.reasoning is None else prices.reasoning
    spent = (usage.input - cached) * prices.input + cached * cached_price
    spent += (usage.output - reasoning) * prices.output + reasoning * reasoning_price
    return spent / 1_000_000


@dataclass(frozen=True)
class PriceList:
    """Prices by model name. `source` names the list in errors."""

    by_model: Mapping[str, Prices]
    source: str

    def of(self, model: str) -> Prices:
        """The prices of `model`. Raises UserError where the list doesn't have it."""
        if model not in self.by_model:
            raise UserError(f"{self.source} has no prices for '{model}'", hint(model, self.by_model, "it has"))
        return self.by_model[model]


def read_prices(path: Path) -> PriceList:
    """Read a price list. Raises UserError."""
    source = f"price file {path}"
    try:
        tables = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise UserError(f"{source}: {(error.strerror or 'unreadable').lower()}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{source}: {error}") from None
    form = 'one table for each model, ["NAME"] with input, cached and output in dollars per million tokens'
    if not tables:
        raise UserError(f"{source} is empty", form)
    for model, table in tables.items():
        if not isinstance(table, Mapping):
            raise UserError(f"{source}: '{model}' is not a table", form)
    return PriceList({model: build(Prices, table, f"{source}: {model}") for model, table in tables.items()}, source)
