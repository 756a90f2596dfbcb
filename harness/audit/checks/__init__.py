"""The checks of `harness audit`: small functions of what is known of one attempt, or of the run as a whole.

Each has a name that doesn't change, and yields rows: a count out of something, with pointers to examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from harness.audit.facts import AttemptFacts
from harness.audit.tally import Row

Section = Literal["did", "answers", "trust", "cost"]
SECTIONS: dict[Section, str] = {
    "did": "What the agent did",
    "answers": "Where answers come from",
    "trust": "Whether the run can be trusted",
    "cost": "What it cost",
}


@dataclass(frozen=True)
class Check:
    """Counts something in every attempt. `unit` is what it's counted out of.

    `scope`: "counted" looks at the attempts that the score is about, "all" at those that were retried too.
    `alarm`: any count above 0 is worth a look before the run is trusted. `zeros`: that a row's count is 0 says
    something too, so tables show it.
    """

    name: str
    section: Section
    title: str
    unit: str
    rows: Callable[[AttemptFacts], Iterable[Row]]
    scope: Literal["counted", "all"] = "counted"
    alarm: bool = False
    zeros: bool = False


Values = Iterable[tuple[float, int]]


@dataclass(frozen=True)
class Measure:
    """Values of which the median and the mean are reported, each with its line in the trajectory."""

    name: str
    section: Section
    title: str
    unit: str
    values: Callable[[AttemptFacts], Values]
    scope: Literal["counted", "all"] = "counted"
