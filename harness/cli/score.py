"""`harness score`: metrics of saved runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.options import data_dir_option, json_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table
from harness.cli.torn import tell_torn
from harness.metrics import METRICS
from harness.prices import read_prices
from harness.score import Figures, RunScore, score_run, write_scores
from harness.systems import all_runs
from harness.text import count_of, duration, money, number

_TITLES = {"hit@1": "Hit@1", "hit@5": "Hit@5", "recall@20": "Recall@20", "mrr": "MRR"}
_TIMES = ("model", "waiting", "sandbox", "queue", "harness")


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="RUN|PARENT...", type=click.Path(path_type=Path))
@click.option("--prices", type=click.Path(path_type=Path), help="Cost the runs anew with a price list (TOML).")
@data_dir_option
@json_option
def command(folders: tuple[Path, ...], prices: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Score runs: Hit@1, Hit@5, Recall@20 and MRR, with intervals.

    Means over questions with 95 % confidence intervals (Wilson for the hits, bootstrap for the others). Attempts
    that failed for infrastructure reasons are counted as misses, and left out in a second line where there are any;
    a third line has the first attempts where anything was retried. Writes scores.json into each run folder. PARENT
    is a folder that holds runs: each of them. With --json, one run is an object, several are a list.

    \b
    Example:
      $ harness score runs/biogo-files
    """
    price_list = read_prices(prices) if prices else None
    runs = all_runs(folders)
    scores = [score_run(run, price_list, data_dir) for run in runs]
    for run, score in zip(runs, scores, strict=True):
        try:
            write_scores(run, score)
        except OSError as error:
            notice(f"{run}: scores.json is not written: {error.strerror}")
    tell_torn(runs)
    if as_json:
        tables = [score.as_dict() for score in scores]
        print_json(tables[0] if len(tables) == 1 else tables)
    else:
        print_scores(scores)


def print_scores(scores: Sequence[RunScore]) -> None:
    """The tables of metrics and of effort, to stdout; what is not in them, to stderr. One run isn't named in them."""
    several = len(scores) > 1
    header = ("run", "counted", "n", *(_TITLES[name] for name in METRICS))
    rows = [row for score in scores for row in _metric_rows(score)]
    click.echo(_table(header, rows, "  rrrrr", several, first=2))
    click.echo()
    header = ("run", "attempts", "turns", "input", "cached", "output", "cost", "working", *_TIMES)
    click.echo(_table(header, [_effort_row(score) for score in scores], " rrrrrrrrrrrr", several, first=1))
    for score in scores:
        for state, what in (("open", "not asked yet"), ("without_gold", "without gold, so not scored")):
            if score.count(state):
                notice(f"{score.run}: {score.count(state)} of {count_of(len(score.questions), 'question')} {what}")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], form: str, named: bool, *, first: int) -> str:
    begin = 0 if named else 1
    return table(header[begin:], [row[begin:] for row in rows], form[begin:], first=first - begin)


def _metric_rows(score: RunScore) -> list[tuple[str, ...]]:
    failed = score.count("failed")
    lines = [(f"failed = miss ({failed} failed)" if failed else "all", score.failed_is_miss)]
    if failed:
        lines.append(("failures left out", score.failed_left_out))
    if score.first_attempt:
        lines.append(("first attempts", score.first_attempt))
    return [(score.run, label, str(figures.n), *_cells(figures)) for label, figures in lines]


def _cells(figures: Figures) -> list[str]:
    cells = []
    for name in METRICS:
        mean, (low, high) = figures.mean[name], figures.interval[name]
        cells.append("-" if mean is None else f"{mean * 100:.1f} [{low * 100:.1f}, {high * 100:.1f}]")
    return cells


def _effort_row(score: RunScore) -> tuple[str, ...]:
    """Sums over all attempts, in the order of the header."""
    tokens = [number(score.usage[name]) for name in ("input", "cached", "output")]
    times = [duration(score.times.get(name)) for name in ("working", *_TIMES)]
    return (score.run, number(score.attempts), number(score.turns), *tokens, money(score.cost), *times)
