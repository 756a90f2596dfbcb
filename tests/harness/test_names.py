"""Answers given as names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.answer import Parsed, validate
from harness.names import Names, normalise, resolve


class Graph:
    """Nodes with these names; those that start with "not" are no candidates."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.node_count = len(names)

    def nodes(self) -> Iterator[dict[str, Any]]:
        return (self.node(number) for number in range(self.node_count))

    def node(self, node_id: int) -> dict[str, Any]:
        return {"node_id": node_id, "name": self.names[node_id]}

    def is_candidate(self, node_id: int) -> bool:
        return not self.names[node_id].startswith("not")


GRAPH = Graph("TP53", "tp53", "Café  (old-town)", "5-HT receptor", "twin", "twin", "not one", "5")


@pytest.mark.parametrize(
    ("given", "ids", "repairs"),
    [
        (["TP53"], (0,), ()),
        (["tp53"], (1,), ()),
        (["Tp53"], (0,), ("normalised_name", "ambiguous_name")),
        (["cafe old town"], (2,), ("normalised_name",)),
        (["twin"], (4,), ("ambiguous_name",)),
        (["5-HT receptor", "5"], (3, 7), ()),
    ],
)
def test_exact_first_then_normalised(given: list[str], ids: tuple[int, ...], repairs: tuple[str, ...]) -> None:
    answer = validate(resolve(Parsed(given), Names(GRAPH)), GRAPH, 20, "")
    assert answer.ids == ids
    assert answer.repairs == repairs


def test_a_node_that_is_no_candidate_takes_no_name_away() -> None:
    """As of a field of study and a paper on it."""
    graph = Graph("not Gene Therapy", "NOT gene therapy", "not two", "x")
    assert Names(graph).find("not Gene Therapy") == ([1], True)
    assert Names(graph).find("not two") == ([], True)
    assert Names(Graph("not one")).find("not one") == ([], True)


def test_a_name_that_no_candidate_has_is_rejected_and_never_read_as_an_id() -> None:
    answer = validate(resolve(Parsed(["not one", "3 receptors", 3, ""]), Names(GRAPH)), GRAPH, 20, "")
    assert answer.ids == ()
    assert answer.rejected == tuple(
        {"value": value, "why": "unknown_name"} for value in ("not one", "3 receptors", "3", "")
    )


def test_no_answer_stays_none() -> None:
    assert resolve(Parsed(None), Names(GRAPH)).values is None


@given(st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True))
def test_every_name_finds_its_own_node(names: list[str]) -> None:
    graph = Graph(*[f"x{name}" for name in names])
    index = Names(graph)
    for number, name in enumerate(graph.names):
        assert index.find(name) == ([number], False)


@given(st.text())
def test_normalising_twice_changes_nothing(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name)
