"""`harness run --dry-run`: what would run, what it may cost, and what is missing for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

import sandbox
from harness.cli.output import notice
from harness.cli.request import Job, Request
from harness.cli.tables import table
from harness.estimate import Estimate, Range, estimate
from harness.messages import Usage
from harness.prices import Prices, cost
from harness.text import money, number


def print_plan(jobs: Sequence[Job], request: Request) -> None:
    """Print the plan to stdout."""
    estimates = [_estimate(job) for job in jobs]
    header = ("graph", "mode", "model", "questions", "attempts", "requests", "input", "output", "cost", "run folder")
    click.echo(table(header, [_row(*pair) for pair in zip(jobs, estimates, strict=True)], "   rrrrrr", first=2))
    click.echo()
    for basis in dict.fromkeys(each.basis for each in estimates):
        click.echo(f"basis: {basis}")
    if request.retry != "none":
        click.echo("not counted: up to two more attempts where one fails")
    lacking = _lacking(jobs, request)
    for text in lacking:
        click.echo(f"missing: {text}")
    if not lacking:
        click.echo("nothing is missing")


def _estimate(job: Job) -> Estimate:
    return estimate(
        job.attempts,
        job.out.parent,
        job.graph.name,
        job.mode.as_dict(),
        job.profile.name,
        partial(_cost, job.profile.prices),
        asks=job.profile.endpoint is not None,
    )


def _cost(prices: Prices, usage: Usage) -> float | None:
    return cost(usage, prices)


def _row(job: Job, expected: Estimate) -> tuple[str, ...]:
    return (
        job.graph.name,
        job.mode.name,
        job.profile.name,
        number(len(job.questions.questions)),
        number(job.attempts),
        *(_range(ends) for ends in (expected.requests, expected.input, expected.output)),
        "unknown" if expected.cost is None else f"{money(expected.cost[0])} to {money(expected.cost[1])}",
        str(job.out),
    )


def _range(ends: Range) -> str:
    low, high = (number(end) for end in ends)
    return low if low == high else f"{low} to {high}"


def _lacking(jobs: Sequence[Job], request: Request) -> list[str]:
    errors: list[Exception] = [job.lacking for job in jobs if job.lacking is not None]
    try:
        sandbox.choose(request.sandbox_kind, base=jobs[0].mode.sandbox.base, notice=notice)
    except sandbox.SandboxUnavailable as error:
        errors.append(error)
    return list(dict.fromkeys(f"{error} ({getattr(error, 'hint', '')})" for error in errors))
