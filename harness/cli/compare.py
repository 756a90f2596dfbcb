"""`harness compare`: runs against each other, question by question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.cli.options import data_dir_option, json_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table
from harness.cli.torn import tell_damaged, tell_torn
from harness.compare import RESOURCES, SCHEMA_VERSION, Both, Figures, Pair, compare
from harness.errors import UserError
from harness.metrics import METRICS
from harness.paired import Difference
from harness.prices import read_prices
from harness.report.units import TITLES, UNITS, Unit, p_value, percent, signed
from harness.systems import System, load_systems
from harness.text import count_of, shorten
from harness.where import Where

_QUESTION_WIDTH = 60
_SPARED = ("seconds", "tokens", "turns", "cost")  # columns of the list that a narrow terminal does without


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--wins",
    is_flag=True,
    help="List the questions that one did better on, and what the second spent beyond the first on each.",
)
@click.option("--where", "condition", metavar="EXPR", help="Keep questions for which this holds, e.g. turns > 10.")
@click.option("--prices", type=click.Path(path_type=Path), help="Cost the runs anew with a price list (TOML).")
@data_dir_option
@json_option
def command(
    runs: tuple[Path, ...], wins: bool, condition: str | None, prices: Path | None, data_dir: Path | None, as_json: bool
) -> None:
    """Compare runs on the questions they share, with intervals and tests.

    RUN is a run folder, or a parent that holds some; runs of one mode and model over several graphs count as one
    system. Each is compared with the first. For each metric: both means, the difference (the other's minus the
    first's) with its 95 % interval from a paired bootstrap, and the smallest difference that so many questions show
    with 80 % power; for Hit@1 the questions that only one got right and the exact McNemar p, adjusted by Holm. Cost,
    tokens, turns and seconds likewise. Attempts that failed for infrastructure reasons are counted as misses, and
    left out. docs/statistics.md defines every figure.

    EXPR speaks of any recorded field, of every run (turns > 10), of one (run2.calls >= 10), or of a run that is not
    compared (other("runs/prime-bm25").hit@1 == 0), with and, or, not, comparisons, arithmetic and in.

    \b
    Example:
      $ harness compare runs/biogo-files runs/biogo-tools --where 'split == "test"'
    """
    where = Where(condition) if condition else None
    price_list = read_prices(prices) if prices else None
    systems = load_systems(runs, price_list, data_dir)
    others = [_single(folder, data_dir) for folder in where.folders] if where else []
    pairs = compare(systems, where, others)
    read = {run.path: run for system in (*systems, *others) for run in system.runs.values()}
    tell_torn(read)
    for path, run in read.items():
        tell_damaged(path, len(run.damaged), run.damaged)
    if as_json:
        print_json({
            "schema_version": SCHEMA_VERSION,
            "systems": [{"label": s.label, "runs": [str(run.path) for run in s.runs.values()]} for s in systems],
            "where": condition,
            "pairs": [pair.as_dict(questions=wins) for pair in pairs],
        })  # fmt: skip
        return
    for number_, pair in enumerate(pairs):
        click.echo("\n" * (number_ > 0) + "\n".join(_lines(pair)))
        if wins:
            click.echo("\n" + "\n".join(_decided(pair)))
    for text in sorted({text for pair in pairs for text in _exports(pair)}):
        notice(text)


def _single(folder: str, data: Path | None) -> System:
    systems = load_systems([Path(folder)], data=data)
    if len(systems) > 1:
        raise UserError(
            f'--where: other("{folder}") holds several systems: {", ".join(s.label for s in systems)}',
            "name a run folder, or a folder with one system's runs over several graphs",
        )
    return systems[0]


def _lines(pair: Pair) -> Iterator[str]:
    yield f"{pair.second.label} against {pair.first.label}: {count_of(len(pair.questions), 'question')} of both"
    if pair.left_out.texts():
        yield f"not compared: {', '.join(pair.left_out.texts())}"
    if not pair.questions:
        return
    if not pair.failed:
        yield "no attempt failed for infrastructure reasons, so there is nothing to leave out"
    for figures in pair.figures:
        if figures.failures == "miss" or pair.failed:
            yield ""
            yield from _block(pair, figures)


def _block(pair: Pair, figures: Figures) -> Iterator[str]:
    where = "overall" if figures.level == "overall" else f"{figures.level} {figures.name or 'none'}"
    counted = "" if not pair.failed else f", {'failed = miss' if figures.failures == 'miss' else 'failures left out'}"
    yield f"{where}{counted} (n = {figures.n})"
    header = ("", pair.first.label, pair.second.label, "difference", "95 % interval", "resolvable")
    rows = [(TITLES[name], *_cells(figures.metrics[name], percent)) for name in METRICS]
    rows += [(f"{name} a question", *_cells(figures.resources[name], UNITS[name])) for name in RESOURCES]
    yield table(header, rows, " rrrrr")
    hits = figures.hits
    yield (
        f"Hit@1: {hits.only_first} only {pair.first.label}, {hits.only_second} only {pair.second.label}; "
        f"exact McNemar p = {p_value(hits.p)}, by Holm {p_value(hits.adjusted)}"
    )
    ties = figures.n - figures.wins - figures.losses
    yield f"{pair.second.label} did better on {figures.wins}, worse on {figures.losses}, the same on {ties}"


def _cells(value: Difference, unit: Unit) -> tuple[str, ...]:
    ends = "-" if value.interval is None else f"[{signed(value.interval[0], unit)}, {signed(value.interval[1], unit)}]"
    return (unit(value.first), unit(value.second), signed(value.difference, unit), ends, unit(value.resolvable))


def _decided(pair: Pair) -> Iterator[str]:
    rows = [_question(both, several=len(pair.first.runs) > 1) for both in pair.decided()]
    ranks = (f"rank {pair.first.label}", f"rank {pair.second.label}")
    header = ("", "question", *ranks, *RESOURCES, "text")
    yield table(header, rows, "  rrrrrrs", optional=_SPARED) if rows else "both did the same on every question"


def _question(both: Both, *, several: bool) -> tuple[str, ...]:
    identity = f"{both.key.graph} {both.key.id}" if several else both.key.id
    ranks = [str(side.rank or "-") for side in (both.first, both.second)]
    more = [signed(_more(both, name), UNITS[name]) for name in RESOURCES]
    text = shorten(both.first.question.text, _QUESTION_WIDTH)
    return ("win" if both.outcome > 0 else "loss", shorten(identity, 30), *ranks, *more, text)


def _more(both: Both, resource: str) -> float | None:
    """What the second spent on the question beyond the first."""
    first, second = (getattr(side, resource) for side in (both.first, both.second))
    return None if first is None or second is None else second - first


def _exports(pair: Pair) -> Iterator[str]:
    for graph in pair.first.runs.keys() & pair.second.runs.keys():
        digests: Sequence[str] = [s.runs[graph].manifest["export"]["digest"][:12] for s in (pair.first, pair.second)]
        if digests[0] != digests[1]:
            yield f"{graph}: the runs were made on different exports, {digests[0]} and {digests[1]}"
