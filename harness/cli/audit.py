"""`harness audit`: what happened in saved runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.audit import Audit, audit_run
from harness.audit.run import worth_showing
from harness.audit.words import alarm_text, ends, figure, interval, place_text, rate, verdict
from harness.cli.options import AtLeastOne, data_dir_option, json_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table
from harness.cli.torn import tell_damaged, tell_torn
from harness.errors import UserError
from harness.servers import where_asked
from harness.systems import all_runs
from harness.text import count_of, number, size


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="RUN|PARENT...", type=click.Path(path_type=Path))
@click.option("--processes", type=AtLeastOne(), metavar="N", help="Default: one, and as many as CPUs for large runs.")
@data_dir_option
@json_option
def command(folders: tuple[Path, ...], processes: int | None, data_dir: Path | None, as_json: bool) -> None:
    """Say what agents did in runs, where answers come from, and whether to trust them.

    Counts and rates with 95 % intervals and pointers to examples (file and line in the run folder). Programs are
    taken from the commands by a parser and classified from their syntax trees; docs/audit.md says how each figure is
    defined. Needs no model, no sandbox and no network; what needs gold is left out where the run's export is gone.
    PARENT is a folder that holds runs: each of them. With --json, one run is an object, several are a list.

    \b
    Example:
      $ harness audit runs/biogo-files
    """
    audits = []
    runs = all_runs(folders)
    for run in runs:
        with _progress(run) as progress:
            audits.append(audit_run(run, processes=processes, progress=progress, data=data_dir))
    tell_torn(runs)
    for audit in audits:
        if audit.missing:
            known = count_of(len(audit.facts.records), "attempt")
            if not audit.part.attempts:
                raise UserError(
                    f"nothing to audit in {audit.run}: its ledger has {known}, and no trajectory is there",
                    "put its folder trajectories/ back; `harness score` needs the ledger alone",
                )
            notice(f"{audit.run}: of {known} in the ledger {number(audit.missing)} not audited: no trajectory")
        if audit.in_flight:
            notice(f"{audit.run}: the run goes on; left out: {count_of(audit.in_flight, 'attempt')} in flight")
        for tally in audit.rows("damaged_lines").values():
            tell_damaged(Path(audit.run), round(tally.count), (f"{each.file}:{each.line}" for each in tally.places))
        for text in audit.facts.unknown:
            notice(f"{audit.run}: what needs gold is left out: {text}")
    if as_json:
        tables = [audit.as_dict() for audit in audits]
        print_json(tables[0] if len(tables) == 1 else tables)
        return
    click.echo("\n\n".join("\n".join(lines(audit)) for audit in audits))


@contextmanager
def _progress(run: Path) -> Iterator[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    from rich.console import Console  # noqa: PLC0415 - not needed where nothing is shown

    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"auditing {run.name}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def lines(audit: Audit) -> Iterator[str]:
    """The audit of one run as text."""
    content = audit.as_dict()
    questions, attempts = count_of(content["questions"], "question"), count_of(content["attempts"], "attempt")
    yield f"{audit.run}: {audit.graph}, {audit.mode}, {audit.model}; {questions}, {attempts}, {size(content['bytes'])}"
    if where := where_asked(audit.facts.manifest):
        yield f"the model was asked at several addresses: {where}"
    for section in content["sections"].values():
        yield ""
        header = (section["title"].upper(), "count", "of", "rate", "95 % interval", "for example")
        rows = [row for check in section["checks"] for row in _rows(check)]
        yield table(header, rows, " rrrll", optional=header[-1:])
        yield from _measures(section["measures"])
    yield ""
    yield from _verdict(audit)


def _rows(check: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A check's lines in its section's table."""
    rows = [row for row in check["rows"] if worth_showing(check, row)]
    title = f"{check['title']} (of {check['unit']})"
    if [row["label"] for row in rows] == [""]:
        yield _row(title, rows[0])
    elif rows:
        yield (title, "", "", "", "", "")
        yield from (_row(f"- {row['label'].replace('_', ' ')}", row) for row in rows)


def _row(label: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    example = place_text(row["examples"][0]) if row["examples"] else ""
    return (label, figure(row["count"]), figure(row["of"]), rate(row), interval(row), example)


def _measures(measures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [
        (
            measure["title"], measure["unit"], figure(measure["n"]), figure(measure["median"]),
            ends(measure["interval"]), ends(measure["quartiles"]), figure(measure["mean"]),
            figure(measure["examples"][0]["value"]), place_text(measure["examples"][0]),
        )
        for measure in measures
        if measure["n"]
    ]  # fmt: skip
    if rows:
        yield ""
        header = ("", "unit", "n", "median", "its 95 % interval", "quartiles", "mean", "largest", "where")
        yield table(header, rows, "  rrrrrrl", optional=header[-1:])


def _verdict(audit: Audit) -> Iterator[str]:
    alarms = audit.alarms()
    yield verdict(alarms)
    for title, label, tally in alarms:
        yield f"  {alarm_text(title, label, tally)}"
        for place in tally.places:
            yield f"    {place_text(place.as_dict())}"
