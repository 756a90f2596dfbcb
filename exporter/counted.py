"""Counts in messages and in the files' description."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 edge`, `2 edges`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
