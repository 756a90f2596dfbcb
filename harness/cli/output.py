"""Printing: tables and JSON to stdout, notices to stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.cells import cell_len

from harness.text import line


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> str:
    """Columns two blanks apart, as wide as they need. `right` has an `r` at each column set flush right."""
    cells = [[line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        parts = []
        for i, cell in enumerate(row):
            blanks = " " * (widths[i] - cell_len(cell))
            parts.append(blanks + cell if right[i : i + 1] == "r" else cell + blanks)
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def print_json(value: Any) -> None:
    """One JSON document to stdout, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def notice(text: str) -> None:
    """A line to stderr."""
    click.echo(line(text), err=True)
