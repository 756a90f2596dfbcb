"""The commands `harness` and `kgshell`. Importing this package imports click and nothing heavy."""

from __future__ import annotations

import sys

from harness._guard import check_packages
from harness.cli.errors import report
from harness.cli.pipe import outlive_reader
from harness.cli.root import root
from harness.errors import UserError


def main() -> None:
    """Run the command line; never returns."""
    outlive_reader()
    try:
        check_packages()
    except UserError as error:
        sys.exit(report(error))
    root.main(prog_name="harness")
