"""Head and tail, long lines, character boundaries."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from harness.observe import decode, shorten

MARK = 60  # characters that a notice of what was left out may take


def test_short_text_is_shown_as_it_is() -> None:
    view = shorten("a\nb\n", 100, 10)
    assert (view.text, view.cut_lines, view.omitted) == ("a\nb\n", 0, 0)


def test_head_and_tail_stay_and_the_gap_is_counted() -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    view = shorten(text, 1_000, 100)
    head, gap, tail = re.split(r"\n\[\.\.\. ([\d,]+) characters left out here \.\.\.\]\n", view.text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(gap.replace(",", "")) == len(text)
    assert text[len(head)] == "\n", "cut between lines"
    assert "line 999" in tail


def test_every_long_record_shows_its_start_and_end() -> None:
    records = "\n".join(f'{{"id": {n}, "text": "{"x" * 100_000}", "last": {n}}}' for n in range(5))
    view = shorten(records, 20_000, 2_000)
    assert view.cut_lines == 5
    assert view.omitted == 0
    for n in range(5):
        assert f'"id": {n},' in view.text
        assert f'"last": {n}}}' in view.text


@given(st.text(), st.integers(20, 400), st.integers(5, 60))
def test_the_cap_holds_and_nothing_is_lost_unsaid(text: str, cap: int, line_cap: int) -> None:
    view = shorten(text, cap, line_cap)
    assert len(view.text) <= cap + MARK + MARK * view.cut_lines
    if not (view.cut_lines or view.omitted):
        assert view.text == text


@given(st.binary())
def test_any_bytes_become_text_that_json_takes(data: bytes) -> None:
    text = decode(data)
    assert "\0" not in text
    text.encode("utf-8")
