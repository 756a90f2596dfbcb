"""One ranked list out of several agents' lists, and what became of a question that several agents were asked.

All methods are functions of the lists alone, but for `random`, which takes a seed. A node counts once in each list,
at its first place.

- `vote`: most votes first; ties by the earliest place in any agent's list (ARK's paper), then by agent
- `vote-agent-major`: most votes first; ties by the first place in the agents' lists one behind the other (ARK's code)
- `order`: the agents' lists one behind the other, votes ignored
- `random`: every node that any agent named, shuffled
- `rrf`: reciprocal rank fusion (Cormack et al. 2009), the sum of 1 / (60 + rank); ties as in `vote`
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from harness.ledger import AgentState, AttemptRecord

Fusion = Literal["vote", "vote-agent-major", "order", "random", "rrf"]
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
_RRF = 60

State = Literal["scored", "failed", "open"]


@dataclass(frozen=True)
class FusedAnswer:
    """What became of a question. `ids` is the answer of all its agents together, `first` that of their first attempts.

    `open`: an agent has not been asked yet. `failed`: every agent's last attempt failed for infrastructure reasons;
    where only some did, the others' answers are fused, and `failed_agents` counts those that are missing.
    `attempts` leaves out those that a crash or Ctrl-C cut short.
    """

    state: State
    ids: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    attempts: int = 0
    failed_agents: int = 0


@dataclass(frozen=True)
class _Place:
    """Where a node stands: by how many agents named, its best rank (from 0) and the agent of that rank."""

    votes: int
    rank: int
    agent: int
    position: int  # in all lists one behind the other
    reciprocal: float


def fuse(lists: Sequence[Sequence[int]], method: Fusion, k: int, seed: str = "") -> tuple[int, ...]:
    """The `k` best of the agents' ranked lists. A single list stays as it is, whatever the method."""
    distinct = [list(dict.fromkeys(ids)) for ids in lists]
    if len(distinct) == 1:
        return tuple(distinct[0][:k])
    return tuple(_METHODS[method](_places(distinct), seed)[:k])


def answer_of(states: Sequence[AgentState], method: Fusion, seed: int, k: int) -> FusedAnswer:
    """The answer to one question from the states of all its agents, in their order (an agent not asked is empty)."""
    if not states or any(state.last is None for state in states):
        return FusedAnswer("open")
    failed = sum(state.last is None or state.last.is_infrastructure for state in states)
    shuffle = f"{seed}:{states[0].query_id}"
    return FusedAnswer(
        state="failed" if failed == len(states) else "scored",
        ids=fuse([usable_ids(state.last) for state in states], method, k, shuffle),
        first=fuse([usable_ids(state.first) for state in states], method, k, shuffle),
        attempts=sum(record.stop_reason != "interrupted" for state in states for record in state.records),
        failed_agents=failed,
    )


def usable_ids(record: AttemptRecord | None) -> tuple[int, ...]:
    """The answer of one attempt; none of an attempt that failed for infrastructure reasons, whatever it selected."""
    return () if record is None or record.is_infrastructure else record.ids


def _places(lists: Sequence[Sequence[int]]) -> dict[int, _Place]:
    """Every node that an agent named, in the order of all lists one behind the other."""
    seen: dict[int, list[tuple[int, int]]] = {}
    for agent, ids in enumerate(lists):
        for rank, node in enumerate(ids):
            seen.setdefault(node, []).append((rank, agent))
    return {
        node: _Place(len(found), *min(found), position, sum(1 / (_RRF + rank + 1) for rank, _ in sorted(found)))
        for position, (node, found) in enumerate(seen.items())
    }


def _by(key: Callable[[_Place], tuple[float, ...]]) -> Callable[[dict[int, _Place], str], list[int]]:
    return lambda places, _: sorted(places, key=lambda node: key(places[node]))


def _shuffled(places: dict[int, _Place], seed: str) -> list[int]:
    nodes = sorted(places)
    random.Random(seed).shuffle(nodes)  # noqa: S311 - not for secrets
    return nodes


_METHODS: dict[Fusion, Callable[[dict[int, _Place], str], list[int]]] = {
    "vote": _by(lambda place: (-place.votes, place.rank, place.agent)),
    "vote-agent-major": _by(lambda place: (-place.votes, place.position)),
    "order": _by(lambda place: (place.position,)),
    "random": _shuffled,
    "rrf": _by(lambda place: (-place.reciprocal, place.rank, place.agent)),
}
