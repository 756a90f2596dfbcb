"""What commands on saved runs say of a ledger that a crash left unfinished."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.cli.output import notice
from harness.ledger import is_torn


def tell_torn(runs: Iterable[Path]) -> None:
    """Say which runs have an attempt that is left out because its line in the ledger is torn."""
    for run in runs:
        if is_torn(run):
            notice(
                f"{run}: the last line of the ledger is torn, as by a crash; its attempt is left out"
                " (harness run … --resume asks it anew)"
            )
