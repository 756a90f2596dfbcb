"""No message says `1 edges`: a number that is not known beforehand stands before a noun only by the helper for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.counted import counted
from harness.text import count_of, size

ROOT = Path(__file__).parents[1]
NOUNS = (
    "answer id|attempt|byte|call|cell|character|check|command|difference|edge|element|fault|file|layer|leftover|line|"
    "message|node|probe|processor|program|question|record|request|result|row|session|setting|token|turn"
)
PLURAL = re.compile(rf"^ (?:(?:old|more|other|earlier|input|output) )?(?:{NOUNS})s\b")
AT_LEAST_TWO = {  # numbers that can't be one where they are said
    ("harness/cli/show.py", "many"),
    ("harness/tools/listing.py", "total"),
    ("exporter/edge_files.py", "relation.rows"),
    ("exporter/sources/networkx.py", "len(self._ids)"),
    ("exporter/torch_file.py", "self._structure.file_size"),
    ("sandbox/client.py", "len(data)"),
    ("sandbox/client.py", "len(name)"),
}


def counts(source: str) -> Iterator[str]:
    """Every expression of an f-string behind which a noun stands in the plural, but constants."""
    for node in ast.walk(ast.parse(source)):
        for value, text in zip(node.values, node.values[1:], strict=False) if isinstance(node, ast.JoinedStr) else ():
            if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant) and PLURAL.match(text.value):
                told = ast.unparse(value.value)
                if not re.sub(r"\[.*", "", told).strip("_").isupper() and "iinfo" not in told:
                    yield told


@pytest.mark.parametrize("package", ["harness", "exporter", "sandbox", "prompts"])
def test_no_count_stands_before_a_plural(package: str) -> None:
    found = {
        (str(path.relative_to(ROOT)), told)
        for path in (ROOT / package).rglob("*.py")
        for told in counts(path.read_text("utf-8"))
    }
    assert found <= AT_LEAST_TWO


def test_the_search_finds_what_it_is_for() -> None:
    source = 'f"{n} lines, {len(x):,} earlier attempts, {_MOST} nodes, {a} of {b} questions, {line} needs"'
    assert list(counts(source)) == ["n", "len(x)", "b"]


@pytest.mark.parametrize("number", [0, 1, 2, 21, 1000])
def test_counts_in_words(number: int) -> None:
    plural = "edge" if number == 1 else "edges"
    assert counted(number, "edge") == f"{number} {plural}"
    assert count_of(number, "edge") == f"{number:,} {plural}"
    assert count_of(None, "edge") == "- edges"


@pytest.mark.parametrize("exponent", range(41))
def test_a_size_never_has_more_than_four_digits_before_its_unit(exponent: int) -> None:
    for nearly in (0.97, 0.9765, 0.98, 0.9999, 1, 1.0001):
        shown, unit = size(2**exponent * nearly).split()
        assert len(shown.partition(".")[0].replace(",", "")) <= (3 if unit in ("KiB", "MiB") else 4)
        factor = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
        assert float(shown.replace(",", "")) * factor == pytest.approx(2**exponent * nearly, rel=0.06, abs=0.5)
