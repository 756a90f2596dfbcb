"""Node ids found in text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.numbers import find_ids


def found(text: str, below: int = 100_000) -> list[int]:
    return find_ids(text.encode(), below)[1].tolist()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('{"node_id":15,"name":"x"}', [15]),
        ("15\t20\n7\t0", [15, 20, 7, 0]),
        ("[15, 20], (3); {4}.", [15, 20, 3, 4]),
        ("edges/03.tsv:15\t20", [15, 20]),
        ("nodes/0001.jsonl:12:15", [12, 15]),
        ("NCBIGene:15 GO:0000012 HK2 gene_15 15th v1.5 2015-03-02 -15 50% 1.25", []),
        ("99999 100000 123456789012345678901234567890", [99999]),
        ("é15 15é", []),
        ("id=15 #16 [17]", [15, 16, 17]),
        ("", []),
    ],
)
def test_what_is_an_id(text: str, ids: list[int]) -> None:
    assert found(text) == ids


@given(st.text(alphabet="0123456789 \t,a.:-é[", max_size=60))
def test_offsets_point_at_the_digits(text: str) -> None:
    data = text.encode()
    positions, values = find_ids(data, 5_000)
    for position, value in zip(positions.tolist(), values.tolist(), strict=True):
        match = re.match(rb"\d+", data[position:])
        assert match is not None
        assert int(match[0]) == value < 5_000
        assert not data[:position][-1:].isdigit()


@given(st.lists(st.integers(0, 4_999)))
def test_every_id_in_a_list_is_found(ids: list[int]) -> None:
    assert found(str(ids), 5_000) == ids
    assert found("\n".join(map(str, ids)), 5_000) == ids
