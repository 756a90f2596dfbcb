"""Fusion of several agents' lists: hand-worked cases, properties, and a second implementation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.fuse import FUSIONS, FusedAnswer, Fusion, answer_of, fuse
from harness.ledger import AgentState, AttemptRecord, StopReason

LISTS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)
SEEDED = [method for method in FUSIONS if method != "random"]

# Three agents:   first            second           third
HAND: Sequence[Sequence[int]] = ((10, 20, 30), (20, 40, 10), (50, 30))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # Votes: 10, 20, 30 have two each, at best places 0, 0, 1; 40 and 50 one each, at 1 and 0. The tie of 10 and 20
        # at place 0 goes to the agent that comes first.
        ("vote", (10, 20, 30, 50, 40)),
        # One behind the other: 10 20 30 20 40 10 50 30.
        ("vote-agent-major", (10, 20, 30, 40, 50)),
        ("order", (10, 20, 30, 40, 50)),
        # 10: 1/61 + 1/63 = .03227; 20: 1/62 + 1/61 = .03252; 30: 1/63 + 1/62 = .03200; 50: 1/61; 40: 1/62.
        ("rrf", (20, 10, 30, 50, 40)),
    ],
)
def test_hand_worked(method: Fusion, expected: tuple[int, ...]) -> None:
    assert fuse(HAND, method, 20) == expected
    assert fuse(HAND, method, 2) == expected[:2]


def test_the_papers_tie_break_and_the_codes_differ() -> None:
    # 1 and 2 have two votes each; 2 stands first in the third agent's list, 1 comes earlier one behind the other.
    lists = [(9, 1), (8, 7, 2, 1), (2,)]
    assert fuse(lists, "vote", 2) == (2, 1)
    assert fuse(lists, "vote-agent-major", 2) == (1, 2)


def test_random_depends_on_its_seed_alone() -> None:
    lists = [list(range(30)), list(range(30, 60))]
    assert fuse(lists, "random", 60, "a") == fuse(lists[::-1], "random", 60, "a")
    assert fuse(lists, "random", 60, "a") != fuse(lists, "random", 60, "b")


@given(LISTS, st.sampled_from(FUSIONS), st.integers(0, 20))
def test_the_fused_list_holds_what_the_agents_named_each_once(lists: list[list[int]], method: Fusion, k: int) -> None:
    whole = fuse(lists, method, 1000, "s")
    assert sorted(whole) == sorted({node for ids in lists for node in ids})
    assert fuse(lists, method, k, "s") == whole[:k]


@given(st.lists(st.integers(0, 30)), st.sampled_from(FUSIONS))
def test_one_agents_list_stays_as_it_is(ids: list[int], method: Fusion) -> None:
    assert fuse([ids], method, 1000) == tuple(dict.fromkeys(ids))


@given(st.lists(st.integers(0, 30)), st.integers(2, 4), st.sampled_from(SEEDED))
def test_agents_that_agree_are_one(ids: list[int], agents: int, method: Fusion) -> None:
    assert fuse([ids] * agents, method, 1000) == tuple(dict.fromkeys(ids))


@given(LISTS)
def test_a_second_implementation_agrees(lists: list[list[int]]) -> None:
    joined = [node for ids in lists for node in dict.fromkeys(ids)]
    nodes = list(dict.fromkeys(joined))
    by_code = sorted(nodes, key=lambda node: (-joined.count(node), joined.index(node)))
    assert list(fuse(lists, "vote-agent-major", 99)) == by_code
    assert list(fuse(lists, "order", 99)) == nodes
    columns = [[ids[rank] if rank < len(ids) else None for ids in map(lambda x: list(dict.fromkeys(x)), lists)]
               for rank in range(20)]  # fmt: skip
    by_place = [node for column in columns for node in column if node is not None]
    by_paper = sorted(nodes, key=lambda node: (-joined.count(node), by_place.index(node)))
    assert list(fuse(lists, "vote", 99)) == by_paper


@given(st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=2, max_size=4))
def test_votes_come_before_everything_and_reciprocal_ranks_do_not_depend_on_who_is_who(lists: list[list[int]]) -> None:
    votes = {node: sum(node in ids for ids in lists) for ids in lists for node in ids}
    for method in ("vote", "vote-agent-major"):
        counts = [votes[node] for node in fuse(lists, method, 99)]
        assert counts == sorted(counts, reverse=True)
    places = {node: sorted(list(dict.fromkeys(ids)).index(node) for ids in lists if node in ids) for node in votes}
    scores = {node: sum(1 / (61 + rank) for rank in ranks) for node, ranks in places.items()}
    for order in permutations(lists):
        fused = [(scores[node], -places[node][0]) for node in fuse(order, "rrf", 99)]
        assert fused == sorted(fused, reverse=True)


def state(agent: int, *attempts: tuple[StopReason, tuple[int, ...]]) -> AgentState:
    records = (AttemptRecord("q", agent, number, stop, ids) for number, (stop, ids) in enumerate(attempts))
    return AgentState("q", agent, tuple(records))


def test_a_question_is_open_until_every_agent_was_asked() -> None:
    assert answer_of([], "vote", 0, 20) == FusedAnswer("open")
    assert answer_of([state(0, ("answered", (1,))), state(1)], "vote", 0, 20) == FusedAnswer("open")


def test_infrastructure_failures_of_some_agents_leave_the_others_answer() -> None:
    states = [
        state(0, ("backbone_error", ()), ("answered", (5, 6))),
        state(1, ("interrupted", ()), ("turn_limit", (6,))),
        state(2, ("sandbox_lost", ())),
    ]
    assert answer_of(states, "vote", 0, 20) == FusedAnswer("scored", (6, 5), (6,), attempts=4, failed_agents=1)
    assert answer_of(states[2:], "vote", 0, 20) == FusedAnswer("failed", (), (), attempts=1, failed_agents=1)


def test_what_an_infrastructure_failure_selected_is_no_answer() -> None:
    states = [state(0, ("backbone_error", (1, 2))), state(1, ("answered", (3,)))]
    assert answer_of(states, "order", 0, 20).ids == (3,)


def test_the_shuffle_differs_between_questions_and_seeds() -> None:
    ids = tuple(range(20))

    def shuffled(query: str, seed: int) -> tuple[int, ...]:
        records = (AttemptRecord(query, agent, 0, "answered", ids) for agent in range(2))
        states = [AgentState(query, record.agent, (record,)) for record in records]
        return answer_of(states, "random", seed, 20).ids

    assert shuffled("a", 0) == shuffled("a", 0)
    assert len({shuffled("a", 0), shuffled("b", 0), shuffled("a", 1)}) == 3
