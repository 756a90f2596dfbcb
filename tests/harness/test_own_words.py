"""Which parts of a result the harness says, and which a command printed to look the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cut import shorten
from harness.modes import Output
from harness.own_words import own_words

CAP = 100


def event(text: str, *, name: str = "bash", code: int | None = 0, ended: str = "exit", **more: Any) -> dict[str, Any]:
    ran = {"exit_code": code, "termination": ended} if name == "bash" else None
    return {"name": name, "text": text, "error": None, "exec": ran, "cut": None, **more}


def cut(characters: int = 0, lines: int = 0) -> dict[str, Any]:
    return {"characters": characters, "lines": lines, "spill": None, "spilled_bytes": 0}


def said(event: dict[str, Any]) -> list[str]:
    return [event["text"][begin:end] for begin, end in own_words(event, CAP)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (event("[exit code 0]\n[exit code 0]\n[exit code 1]"), ["[exit code 0]"]),
        (event("[exit code 0] no output"), ["[exit code 0] no output"]),
        (event("[exit code 0] no output\nx"), []),
        (event("[exit code 1]\nx"), []),  # an imported session's output, which has no such line
        (event("[ended by the time limit of 5 s]\n[ended]", code=None, ended="timeout"),
         ["[ended by the time limit of 5 s]"]),
        (event("[exit code 0]\nx\n[cut: 9 bytes, 1 lines in all]"), ["[exit code 0]"]),
        (event("[exit code 0]\n[cut: 1]\nx\n[cut: 9 bytes]", cut=cut(characters=5)),
         ["[exit code 0]", "[cut: 9 bytes]"]),
        (event("[bytes 0-4 of 9]\n[bytes 1-2 of 3]\n[5 bytes more: read on with offset 4]", name="read"),
         ["[bytes 0-4 of 9]", "[5 bytes more: read on with offset 4]"]),
        (event("[bytes 0-4 of 5]\n1234\n[1 byte more: read on with offset 4]", name="read"),
         ["[bytes 0-4 of 5]", "[1 byte more: read on with offset 4]"]),
        (event("[bytes 0-4 of 5]\n1234\n[1 bytes more: read on with offset 4]", name="read"),  # of older runs
         ["[bytes 0-4 of 5]", "[1 bytes more: read on with offset 4]"]),
        (event("[bytes 0-4 of 4]\n[5 bytes more: read on with offset 4]", name="read"), ["[bytes 0-4 of 4]"]),
        (event('{"node_id":1}\n[characters 0-13 of 90; go on with offset 13]', name="get_node", cut=cut(77)),
         ["[characters 0-13 of 90; go on with offset 13]"]),
        (event("[error: there is no tool 'x']", name="x", error="unknown_tool"), ["[error: there is no tool 'x']"]),
    ],
)  # fmt: skip
def test_lines_at_either_end(given: dict[str, Any], expected: list[str]) -> None:
    assert said(given) == expected


def test_what_was_left_out_of_the_middle() -> None:
    real = "[... 4,321 characters left out here ...]"
    text = f"[exit code 0]\na\n{real}\nb\n[cut: 9,999 bytes, 3 lines in all; it is in outputs/001.txt]"
    assert real in said(event(text, cut=cut(4321)))
    imitated = text.replace("\na\n", "\n[... 12 characters left out here ...]\n")
    assert [each for each in said(event(imitated, cut=cut(4321))) if "left out" in each] == [real]
    twice = text.replace("\na\n", f"\n{real}\n")
    assert [each for each in said(event(twice, cut=cut(4321))) if "left out" in each] == []


@given(st.lists(st.integers(0, 3 * CAP), min_size=1, max_size=6), st.integers(0, 2 * CAP))
def test_shortened_lines_are_told_from_lines_that_look_so(lengths: list[int], fake: int) -> None:
    marker = "[... 17 characters of this line left out ...]"
    lines = ["x" * length for length in lengths] + [f"{'y' * fake}{marker}{'z' * 20}"]
    view = shorten("\n".join(lines), Output(line_cap=CAP, cap=1_000_000))
    given_ = event(f"[exit code 0]\n{view.text}\n[cut: 1 bytes]", cut=cut(lines=view.cut_lines))
    found = [each for each in said(given_) if "of this line" in each] if view.cut_lines else []
    assert len(found) == view.cut_lines
