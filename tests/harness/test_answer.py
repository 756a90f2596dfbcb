"""From a final message to validated ids."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.answer import parse_answer, validate


@dataclass(frozen=True)
class Graph:
    """100 nodes of which the even ones are candidates."""

    node_count: int = 100

    def is_candidate(self, node_id: int) -> bool:
        return node_id % 2 == 0


@pytest.mark.parametrize(
    ("text", "values", "repairs"),
    [
        ("ANSWER: [4, 2]", [4, 2], ()),
        ("  ANSWER: [4, 2]  \nThat is all.", [4, 2], ()),
        ("I first thought ANSWER: [1]\nANSWER: [1]\nANSWER: [4, 2]", [4, 2], ()),
        ("ANSWER: []", [], ()),
        ("**ANSWER:** [4, 2]", [4, 2], ("answer_line",)),
        ("Answer: `[4, 2]`", [4, 2], ("answer_line",)),
        ("ANSWER: 4, 2", [" 4", "2"], ("answer_line",)),
        ("ANSWER:\n```json\n[4, 2]\n```", [4, 2], ("answer_line",)),
        ("ANSWER:\n[\n 4,\n 2\n]", [4, 2], ("answer_line",)),
        ("ANSWER: [4, 2,]", ["4", "2"], ("answer_line",)),
        ("ANSWER: ['4', '2']", ["4", "2"], ("answer_line",)),
        ("ANSWER: [4 (BRCA1), 2 (TP53)]", ["4 (BRCA1)", "2 (TP53)"], ("answer_line",)),
        ('ANSWER: [{"node_id": 4}, {"node_id": 2}]', [{"node_id": 4}, {"node_id": 2}], ()),
        ("Here they are:\n```json\n[4, 2]\n```\nGood luck", [4, 2], ("fenced",)),
        ("Checked [6]. The best nodes are [4, 2].", [4, 2], ("list_in_text",)),
        ("Ranked:\n1. 4 (BRCA1)\n2. 2: TP53\n", [4, 2], ("list_of_lines",)),
        ("- `4`\n- **2** - a gene", [4, 2], ("list_of_lines",)),
    ],
)
def test_answers_in_every_dress_are_found(text: str, values: list[object], repairs: tuple[str, ...]) -> None:
    parsed = parse_answer(text)
    assert parsed.repairs == repairs
    assert validate(parsed, Graph(), 20, text).ids == validate(type(parsed)(values), Graph(), 20, text).ids
    assert len(parsed.values or []) == len(values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know.",
        "Let me look at 10 genes first.",
        "12 papers match",
        "- 5 genes were found",
        "ANSWER: none",
        "[see above]",
    ],
)
def test_prose_is_no_answer(text: str) -> None:
    assert parse_answer(text).values is None


def test_every_id_is_validated_and_each_rejection_recorded() -> None:
    text = 'ANSWER: [4, 4, 3, 100, -2, "8", 2.0, 2.5, "x", true, null, 6, 10]'
    answer = validate(parse_answer(text), Graph(), 4, text)
    assert answer.ids == (4, 8, 2, 6)
    assert {"text_id", "float_id"} <= set(answer.repairs)
    assert [(entry["value"], entry["why"]) for entry in answer.rejected] == [
        (4, "duplicate"),
        (3, "not_a_candidate"),
        (100, "unknown"),
        (-2, "unknown"),
        ("2.5", "not_an_id"),
        ("x", "not_an_id"),
        (True, "not_an_id"),
        ("None", "not_an_id"),
        (10, "too_many"),
    ]


def test_a_decimal_is_not_cut_down_to_an_id() -> None:
    assert parse_answer("ANSWER: 10.5").values is None


def test_endless_digits_are_no_id() -> None:
    text = f'ANSWER: ["{"9" * 5000}"]'
    assert validate(parse_answer(text), Graph(), 20, text).rejected[0]["why"] == "not_an_id"


@given(st.text())
def test_no_text_crashes_the_parser(text: str) -> None:
    parsed = parse_answer(text)
    answer = validate(parsed, Graph(), 20, text)
    assert len(answer.ids) + len(answer.rejected) == len(parsed.values or [])


@given(st.lists(st.integers(0, 99), max_size=40), st.integers(1, 30))
def test_valid_ids_keep_their_order(ids: list[int], most: int) -> None:
    text = f"ANSWER: {ids}"
    answer = validate(parse_answer(text), Graph(), most, text)
    assert list(answer.ids) == [n for n in dict.fromkeys(ids) if n % 2 == 0][:most]
    assert not answer.repairs
