"""Printing: JSON to stdout, notices to stderr."""

from __future__ import annotations

import json
from typing import Any

import click

from harness.text import line


def print_json(value: Any) -> None:
    """One JSON document to stdout, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def notice(text: str) -> None:
    """A line to stderr."""
    click.echo(line(text), err=True)
