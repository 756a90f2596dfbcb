"""Tables fit the terminal, whatever is in them; a file or a pipe gets them as wide as they need."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from exporter import Export
from harness.cli.tables import fitted
from tests.support.cli import HARNESS_ENV, run_cli
from tests.support.runs import QUESTIONS, attempt, make_run, write_trajectory

PROGRAM = "from harness.cli import main; main()"
WORD = st.text("abc/基", min_size=1, max_size=30)
CELL = st.lists(WORD, max_size=4).map(" ".join)
FIGURE = st.integers(0, 10**6).map(str)
Drawn = tuple[list[str], list[list[str]], str]


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """A header, rows and the form of a table."""
    form = draw(st.text(" rls", min_size=1, max_size=8))
    header = [f"{draw(WORD)} {number}" for number in range(len(form))]
    rows = [[draw(FIGURE if letter == "r" else CELL) for letter in form] for _ in range(draw(st.integers(0, 4)))]
    return header, rows, form


@given(drawn(), st.integers(40, 120), st.integers(0, 2))
def test_every_line_fits(drawn: Drawn, width: int, first: int) -> None:
    header, rows, form = drawn
    text = fitted(header, rows, form, width, first=first)
    assert max(map(cell_len, text.split("\n"))) <= width
    assert fitted(header, rows, form, 10**6) == fitted(header, rows, form, None)


@given(drawn(), st.integers(40, 120))
def test_nothing_is_lost_where_nothing_is_to_be_shortened(drawn: Drawn, width: int) -> None:
    header, rows, form = drawn
    text = fitted(header, rows, form.replace("s", " "), width, first=0)
    whole = "".join(cell for row in (header, *rows) for cell in row)
    assert sorted(re.sub(r"\s", "", text)) == sorted(re.sub(r"\s", "", whole))


def test_a_table_that_is_too_wide_becomes_several_of_about_one_width() -> None:
    header = ("run", *(f"figure {number}" for number in range(9)))
    rows = [("first", *["100.0 [90.0, 100.0]"] * 9), ("second", *["1"] * 9)]
    blocks = fitted(header, rows, " " + "r" * 9, 80).split("\n\n")
    assert [block.split("\n")[0].split()[0] for block in blocks] == ["run"] * 3
    assert [block.count("figure") for block in blocks] == [3, 3, 3]
    assert all(re.match(r"first +100\.0 \[90\.0, 100\.0\]  ", block.split("\n")[1]) for block in blocks)


def test_text_wraps_between_words_and_behind_slashes() -> None:
    text = fitted(("name", "where"), [("one", "the folder /home/someone/graphs/exports/mine is away")], "", 40)
    assert text.split("\n") == [
        "name  where",
        "one   the folder /home/someone/graphs/",
        "      exports/mine is away",
    ]


def test_columns_that_can_be_spared_are_left_out_in_order_and_said() -> None:
    header, row = ("id", "text", "seconds", "cost"), ("q1", "which of them? " * 6, "1.5 s", "$0.10")
    wide = fitted(header, [row], " srr", 50, optional=("seconds", "cost"))
    assert wide.split("\n")[0].split() == ["id", "text", "seconds", "cost"]
    long = fitted(header, [(*row[:2], "9" * 20, "8" * 14)], " srr", 50, optional=("seconds", "cost"))
    head, told, note = long.split("\n")
    assert head.split() == ["id", "text", "cost"]
    assert "…" in told
    assert note == "(not shown at this width: seconds)"


@pytest.fixture
def runs(tmp_path: Path, export: Export) -> Path:
    """A folder of two runs in two modes, with failures, retries and long names of models."""
    parent = tmp_path / "a folder of runs"
    for name, right in (("first-of-them", 2), ("the-second-of-them", 0)):
        records = [
            attempt(f"q{number + 1}", ids=[right * (number + 1), 30, 32], cost=1234.5678, turns=3 + number)
            for number in range(len(QUESTIONS))
        ]
        records.append(attempt("q3", "sandbox_lost", error="gone", attempt=1))
        write_trajectory(make_run(parent / name, export, records).path)
    return parent


def on_terminal(width: int, words: Sequence[str], **env: str) -> list[str]:
    """What a command prints to a terminal of so many columns, notices on stderr too."""
    bare = {key: value for key, value in HARNESS_ENV.items() if key not in ("COLUMNS", "LESS")}
    child = pexpect.spawn(
        sys.executable, ["-c", PROGRAM, *words], env={**bare, "PAGER": "cat", "TERM": "dumb", **env}, encoding="utf-8",
        dimensions=(500, width), timeout=120,
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return [line for text in str(child.before).split("\r\n") for line in text.split("\r")]


def of_tables(lines: Sequence[str]) -> list[str]:
    """The lines with columns: prose has no two blanks in a row."""
    return [line for line in lines if "  " in line.strip()]


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "words",
    [
        ("score", "FIRST"), ("score", "PARENT"), ("show", "FIRST"), ("compare", "FIRST", "SECOND", "--wins"),
        ("report", "PARENT"), ("audit", "FIRST"), ("graphs",), ("models",), ("modes",),
        ("run", "--graph", "EXPORT", "--mode", "files,closed-book-names", "--out", "runs", "--dry-run"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_tables_of_every_command_fit_and_a_pipe_gets_them_whole(
    runs: Path, export: Export, tmp_path: Path, words: tuple[str, ...], width: int
) -> None:
    names = {
        "FIRST": runs / "first-of-them", "SECOND": runs / "the-second-of-them", "PARENT": runs, "EXPORT": export.path,
    }  # fmt: skip
    command = [str(names.get(word, word)) for word in words]
    env = {"HARNESS_DATA": str(tmp_path / "data"), "OPENAI_API_KEY": "sk-0"}
    piped = of_tables(run_cli(*command, env=env).stdout.splitlines())
    assert any(cell_len(line) > width for line in piped)
    shown = of_tables(on_terminal(width, command, **env))
    assert shown
    assert all(cell_len(line) <= width for line in shown)
    assert set(piped) <= set(on_terminal(400, command, **env))
