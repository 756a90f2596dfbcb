"""Modes and settings: inheritance, overrides, errors that name what is possible."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.modes import load_mode, mode_names
from harness.prompt import prompt_for
from harness.settings import merge, parse_assignments
from harness.tools.kit import needs_sandbox


@pytest.mark.parametrize("name", mode_names())
def test_every_mode_resolves_fills_its_prompt_and_has_its_tools(name: str) -> None:
    mode = load_mode(name)
    prompt = prompt_for(mode, "which $5 question?")
    assert "which $5 question?" in prompt
    assert "$" not in prompt.replace("which $5 question?", "")
    needs_sandbox(mode.tools)  # raises for a tool that does not exist
    assert mode.summary


def test_overrides_go_deep_and_keep_the_rest() -> None:
    assignments = [
        "limits.turns=7",
        "limits.seconds=60",
        "answer.max_ids=100",
        "limits.warn=false",
        "context.window=none",
    ]
    mode = load_mode("files", parse_assignments(assignments))
    assert (mode.limits.turns, mode.limits.seconds, mode.limits.warn) == (7, 60.0, False)
    assert mode.answer.max_ids == 100
    assert load_mode("files", parse_assignments(["context.window=none"])).context.window is None
    assert mode.output == load_mode("files").output


@pytest.mark.parametrize(
    ("assignment", "message", "hint"),
    [
        ("limits.turn=3", "unknown key 'turn'", "turns"),
        ("limit.turns=3", "unknown key 'limit'", "limits"),
        ("limits.turns=many", "takes a whole number, not 'many'", ""),
        ("limits.turns=true", "takes a whole number, not True", ""),
        ("limits=3", "is a table, not 3", ""),
        ("answer.source=mail", "is 'mail'", "message, tool"),
        ("limits.turns", "is not key=value", "limits.turns=50"),
        ("sandbox.memory=100", "at least sandbox.scratch + 1 GiB", ""),
        ("tools=bash", "is a list, not 'bash'", ""),
    ],
)
def test_a_wrong_setting_is_one_line_that_helps(assignment: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load_mode("files", parse_assignments([assignment]))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert hint in caught.value.hint


def test_an_unknown_mode_names_those_there_are() -> None:
    with pytest.raises(UserError) as caught:
        load_mode("fils")
    assert "files" in caught.value.hint


def test_merge_replaces_values_and_merges_tables() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {"a": {"b": 3, "c": 2}, "d": [2]}


DKGI = ("files", "files-rg", "no-edges", "shell")


@pytest.mark.parametrize("name", DKGI)
def test_dkgi_prompts_differ_only_where_the_access_differs(name: str) -> None:
    whole, base = load_mode(name), load_mode("files")
    assert (whole.prompt, whole.reply) == (base.prompt, base.reply)
    before, after = prompt_for(base, "?").split(_filled(base.access))
    assert prompt_for(whole, "?") == before + _filled(whole.access) + after


def test_no_word_of_python_or_of_edges_where_they_are_not_meant() -> None:
    assert "python" not in prompt_for(load_mode("files-rg"), "?").casefold()
    without_edges = prompt_for(load_mode("no-edges"), "?").casefold()
    assert "edge" not in without_edges.replace("knowledge", "")
    assert "relation" not in without_edges


def _filled(access: str) -> str:
    return access.strip().replace("$graph", "/graph").replace("$scratch", "/scratch")
