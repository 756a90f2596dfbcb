"""The commands `harness` and `kgshell`. Importing this package imports nothing heavy."""

from __future__ import annotations

import sys

STOPPED = 130


def main() -> None:
    """Run the command line; never returns."""
    try:
        # Imported here, since this takes a moment in which Ctrl-C may come.
        from harness.cli.start import start  # noqa: PLC0415

        start()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(STOPPED)
