"""Where answers come from, and what became of the gold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from harness.audit.checks import Check, Measure, Values
from harness.audit.facts import AttemptFacts, Sighting
from harness.audit.tally import Place, Row

# What became of a question, exclusive and exhaustive, the first that holds:
UNREADABLE: Final = "unreadable"
ERROR_CLASSES = (
    "no gold",  # the question has no candidate among its gold, or its gold isn't known
    "failed",  # the attempt failed for infrastructure reasons
    "hit",  # the first id is right
    "no answer",  # no id was returned
    "ranking",  # a right id was returned, but not first
    UNREADABLE,  # not all of the trajectory can be read, and what can be doesn't settle what the agent saw
    "selection",  # a right id stood in an output that was still there, and was not returned
    "cleared",  # right ids stood only in outputs that had been cleared by the time of the answer
    "cut",  # right ids stood only in parts of outputs that were cut away and never shown
    "search",  # no right id was in any output
)
GOLD_CLASSES = ("returned first", "returned", "shown, not returned", "cleared", "cut", "never seen")


def error_class(facts: AttemptFacts) -> str:
    """What became of the question."""
    ids = facts.record.ids if facts.record is not None else ()
    gold = {sighting.node for sighting in facts.gold_sightings}
    by_answer = class_by_answer(gold, ids, failed=facts.failed, hit=facts.hit)
    if by_answer is not None:
        return by_answer
    states = {sighting.state for sighting in facts.gold_sightings}
    if facts.unreadable or (facts.damaged and "shown" not in states):
        return UNREADABLE
    found = {"shown": "selection", "cleared": "cleared", "cut": "cut", "never": "search"}
    return next(name for state, name in found.items() if state in states)


def class_by_answer(gold: Collection[int], ids: Iterable[int], *, failed: bool, hit: bool) -> str | None:
    """The class as far as the answer tells it; None where it takes what the agent saw. `gold` holds candidates only."""
    if not gold:
        return "no gold"
    if failed:
        return "failed"
    if hit:
        return "hit"
    returned = set(ids)
    if not returned:
        return "no answer"
    return None if returned.isdisjoint(gold) else "ranking"


def error_classes(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts by what became of the question."""
    found = error_class(facts)
    where = _first_place(facts, facts.gold_sightings)
    for name in ERROR_CLASSES:
        yield Row(name == found, 1, [where] if name == found else (), name)


def gold_classes(facts: AttemptFacts) -> Iterator[Row]:
    """Gold ids by what became of them, in attempts that can be read whole and didn't fail for infrastructure."""
    if facts.failed or facts.record is None or facts.is_partial:
        return
    ids = facts.record.ids
    found = [_gold_class(sighting, ids) for sighting in facts.gold_sightings]
    for name in GOLD_CLASSES:
        mine = [sighting for sighting, other in zip(facts.gold_sightings, found, strict=True) if other == name]
        yield Row(len(mine), len(found), [_place(facts, sighting) for sighting in mine], name)


def _gold_class(sighting: Sighting, ids: tuple[int, ...]) -> str:
    if sighting.node in ids:
        return "returned first" if sighting.node == ids[0] else "returned"
    unseen = {"shown": "shown, not returned", "cleared": "cleared", "cut": "cut", "never": "never seen"}
    return unseen[sighting.state]


def returned_ids(facts: AttemptFacts) -> Iterator[Row]:
    """Returned ids by where they had been seen."""
    labels = {
        "shown": "in an output that was still there",
        "cleared": "only in outputs that were cleared by then",
        "cut": "only in a part that was cut away",
        "never": "in nothing that the agent saw",
    }
    for state, label in labels.items() if not facts.is_partial else ():
        mine = [sighting for sighting in facts.answer if sighting.state == state]
        yield Row(len(mine), len(facts.answer), [_place(facts, sighting) for sighting in mine], label)


def named_before_seen(facts: AttemptFacts) -> Iterator[Row]:
    """Returned ids that the agent wrote itself before any output showed them: recalled, guessed or computed."""
    if facts.is_partial:
        return
    mine = [sighting for sighting in facts.answer if sighting.named_before]
    yield Row(len(mine), len(facts.answer), [_place(facts, sighting) for sighting in mine])


def rejected_ids(facts: AttemptFacts) -> Iterator[Row]:
    """Ids of the answer that were dropped, by the reason."""
    if facts.record is None:
        return
    rejected = [entry["why"] for entry in facts.record.answer.get("rejected", ())]
    for why in ("not_an_id", "unknown_name", "unknown", "duplicate", "not_a_candidate", "too_many"):
        count = rejected.count(why)
        places = [Place(facts.file, facts.answer_line)] if count else ()
        yield Row(count, len(rejected) + len(facts.record.ids), places, why)


def repaired_answers(facts: AttemptFacts) -> Iterator[Row]:
    """Answers that were not written as asked."""
    if facts.record is not None and facts.record.stop_reason == "answered":
        repairs = facts.record.answer.get("repairs", ())
        yield Row(bool(repairs), 1, [Place(facts.file, facts.answer_line, ", ".join(repairs))] if repairs else ())


def first_gold(facts: AttemptFacts) -> Sighting | None:
    """The right id that was seen first, None where none was."""
    seen = [sighting for sighting in facts.gold_sightings if sighting.seen]
    return min(seen, key=lambda sighting: (sighting.line, sighting.offset), default=None)


def turn_of_first_gold(facts: AttemptFacts) -> Values:
    """The turn in which the first right id was shown."""
    first = first_gold(facts) if not facts.is_partial else None
    return [(first.turn, first.line)] if first is not None else []


def share_until_first_gold(facts: AttemptFacts) -> Values:
    """The same as a share of the attempt's turns."""
    turns = facts.record.turns if facts.record is not None else 0
    return [(turn / turns, line) for turn, line in turn_of_first_gold(facts)] if turns else []


def _place(facts: AttemptFacts, sighting: Sighting) -> Place:
    """Where an id was first seen, or cut away; the answer where it was never seen."""
    where = f"node {sighting.node}"
    if sighting.seen:
        where += f", turn {sighting.turn}, byte {sighting.offset}"
    elif sighting.state == "cut":
        where += f", cut away in turn {sighting.turn}"
    return Place(facts.file, sighting.line or facts.answer_line, where)


def _first_place(facts: AttemptFacts, sightings: tuple[Sighting, ...]) -> Place:
    """Where the first right id was seen, else where one was cut away, else the answer."""
    cut = next((sighting for sighting in sightings if sighting.state == "cut"), None)
    found = first_gold(facts) or cut
    return _place(facts, found) if found is not None else Place(facts.file, facts.answer_line)


CHECKS = (
    Check("error_classes", "answers", "what became of the questions", "attempts", error_classes, zeros=True),
    Check("gold_classes", "answers", "what became of the gold", "gold ids", gold_classes, zeros=True),
    Check("returned_ids", "answers", "where returned ids had been seen", "returned ids", returned_ids, zeros=True),
    Check("named_before_seen", "answers", "ids that the agent named before it saw them", "returned ids",
          named_before_seen, zeros=True),
    Check("rejected_ids", "answers", "ids that were dropped from answers", "ids in answers", rejected_ids),
    Check("repaired_answers", "answers", "answers not written as asked", "answers", repaired_answers),
)  # fmt: skip
MEASURES = (
    Measure("turn_of_first_gold", "answers", "turn that first showed a right id", "turn", turn_of_first_gold),
    Measure("share_until_first_gold", "answers", "the same as a share of the turns", "share", share_until_first_gold),
)
