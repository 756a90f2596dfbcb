"""Text for people: nothing in it drives the terminal, it fits, and figures read well."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.cli.tables import table
from harness.text import beginning, count_of, duration, line, money, number, once, plain, shorten, size

anything = st.text(st.characters(codec=None))


@given(anything)
def test_no_control_character_is_left(text: str) -> None:
    for char in plain(text):
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    plain(text).encode("utf-8")


@given(anything, st.integers(1, 80))
def test_shortened_text_is_one_line_that_fits(text: str, width: int) -> None:
    short = shorten(text, width)
    assert "\n" not in short
    assert cell_len(short) <= width
    if cell_len(line(text)) <= width:
        assert short == line(text)


@given(anything, st.integers(0, 80))
def test_a_beginning_is_as_it_was(text: str, most: int) -> None:
    start = beginning(text, most)
    assert start == text if len(text) <= most else start == text[:most] + "…"


def test_wide_characters_count_twice() -> None:
    assert shorten("基因" * 10, 9) == "基因基因…"


def test_columns_line_up() -> None:
    text = table(("name", "n"), [("a", "1"), ("基因", "10"), ("x\x1b[0m\ny", "100")], " r")
    assert text.split("\n") == ["name          n", "a             1", "基因         10", "x\\x1b[0m y  100"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (size(0), "0 B"), (size(1023), "1023 B"), (size(1536), "1.5 KiB"), (size(1003 * 1024), "1.0 MiB"),
        (size(5 * 2**30), "5.0 GiB"),
        (duration(None), "-"), (duration(4.25), "4.2 s"), (duration(61), "1:01"), (duration(3661.9), "1:01:01"),
        (money(None), "-"), (money(0.01234), "$0.0123"), (money(1234.5), "$1,234.50"),
        (number(None), "-"), (number(1234567), "1,234,567"),
        (count_of(1, "turn"), "1 turn"), (count_of(1200, "turn"), "1,200 turns"),
    ],
)  # fmt: skip
def test_figures(shown: str, expected: str) -> None:
    assert shown == expected


def test_stages_of_an_index_are_told_once_each() -> None:
    told: list[str] = []
    progress = once(told.append)
    for stage in ("text index", "text index", "waiting for another process that makes /x", "text index"):
        progress(stage, 1, 2)
    assert told == [
        "preparing the graph, once: text index",
        "preparing the graph, once: waiting for another process that makes /x",
    ]
