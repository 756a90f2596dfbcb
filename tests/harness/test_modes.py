"""Modes and settings: inheritance, overrides, errors that name what is possible."""

from __future__ import annotations

from string import Template
from typing import Any

import pytest

from harness.errors import UserError
from harness.modes import load_mode, mode_names
from harness.prompt import prompt_for
from harness.settings import merge, parse_assignments
from harness.tools.kit import make_toolbox, needs_sandbox


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
        ("limits.turns=many", "takes a whole number, not 'many'", "the default is 300"),
        ("limits.turns=true", "takes a whole number, not True", "the default is 300"),
        ("limits.turns=0", "turns is 0; it must be at least 1", "the default is 300"),
        ("limits.tokens=many", "takes a whole number or none, not 'many'", "the default is none"),
        ("limits.warn=perhaps", "takes true or false, not 'perhaps'", "the default is true"),
        ("limits=3", "is a table, not 3", "known keys: cost, format_errors"),
        ("output.call_seconds=700", "call_seconds is 700; it must be at most call_seconds_max, 600", "max=700"),
        ("output.call_seconds_max=60", "call_seconds is 120; it must be at most call_seconds_max, 60", "a shorter"),
        ("answer.source=mail", "is 'mail'", "message, tool"),
        ("limits.turns", "is not key=value", "limits.turns=50"),
        ("sandbox.memory=100", "100 MiB; it must be at least scratch + 1,024 = 2,048", "the default is 4096 MiB"),
        ("sandbox.memory=4g", "takes a whole number, not '4g'", "the default is 4096 MiB"),
        ("tools=bash", "is a list, not 'bash'", '["bash"]'),
    ],
)
def test_a_wrong_setting_is_one_line_that_helps(assignment: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load_mode("files", parse_assignments([assignment]))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("key", "outside", "allowed", "says"),
    [
        ("limits.turns", (0, -5), (1, 2**53), "at least 1"),
        ("limits.tokens", (0,), (1, "none"), "at least 1"),
        ("limits.format_errors", (0,), (1,), "at least 1"),
        ("limits.seconds", (0, -1, 1e12), (0.01, 2_000_000), "greater than 0 and at most 2,000,000"),
        ("limits.wall_seconds", (0, 1e12), (1, "none"), "greater than 0"),
        ("limits.cost", (0, -0.5), (0.01, "none"), "greater than 0"),
        ("limits.warn_turns", (-1,), (0,), "at least 0"),
        ("limits.warn_seconds", (-1,), (0,), "at least 0"),
        ("output.cap", (0, -1, 10**12), (100,), "at least 100 and at most"),
        ("output.lines", (0, 1), (2, "none"), "at least 2"),
        ("output.line_cap", (0,), (10, "none"), "at least 10"),
        ("output.call_seconds", (0, 1e12), (0.5,), "greater than 0"),
        ("output.call_seconds_max", (-1, 1e12), (120,), "greater than 0"),
        ("output.blob_bytes", (-1, 10**12), (0,), "at least 0"),
        ("context.window", (0, 10), (1_000, "none"), "at least 1,000"),
        ("context.most", (10,), (1_000, "none"), "at least 1,000"),
        ("context.high", (2, 0, -1), (1, 0.5), "greater than 0 and at most 1"),
        ("context.low", (0.8, -1), (0, 0.75), "at least 0 and at most 0.75"),
        ("context.sliding_from", (-1,), (0,), "at least 0"),
        ("context.keep_turns", (-1,), (0,), "at least 0"),
        ("answer.max_ids", (0, -1), (1,), "at least 1"),
        ("agents.count", (0,), (1,), "at least 1"),
        ("sandbox.memory", (-1, 2**40), (2048,), "at "),
        ("sandbox.scratch", (0, -16), (1,), "at least 1"),
        ("sandbox.tmp", (0, 2**40), (1,), "at least 1"),
        ("sandbox.shm", (0,), (1,), "at least 1"),
        ("sandbox.file_size", (0, 2**44), (1,), "at least 1"),
        ("sandbox.pids", (1, 0, -1, 15, 2**30), (16,), "at least 16 and at most"),
        ("sandbox.cpus", (0, -1), (0.01, 4), "at least 0.01"),
        ("sandbox.cpu_seconds", (0, 0.5), (1,), "at least 1"),
    ],
)
def test_ranges(key: str, outside: tuple[Any, ...], allowed: tuple[Any, ...], says: str) -> None:
    for value in outside:
        with pytest.raises(UserError, match=rf"{key.partition('.')[2]} is .* must be .*{says}"):
            load_mode("files", parse_assignments([f"{key}={value}"]))
    for value in allowed:
        load_mode("files", parse_assignments([f"{key}={value}"]))


def test_every_number_has_a_range() -> None:
    """No setting takes a number that no JSON can hold, or one that is far from what can be meant."""
    free = {"agents.seed"}
    mode = load_mode("files").as_dict()
    keys = [f"{table}.{key}" for table, values in mode.items() if isinstance(values, dict) for key in values]
    for key in keys:
        for value in ("nan", "inf", "-inf", str(2**53 + 1), *(() if key in free else ("-7",))):
            with pytest.raises(UserError):
                load_mode("files", parse_assignments([f"{key}={value}"]))


def test_an_unknown_mode_names_those_there_are() -> None:
    with pytest.raises(UserError) as caught:
        load_mode("fils")
    assert "files" in caught.value.hint


def test_merge_replaces_values_and_merges_tables() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {"a": {"b": 3, "c": 2}, "d": [2]}


# Those that answer in names, and ARK's, have to be told otherwise how to answer.
ALIKE = [name for name in mode_names() if load_mode(name).answer.source == "message"]


@pytest.mark.parametrize("name", ALIKE)
def test_prompts_differ_only_where_the_access_differs(name: str) -> None:
    whole, base = load_mode(name), load_mode("files")
    assert (whole.prompt, whole.reply) == (base.prompt, base.reply)
    before, after = prompt_for(base, "?").split(_filled(base.access))
    assert prompt_for(whole, "?") == before + _filled(whole.access) + after


def test_the_modes_that_are_alike_are_those_of_the_comparison() -> None:
    files = {"files", "files-rg", "files-kernel", "no-edges", "shell", "one-program"}
    assert set(ALIKE) >= files | {"tools", "tools-code", "retrieval", "closed-book-ids"}
    assert not {name for name in mode_names() if name.startswith("ark")} & set(ALIKE)
    names, ids = (prompt_for(load_mode(f"closed-book-{kind}"), "?") for kind in ("names", "ids"))
    assert names.split("An answer is")[0] == ids.split("An answer is")[0]


@pytest.mark.parametrize("name", ALIKE)
def test_the_ranking_instruction_is_a_setting(name: str) -> None:
    usual, longer = (prompt_for(load_mode(name, {"answer": {"max_ids": k}}), "?") for k in (20, 100))
    assert "the most plausible first, at most 20 in all" in usual
    assert longer == usual.replace("at most 20 in all", "at most 100 in all")


def test_no_word_of_python_or_of_edges_where_they_are_not_meant() -> None:
    rg = load_mode("files-rg")
    assert "python" not in (prompt_for(rg, "?") + repr(make_toolbox(rg.tools).specs)).casefold()
    without_edges = prompt_for(load_mode("no-edges"), "?").casefold()
    assert "edge" not in without_edges.replace("knowledge", "")
    assert "relation" not in without_edges


def _filled(access: str) -> str:
    places = {"graph": "/graph", "scratch": "/scratch", "attempt": "/attempt"}
    return Template(access).substitute(places).strip()
