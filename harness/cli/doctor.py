"""`harness doctor`: one screen on what is and isn't there."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import data_dir_option, json_option
from harness.cli.output import notice, print_json
from harness.cli.tables import table
from harness.doctor import Report, SandboxReport, examine
from harness.graphs import data_directory
from harness.text import count_of

NOTHING_WORKS = 1
_TOLD = {"kind", "kernel"}  # of what is known of a sandbox: in the same output already


@click.command()
@data_dir_option
@json_option
def command(data_dir: Path | None, as_json: bool) -> int:
    """Say what is and isn't there on this machine.

    Each thing that is missing comes with a hint. Both kinds of sandbox are tried by running them, and the isolation
    probe runs in each that works. Exits with 1 where no sandbox can be used.

    \b
    Example:
      $ harness doctor
    """
    report = examine(data_directory(data_dir), notice)
    if as_json:
        print_json(report.as_dict())
    else:
        click.echo(table(("", "", ""), _rows(report)).lstrip("\n"))
    return 0 if report.can_run else NOTHING_WORKS


def _rows(report: Report) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    told = {each.error for each in report.sandboxes}
    for finding in report.findings:
        if finding.state == "missing" and finding.detail in told:
            continue  # a sandbox's row says the same
        rows.append((finding.state, finding.name, finding.detail))
        if finding.hint:
            rows.append(("", "", f"hint: {finding.hint}"))
    for each in report.sandboxes:
        rows += _sandbox_rows(each)
    return rows


def _sandbox_rows(report: SandboxReport) -> list[tuple[str, str, str]]:
    name = f"sandbox {report.kind}"
    if report.found is None:
        return [("missing", name, report.error), ("", "", f"hint: {report.hint}")]
    found = {key.replace("_", " "): value for key, value in report.found.items() if key not in _TOLD and value}
    details = ", ".join(f"{key} {_brief(value)}" for key, value in found.items())
    failed = [result for result in report.probe if not result["passed"]]
    rows = [("missing" if failed else "ok", name, details)]
    if not failed:
        rows.append(("ok", f"isolation {report.kind}", f"{count_of(len(report.probe), 'probe')} passed"))
    rows += [("FAILED", f"isolation {report.kind}", f"{result['name']}: {result['detail']}") for result in failed]
    return rows


def _brief(value: object) -> str:
    """A hash is told by its beginning; the whole of it is in --json."""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    digest = text.rpartition(":")[2]
    return digest[:12] if len(digest) == 64 and digest.isalnum() else text
