"""What commands on saved runs say of what they leave out: a ledger's torn line, damaged lines of trajectories."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from harness.cli.output import notice
from harness.ledger import is_torn
from harness.text import count_of

_PLACES = 3


def tell_torn(runs: Iterable[Path]) -> None:
    """Say which runs have an attempt that is left out because its line in the ledger is torn."""
    for run in runs:
        if is_torn(run):
            notice(
                f"{run}: the last line of the ledger is torn, as by a crash; its attempt is left out"
                " (harness run … --resume asks it anew)"
            )


def tell_damaged(run: Path, count: int, places: Iterable[str]) -> None:
    """Say how many lines of a run's trajectories can't be read; `places` are the first of them, as FILE:LINE."""
    if count:
        notice(
            f"{run}: {count_of(count, 'line')} of trajectories can't be read and {'is' if count == 1 else 'are'} left"
            f" out: {', '.join(islice(places, _PLACES))}{' …' if count > _PLACES else ''}"
        )
