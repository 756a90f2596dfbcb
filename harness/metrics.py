"""Hit@1, Hit@5, Recall@20 and MRR of one answer, as STaRK defines them.

Our rules where STaRK's code crashes or is undefined: an empty answer scores 0, ids that are no candidates take no
rank, of duplicates the first counts, and nothing is credited beyond the list that was returned. Gold is restricted
to candidates, in the denominator too; a question without a candidate among its gold scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

METRICS = ("hit@1", "hit@5", "recall@20", "mrr")  # the keys in JSON, in the order of the tables


class Scores(NamedTuple):
    """The four metrics of one answer, each in [0, 1], in the order of METRICS."""

    hit1: float
    hit5: float
    recall20: float
    mrr: float


ZERO = Scores(0.0, 0.0, 0.0, 0.0)


def score_answer(ids: Iterable[int], gold: Iterable[int], is_candidate: Callable[[int], bool]) -> Scores:
    """Score the ranked list `ids` against the set `gold`."""
    wanted = {node for node in gold if is_candidate(node)}
    ranked = [node for node in dict.fromkeys(ids) if is_candidate(node)]
    ranks = [rank for rank, node in enumerate(ranked, 1) if node in wanted]
    if not ranks:
        return ZERO
    return Scores(
        hit1=float(ranks[0] == 1),
        hit5=float(ranks[0] <= 5),
        recall20=sum(rank <= 20 for rank in ranks) / len(wanted),
        mrr=1 / ranks[0],
    )
