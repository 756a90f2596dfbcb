"""`harness run`: the main job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import sandbox
from harness.backbones import DEFAULT_MODEL
from harness.cli.errors import INTERRUPTED
from harness.cli.options import AtLeastOne, Names, data_dir_option, sandbox_option, set_option
from harness.cli.output import notice
from harness.cli.plan import print_plan
from harness.cli.request import Job, Request
from harness.cli.score import print_scores
from harness.cli.signals import ends_like_ctrl_c
from harness.errors import InfrastructureError, UserError
from harness.fuse import FUSIONS
from harness.ledger import AttemptRecord, read_ledger
from harness.prices import cost
from harness.progress import Display, RunListener
from harness.runconfig import RunConfig
from harness.rundir import check_folder
from harness.runfiles import MANIFEST
from harness.runner import execute_all
from harness.score import score_run, write_scores
from harness.text import count_of, number
from harness.tools.kit import needs_sandbox

FAILURES = 1
DEFAULT_WORKERS = 4


@click.command()
@click.option("--graph", "graphs", type=Names(), required=True, metavar="GRAPH,...", help="Names or paths of exports.")
@click.option("--mode", "modes", type=Names(), required=True, metavar="MODE,...", help="See `harness modes`.")
@click.option("--model", default=DEFAULT_MODEL, show_default=True, metavar="NAME", help="See `harness models`.")
@click.option("--base-url", metavar="URL", help="Ask this OpenAI-compatible endpoint instead of the profile's.")
@click.option("--split", "splits", type=Names(), metavar="SPLIT,...", help="Default: test if there is one, else all.")
@click.option("--limit", type=AtLeastOne(), metavar="N", help="Ask the first N questions.")
@click.option("--sample", type=AtLeastOne(), metavar="N", help="Ask N questions drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="For --sample.")
@click.option(
    "--queries", type=click.Path(path_type=Path), metavar="FILE", help="Ask the questions of this file (JSONL, CSV)."
)
@click.option(
    "--workers",
    type=AtLeastOne(),
    default=DEFAULT_WORKERS,
    show_default=True,
    metavar="N",
    help="Questions at a time.",
)
@click.option("--agents", type=AtLeastOne(), metavar="N", help="Independent attempts per question.")
@click.option("--fuse", type=click.Choice(FUSIONS), help="How the agents' answers become one.")
@sandbox_option
@click.option(
    "--retry",
    type=click.Choice(["infra", "timeout", "none"]),
    default="infra",
    show_default=True,
    help="Attempts that are repeated, twice at most: failed for infrastructure, out of time too, or none.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder; of several runs, the folder above."
)
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@data_dir_option
@set_option
@click.option("--dry-run", is_flag=True, help="Say what would run, what it may cost and what is missing.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Ask an agent the questions of a graph and score its answers.

    The run folder holds the manifest, the ledger of attempts, every trajectory and the scores. Ctrl-C or SIGTERM
    stops cleanly; --resume goes on without asking a finished question again. Where the model's server has moved, the
    same command with the new --base-url goes on there; the manifest keeps which attempts were asked where.

    Limits of one attempt are settings of the mode (limits.…). Those of the whole run are --set run.tokens=N,
    run.cost=DOLLARS and run.seconds=N, shared by all modes and graphs of the command: at one of them no attempt
    starts any more and those in flight finish; --resume with a higher one goes on.

    \b
    Examples:
      $ harness run --graph biogo --mode files --model demo
      $ harness run --graph ./mygraph --mode files --queries mine.jsonl --out runs/mine
      $ harness run --graph biogo --mode files --model my-model --base-url http://localhost:8000/v1
    """
    request = Request(**options)
    with ends_like_ctrl_c():
        return _asked(request, ctx.find_root().meta["harness.command"])


def _asked(request: Request, typed: Sequence[str]) -> int:
    jobs = request.jobs()
    try:
        if request.dry_run:
            print_plan(jobs, request)
            return 0
        return _run_all(jobs, request, typed)
    finally:
        for backbone in {id(job.backbone): job.backbone for job in jobs}.values():
            getattr(backbone, "close", lambda: None)()  # those that hold connections have it


