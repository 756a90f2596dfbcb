"""What comes before a command: the check of the packages beside this one, and a standard output that may close."""

from __future__ import annotations

import sys
from typing import NoReturn

from harness._guard import check_packages
from harness.cli.errors import report
from harness.cli.pipe import outlive_reader
from harness.cli.root import root
from harness.errors import UserError


def start() -> NoReturn:
    """Run the command line."""
    outlive_reader()
    try:
        check_packages()
    except UserError as error:
        sys.exit(report(error))
    root.main(prog_name="harness")
