"""The one Python program that a mode's shell can run: every time that it is asked for becomes an event."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from harness.accounting import Account
from harness.text import beginning
from harness.trajectory import TrajectoryWriter
from sandbox import ProgramRun

_MOST_REFUSED = 100  # events of one attempt: a loop can ask thousands of times a second
_MOST_CHARACTERS = 2_000  # of all arguments together; a program's whole text is kept as a blob


class ProgramLog:
    """Writes down the programs of one attempt. Called from the sandbox's threads."""

    def __init__(self, log: TrajectoryWriter, account: Account) -> None:
        self._log, self._account = log, account
        self._lock = threading.Lock()
        self._counts = {"programs": 0, "refused_programs": 0}

    def __call__(self, run: ProgramRun) -> None:
        with self._lock:
            self._counts["refused_programs" if run.refused else "programs"] += 1
            if self._counts["refused_programs"] > _MOST_REFUSED:
                return
        self._log.write(
            "program_run",
            turn=self._account.turn,
            arguments=_shortened(run.arguments),
            cwd=run.cwd,
            refused=run.refused,
            blob=None if run.code is None else self._log.blob(run.code),
            exit_code=run.exit_code,
            termination=run.termination,
            wall=run.wall,
            cpu=run.cpu,
            memory=run.memory,
        )

    def counts(self) -> dict[str, int]:
        """How many were run and refused, for the attempt's record; what there was none of is left out."""
        return {name: count for name, count in self._counts.items() if count}


def _shortened(arguments: Sequence[str]) -> list[str]:
    shown: list[str] = []
    left = _MOST_CHARACTERS
    for argument in arguments:
        if left <= 0:
            return [*shown, "…"]
        shown.append(beginning(argument, left))
        left -= len(argument) + 1
    return shown