def _run_all(jobs: Sequence[Job], request: Request, typed: Sequence[str]) -> int:
    resumed = [request.resume and (job.out / MANIFEST).exists() for job in jobs]
    resumes = list(zip(jobs, resumed, strict=True))
    for job, resume in resumes:
        check_folder(job.out, resume=resume or (request.resume and not any(resumed)))
    again = shlex.join([*(word for word in typed if word != "--resume"), *_out(request, jobs), "--resume"])
    backend = None
    if any(needs_sandbox(job.mode.tools) for job in jobs):
        backend = sandbox.choose(request.sandbox_kind, base=jobs[0].mode.sandbox.base, notice=notice)
    display = Display(bar=not any(job.interactive for job in jobs))
    try:
        parts = [_part(job, request, backend, display, len(jobs) > 1, resume, typed) for job, resume in resumes]
        outcomes = execute_all(parts)
    except KeyboardInterrupt:
        if not _begun(jobs):
            raise
        notice(f"stopped; to go on: {again}")
        return INTERRUPTED
    except (InfrastructureError, sandbox.SandboxError, OSError) as error:
        if _begun(jobs):
            notice(f"to go on: {again}")
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(jobs[0].out)  # a full disk does not say which
        raise
    _report(jobs)
    if any(outcome.interrupted for outcome in outcomes):
        notice(f"stopped; to go on: {again}")
        return INTERRUPTED
    limits = [outcome.limit for outcome in outcomes if outcome.limit]
    if limits:
        notice(f"stopped: {limits[0]}; to go on, raise it: {again}")
    return FAILURES if limits or any(outcome.failed for outcome in outcomes) else 0


def _begun(jobs: Sequence[Job]) -> bool:
    return any((job.out / MANIFEST).exists() for job in jobs)


def _part(
    job: Job,
    request: Request,
    backend: sandbox.Backend | None,
    display: Display,
    labelled: bool,
    resume: bool,
    typed: Sequence[str],
) -> tuple[RunConfig, RunListener]:
    assert job.backbone is not None
    export, prices = job.graph.export, job.profile.prices
    listener = RunListener(
        display,
        job.out.name if labelled else "",
        f"{job.graph.name}, {job.mode.name}, {job.profile.name}: {job.out}",
        lambda node: str(export.node(node)["name"]),
        export.is_candidate,
        request.retry,
        earlier=_earlier(job.out) if resume else (),
        questions=job.questions.questions,
    )
    config = RunConfig(
        graph=job.graph.name,
        export=export,
        mode=job.mode,
        profile=job.profile.as_dict(),
        backbone=job.backbone,
        sandboxes=backend if needs_sandbox(job.mode.tools) else None,
        questions=job.questions,
        out=job.out,
        command=typed,
        workers=min(request.workers, job.at_once or request.workers),
        retry=request.retry,
        resume=resume,
        window=job.profile.window,
        cost_of=lambda usage: cost(usage, prices),
        budget=job.budget,
        names=request.names,
    )
    return config, listener


def _earlier(run: Path) -> list[AttemptRecord]:
    try:
        return read_ledger(run)
    except ValueError as error:
        raise UserError(str(error), f"`harness check {run}` says what else is wrong") from None


def _report(jobs: Sequence[Job]) -> None:
    scores = [score_run(job.out) for job in jobs]
    for job, score in zip(jobs, scores, strict=True):
        write_scores(job.out, score)
    print_scores(scores)
    click.echo()
    for job in jobs:
        if job.replays:
            click.echo(_compared(job.out))
        if cut := sum(record.counts.get("input_cut", 0) for record in read_ledger(job.out)):
            notice(
                f"{job.out}: the server counted no more tokens in {count_of(cut, 'request')} than in those before,"
                " though more was sent: it seems to cut what it gets; model.window should be what it was started with"
            )
        click.echo(f"run folder: {job.out}")
    if len(jobs) > 1:
        notice(f"side by side: harness report {shlex.quote(str(jobs[0].out.parent))}")


def _compared(run: Path) -> str:
    """How many of a replay's results were as recorded."""
    counts = [record.counts for record in read_ledger(run)]
    differ = sum(count.get("replay_difference", 0) for count in counts)
    same = sum(count.get("calls", 0) for count in counts) - differ
    return f"replay: {count_of(same, 'result')} as recorded, {number(differ)} {'differs' if differ == 1 else 'differ'}"


def _out(request: Request, jobs: Sequence[Job]) -> list[str]:
    """The flag that names the run folder, where it was not given."""
    if request.out is not None:
        return []
    return ["--out", str(jobs[0].out if len(jobs) == 1 else jobs[0].out.parent)]
