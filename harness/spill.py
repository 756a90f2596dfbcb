"""Whole outputs as files in the sandbox: outputs/001.txt, outputs/002.txt, …, one numbering for the attempt.

The sandbox itself spills outputs that are larger than a call's cap and picks the next free number; this module
spills what the harness cuts or clears later, and keeps clear of the sandbox's numbers.
"""

from __future__ import annotations

import re

from sandbox import OUTPUTS, Sandbox, SandboxFileError

_NAME = re.compile(rf"{OUTPUTS}/(\d+)\.txt")
_TRIES = 20  # numbers to try where the agent has put something in the way


class Spills:
    """The outputs folder of one attempt's sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._last = 0

    def seen(self, path: str | None) -> None:
        """Take note of a file that the sandbox has spilled by itself."""
        match = _NAME.fullmatch(path or "")
        if match:
            self._last = max(self._last, int(match[1]))

    def save(self, data: bytes) -> str | None:
        """Write `data` to the next number and return its path, or None where the scratch directory has no room.

        Raises SandboxLost.
        """
        for _ in range(_TRIES):
            self._last += 1
            path = f"{OUTPUTS}/{self._last:03d}.txt"
            try:
                self._sandbox.write(path, data)
            except SandboxFileError:
                continue
            return path
        return None
