"""Head and tail, long lines, character boundaries."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.cut import shorten
from harness.modes import Output
from harness.observe import decode

MARK = 60  # characters that a notice of what was left out may take


def test_short_text_is_shown_as_it_is() -> None:
    view = shorten("a\nb\n", Output(cap=100, line_cap=10))
    assert (view.text, view.cut_lines, view.omitted) == ("a\nb\n", 0, 0)


def test_head_and_tail_stay_and_the_gap_is_counted() -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    view = shorten(text, Output(cap=1_000, line_cap=100))
    head, gap, tail = re.split(r"\n\[\.\.\. ([\d,]+) characters left out here \.\.\.\]\n", view.text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(gap.replace(",", "")) == len(text)
    assert text[len(head)] == "\n", "cut between lines"
    assert "line 999" in tail


def test_every_long_record_shows_its_start_and_end() -> None:
    records = "\n".join(f'{{"id": {n}, "text": "{"x" * 100_000}", "last": {n}}}' for n in range(5))
    view = shorten(records, Output())
    assert view.cut_lines == 5
    assert view.omitted == 0
    for n in range(5):
        assert f'"id": {n},' in view.text
        assert f'"last": {n}}}' in view.text


OUTPUTS = st.builds(
    Output,
    cap=st.integers(100, 400),
    unit=st.sampled_from(["characters", "bytes"]),
    keep=st.sampled_from(["ends", "tail"]),
    lines=st.none() | st.integers(2, 12),
    line_cap=st.none() | st.integers(10, 60),
)
TEXTS = st.text() | st.text("ab\né€😀", min_size=30, max_size=600)


@given(TEXTS, OUTPUTS)
def test_the_cap_holds_and_nothing_is_lost_unsaid(text: str, output: Output) -> None:
    view = shorten(text, output)
    shown = len(view.text) if output.unit == "characters" else len(view.text.encode("utf-8", "replace"))
    assert shown <= output.cap + MARK + MARK * view.cut_lines
    if output.lines is not None:
        assert len(view.text.split("\n")) <= output.lines + 4  # the gap, an empty end
    if not (view.cut_lines or view.omitted):
        assert view.text == text


@given(TEXTS, OUTPUTS)
def test_what_stays_is_the_texts_own_and_the_gap_is_counted(text: str, output: Output) -> None:
    view = shorten(text, replace(output, line_cap=None))
    if not view.omitted:
        return
    head, gap, tail = re.split(r"(?:^|\n)\[\.\.\. ([\d,]+) characters? left out (?:here|above) \.\.\.\]\n", view.text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(gap.replace(",", "")) == len(text)
    assert int(gap.replace(",", "")) == view.omitted
    if output.keep == "tail":
        assert head == ""


@given(st.binary())
def test_any_bytes_become_text_that_json_takes(data: bytes) -> None:
    text = decode(data)
    assert "\0" not in text
    text.encode("utf-8")
