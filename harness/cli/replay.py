"""`harness replay`: a saved run's commands, run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import sandbox
from harness.cli.options import AtLeastOne, data_dir_option, json_option, sandbox_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table, terminal_width
from harness.cli.torn import tell_damaged
from harness.replay_causes import CAUSES
from harness.replay_run import Difference, Plan, RunReplay, plan_replay, replay_run
from harness.systems import find_runs
from harness.text import count_of, number, plain, shorten

FAULTS = 1
_SHOWN = 20  # differences that are shown in full, unless all are asked for
_WIDTH = 110  # of a line that is compared, where the terminal has as much


@click.command()
@click.argument("folder", metavar="RUN|PARENT", type=click.Path(path_type=Path))
@click.option("--query", "queries", multiple=True, metavar="ID", help="Only this question; may be given again.")
@click.option("--workers", type=AtLeastOne(), default=2, show_default=True, help="Attempts at a time.")
@click.option("--again", is_flag=True, help="Replay what an earlier replay did, too.")
@click.option("--full", is_flag=True, help="Show every difference.")
@sandbox_option
@data_dir_option
@json_option
def command(
    folder: Path,
    queries: tuple[str, ...],
    workers: int,
    again: bool,
    full: bool,
    sandbox_kind: str,
    data_dir: Path | None,
    as_json: bool,
) -> int:
    """Run a saved run's commands again and compare what the model saw.

    Every attempt runs in a fresh sandbox over the export that the run was made on; another export is refused. Results
    are compared byte for byte, and differences are told apart by their causes: time, process ids, the order of a set,
    limits, free disk space. What has been replayed is kept in the run folder: a replay that was stopped goes on
    where it was. PARENT is a folder that holds runs: each of them. Exits with 1 where a difference has no known
    cause, or where lines of a trajectory can't be read.

    \b
    Example:
      $ harness replay runs/biogo-files --query bio01
    """
    runs = find_runs(folder)
    first = [plan_replay(run, "", queries, data=data_dir) for run in runs]  # mistakes before a sandbox is looked for
    replays = []
    for run, plan in zip(runs, first, strict=True):
        if not plan.commands:
            notice(f"{run}: nothing to replay, its tools run no commands")
            replays.append(RunReplay(str(run), "no sandbox"))
            continue
        backend = sandbox.choose(sandbox_kind, base=plan.sandbox.base, notice=notice)
        replays.append(_replay(plan_replay(run, backend.kind, queries, again=again, data=data_dir), backend, workers))
        tell_damaged(run, len(replays[-1].damaged), replays[-1].damaged)
    if as_json:
        tables = [replay.as_dict() for replay in replays]
        print_json(tables[0] if len(tables) == 1 else tables)
    else:
        click.echo("\n\n".join("\n".join(_lines(replay, full)) for replay in replays))
    return FAULTS if any(replay.faulty for replay in replays) else 0


def _replay(plan: Plan, backend: sandbox.Backend, workers: int) -> RunReplay:
    """Replay one run, with a bar on a terminal."""
    if plan.done:
        notice(f"{count_of(len(plan.done), 'attempt')} replayed before (--again to do them anew)")
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("replaying", total=len(plan.files), completed=len(plan.done))
        return replay_run(
            plan, backend, workers=workers, notice=notice,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip


def _lines(replay: RunReplay, full: bool) -> Iterator[str]:
    commands, matched, explained = replay.commands, replay.matched, replay.explained
    attempts = count_of(len(replay.attempts), "attempt")
    yield f"{replay.run}: {attempts}, {count_of(commands, 'command')}, {replay.sandbox}"
    recorded, replayed = replay.python.get("recorded"), replay.python.get("replayed")
    if recorded and replayed and recorded != replayed:
        yield f"the run's sandbox had Python {recorded}, this one has {replayed}"
    if commands:
        yield f"{number(matched)} matched byte for byte ({matched / commands:.1%})"
        if explained:
            both = matched + explained
            differ = "differs" if explained == 1 else "differ"
            yield f"{number(explained)} {differ} for a known cause ({both / commands:.1%} with the matched ones)"
    causes = Counter(difference.cause for difference in replay.differences)
    if causes:
        yield ""
        rows = [(str(count), cause or "unknown", CAUSES.get(cause or "", "")) for cause, count in causes.most_common()]
        yield table(("differ", "cause", ""), rows, "r")
    unknown_first = sorted(replay.differences, key=lambda difference: difference.cause is not None)
    shown = unknown_first if full else unknown_first[:_SHOWN]
    for difference in shown:
        yield from _difference(difference)
    if len(shown) < len(unknown_first):
        yield f"\n{count_of(len(unknown_first) - len(shown), 'more difference')} (--full shows them)"
    for attempt in replay.errors:
        yield f"\n{attempt.file} could not be replayed: {shorten(attempt.error or '', 300)}"


def _difference(difference: Difference) -> Iterator[str]:
    yield ""
    yield f"{difference.file}:{difference.line}, turn {difference.turn}: {difference.cause or 'unknown cause'}"
    room = min(_WIDTH, (terminal_width() or _WIDTH) - 4)
    yield "  " + shorten(f"{difference.tool}: {difference.command}", room)
    for mark, text in (("-", difference.recorded), ("+", difference.replayed)):
        yield from (f"  {mark} {shorten(row, room)}" for row in plain(text).split("\n")[:3])
