"""The conditions of --where: what they mean, what they refuse, and that nothing in them is executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.where import Reference, Scope, Where


class Table:
    """A run whose fields are given."""

    def __init__(self, **questions: Mapping[str, Any]) -> None:
        self.questions = questions

    def field_names(self) -> Iterable[str]:
        return [name for fields in self.questions.values() for name in fields]

    def has(self, key: str) -> bool:
        return key in self.questions

    def field(self, name: str, key: str) -> Any:
        return self.questions[key][name]


ONE = Table(
    a={"turns": 12, "hit@1": 0, "split": "test", "cost": None, "query": "which protein", "calls.neighbors": 11},
    b={"turns": 3, "hit@1": 1, "split": "val", "cost": 0.5, "query": "which drug", "calls.neighbors": 2},
)
TWO = Table(
    a={"turns": 20, "hit@1": 0, "split": "test", "cost": 0.2, "query": "which protein", "calls.neighbors": 10},
    b={"turns": 30, "hit@1": 0, "split": "val", "cost": 0.5, "query": "which drug", "calls.neighbors": 12},
)
PROBE = Table(a={"hit@1": 1, "recall@20": 0.5})


def kept(text: str) -> set[str]:
    condition = Where(text).bind([ONE, TWO], {"runs/probe": PROBE})
    return {key for key in ("a", "b") if condition.holds(key)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("turns > 10", {"a"}),  # in both runs: b has 3 turns in the first
        ("turns > 2", {"a", "b"}),
        ("run1.turns > 10 or run2.turns > 25", {"a", "b"}),
        ("run2.turns > 25", {"b"}),
        ("run2.turns - run1.turns > 10", {"b"}),
        ("run1.hit@1 != run2.hit@1", {"b"}),
        ("hit@1 == 0", {"a"}),
        ("hit_1 == 0", {"a"}),
        ("not hit@1", {"a"}),
        ("not run1.hit@1", {"a"}),
        ("calls.neighbors >= 10", {"a"}),
        ("run2.calls.neighbors >= 10", {"a", "b"}),
        ('split == "val"', {"b"}),
        ('split in ("val", "train")', {"b"}),
        ('split not in ["val"]', {"a"}),
        ('"protein" in query', {"a"}),
        ("10 <= run1.turns < 20", {"a"}),
        ("run1.cost > 0", {"b"}),
        ("run1.cost <= 0", set()),  # neither more nor less
        ("run1.cost == None", {"a"}),
        ("run1.cost is not None", {"b"}),
        ("run1.cost * 2 == 1", {"b"}),
        ("run1.turns / 0 > 1", set()),
        ("-run1.turns < -10", {"a"}),
        ('other("runs/probe").recall_20 == 0.5', {"a"}),
        ('other("runs/probe").hit@1 == 1 and run1.hit@1 == 0', {"a"}),
        ('other("runs/probe").hit@1 == 0', set()),  # the probe doesn't have b
        ('not other("runs/probe").hit@1 == 1', set()),
        ("  turns > 2 ", {"a", "b"}),
        ("True", {"a", "b"}),
    ],
)
def test_what_conditions_mean(text: str, expected: set[str]) -> None:
    others = {} if "other" not in text else {"runs/probe": PROBE}
    condition = Where(text).bind([ONE, TWO], others)
    assert {key for key in ("a", "b") if condition.holds(key)} == expected


def test_what_is_spoken_of() -> None:
    where = Where('run2.calls.bash > 1 and other("x/y").hit_5 and other("x/y").mrr < turns')
    assert where.references == {
        Reference(Scope(number=2), "calls.bash"),
        Reference(Scope(folder="x/y"), "hit@5"),
        Reference(Scope(folder="x/y"), "mrr"),
        Reference(Scope(), "turns"),
    }
    assert where.folders == ["x/y"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("turnz > 1", "unknown field 'turnz'", "did you mean 'turns'? fields: turns, hit@1"),
        ("run2.turnz > 1", "unknown field 'run2.turnz'", "did you mean 'turns'?"),
        ("run3.turns > 1", "there is no run3", "run1 to run2"),
        ("run0.turns > 1", "there is no run0", "run1 to run2"),
        ('other("runs/probe").turns > 1', "unknown field 'other(\"runs/probe\").turns'", "hit@1, recall@20"),
        ("turns > 'many'", "12 and 'many' can't be compared", ""),
        ("split + 1 > 2", "only numbers", ""),
    ],
)
def test_mistakes_that_the_runs_show(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        kept(text)
    assert message in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "turns >",
        "turns = 3",
        "turns > 1; import os",
        "__import__('os').system('touch owned')",
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: 1)()",
        "[x for x in (1,)]",
        "turns if turns else 1",
        "f'{turns}'",
        "turns[0]",
        "turns ** 9 ** 9",
        "1 << 99",
        "turns @ turns",
        "(turns + 1)@1",
        "hit@1@2",
        "b'x' == b'x'",
        "1j",
        "...",
        "{1: 2}",
        "(x := 3)",
        "other('x')",
        "other(turns).hit_1",
        "other('').hit_1",
        "other('x', 'y').hit_1",
        "others('x').hit_1",
        "'text'.upper",
        "\x00",
        "(" * 300 + "1" + ")" * 300,
        "-" * 1900 + "1",
        "not " * 400 + "1",
        "1 + " * 400 + "1",
        "t" + ".a" * 900 + "[0]",
        "x" * 2001,
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--where"):
        kept(text)


def test_an_odd_escape_is_only_a_text() -> None:
    assert kept(r'split == "\d"') == set()


@given(st.text(alphabet="turnshi@1_ .()'\"<>=!+-*/%and,not[]{}:\\0", max_size=40))
def test_any_text_is_a_condition_or_a_users_mistake(text: str) -> None:
    try:
        kept(text)
    except UserError as error:
        assert "--where" in str(error)
