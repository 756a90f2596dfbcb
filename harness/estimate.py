"""What a run would take: requests, tokens and dollars, from earlier runs of its kind or a stated assumption."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError
from harness.intervals import bootstrap
from harness.ledger import AttemptRecord, read_ledger
from harness.messages import Usage
from harness.runfiles import MANIFEST, read_manifest
from harness.text import count_of

_ENOUGH = 5  # earlier attempts from which means are worth more than the assumption

# Without earlier runs: what attempts of a capable model on a graph of files tend to take, from few to many.
_TURNS = (8, 40)
_INPUT_PER_TURN = (6_000, 30_000)
_OUTPUT_PER_TURN = (300, 1_000)
_CACHED_SHARE = 0.8

Range = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """Ranges (low, high) for all attempts together; `cost` in US dollars, None where prices are unknown."""

    basis: str
    requests: Range
    input: Range
    output: Range
    cost: Range | None


_RECORDED = Estimate("no model is asked: the turns are written down already", (0, 0), (0, 0), (0, 0), (0.0, 0.0))


def estimate(
    attempts: int,
    parent: Path,
    graph: str,
    mode: Mapping[str, Any],
    model: str,
    cost_of: Callable[[Usage], float | None],
    *,
    asks: bool = True,
) -> Estimate:
    """The estimate for `attempts` attempts, from runs under `parent` of the same graph, mode and model if any.

    `mode` is the mode's table: attempts with other settings (limits, tools) tell nothing. `asks` is whether a model is
    asked at all, rather than recorded turns.
    """
    records = list(_earlier(parent, graph, mode, model))
    if len(records) < _ENOUGH:
        return _assumed(attempts, cost_of) if asks else _RECORDED
    basis = f"{count_of(len(records), 'earlier attempt')} under {parent}"
    turns = [float(record.turns) for record in records]
    tokens_in = [float(record.usage.get("input") or 0) for record in records]
    tokens_out = [float(record.usage.get("output") or 0) for record in records]
    costs = [cost_of(Usage(**record.usage)) for record in records]
    known = [cost for cost in costs if cost is not None]
    return Estimate(
        basis,
        _total(attempts, turns),
        _total(attempts, tokens_in),
        _total(attempts, tokens_out),
        _total(attempts, known) if len(known) == len(costs) else None,
    )


def _assumed(attempts: int, cost_of: Callable[[Usage], float | None]) -> Estimate:
    basis = (
        f"assumed, for want of {_ENOUGH} earlier attempts: {_TURNS[0]} to {_TURNS[1]} requests an attempt,"
        f" {_INPUT_PER_TURN[0]:,} to {_INPUT_PER_TURN[1]:,} input tokens each ({_CACHED_SHARE:.0%} of them cached),"
        f" {_OUTPUT_PER_TURN[0]:,} to {_OUTPUT_PER_TURN[1]:,} output tokens"
    )
    ends = []
    for turns, tokens_in, tokens_out in zip(_TURNS, _INPUT_PER_TURN, _OUTPUT_PER_TURN, strict=True):
        usage = Usage(turns * tokens_in, int(turns * tokens_in * _CACHED_SHARE), turns * tokens_out)
        ends.append((attempts * turns, attempts * turns * tokens_in, attempts * turns * tokens_out, cost_of(usage)))
    (turns_low, in_low, out_low, cost_low), (turns_high, in_high, out_high, cost_high) = ends
    cost = None if cost_low is None or cost_high is None else (attempts * cost_low, attempts * cost_high)
    return Estimate(basis, (turns_low, turns_high), (in_low, in_high), (out_low, out_high), cost)


def _total(attempts: int, values: list[float]) -> Range:
    """The sum over `attempts` more of the kind: the ends of the mean's 95 % interval, times their number."""
    low, high = bootstrap(values) if len(set(values)) > 1 else (statistics.fmean(values),) * 2
    return attempts * low, attempts * high


def _earlier(parent: Path, graph: str, mode: Mapping[str, Any], model: str) -> Iterable[AttemptRecord]:
    """Finished attempts of the runs in `parent` and in the folders in it."""
    wanted = (graph, orjson.loads(orjson.dumps(mode, default=str)), model)
    for path in sorted((*parent.glob(f"*/{MANIFEST}"), *parent.glob(f"*/*/{MANIFEST}"))):
        try:
            manifest = read_manifest(path.parent)
            if (manifest["graph"], manifest["mode"], manifest["model"]["name"]) != wanted:
                continue
            records = read_ledger(path.parent)
        except (UserError, ValueError, KeyError, TypeError, OSError):
            continue  # not a run, or a damaged one: no basis for an estimate
        yield from (record for record in records if not record.is_infrastructure)
