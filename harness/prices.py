"""A price list of the user's own, to cost saved runs anew.

["gpt-6-luna"]        # the model's name in the run's manifest
input = 1.25          # US dollars per million tokens
cached = 0.125        # input tokens read from the provider's cache; input's price where it is not given
output = 10.0
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.settings import build
from harness.suggest import hint


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Mapping[str, int | None]) -> float | None:
        """Dollars for `usage` (its `input` includes `cached`); None where input or output tokens are unknown."""
        tokens_in, tokens_out, cached = usage.get("input"), usage.get("output"), usage.get("cached") or 0
        if tokens_in is None or tokens_out is None:
            return None
        cached_price = self.input if self.cached is None else self.cached
        return ((tokens_in - cached) * self.input + cached * cached_price + tokens_out * self.output) / 1e6


@dataclass(frozen=True)
class Prices:
    """Prices by model name."""

    by_model: Mapping[str, Price]
    source: str

    def cost(self, model: str, usage: Mapping[str, int | None]) -> float | None:
        """Dollars for `usage` of `model`. Raises UserError for a model that the list doesn't have."""
        if model not in self.by_model:
            raise UserError(f"{self.source} has no prices for '{model}'", hint(model, self.by_model, "it has"))
        return self.by_model[model].cost(usage)


def read_prices(path: Path) -> Prices:
    """Read a price list. Raises UserError."""
    try:
        tables = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"price file {path}: {getattr(error, 'strerror', None) or error}") from None
    prices = {}
    for model, table in tables.items():
        if not isinstance(table, Mapping):
            raise UserError(
                f"price file {path}: '{model}' is not a table",
                f'one table for each model: ["{model}"] with input, cached and output in dollars per million tokens',
            )
        prices[model] = build(Price, table, f"price file {path}: {model}")
        if min(prices[model].input, prices[model].output, prices[model].cached or 0) < 0:
            raise UserError(f"price file {path}: {model} has a negative price")
    return Prices(prices, f"price file {path}")
