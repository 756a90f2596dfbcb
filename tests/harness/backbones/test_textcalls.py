from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backbones.textcalls import calls_in_text

TOOLS = frozenset({"bash", "read"})
LS = ("bash", {"command": "ls"})


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ('<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>', [LS], ""),
        ('first\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n', [LS], "first"),
        (
            '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call> and '
            '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"x\\"}"}</tool_call>',
            [LS, ("read", '{"path": "x"}')],
            "and",
        ),
        (
            "<function=read>\n<parameter=path>\na b\n</parameter>\n<parameter=limit>\n20\n</parameter>\n</function>",
            [("read", {"path": "a b", "limit": 20})],
            "",
        ),
        (
            "<tool_call>\n<function=bash>\n<parameter=command>\nls\ntrue\n</parameter>\n</function>\n</tool_call>",
            [("bash", {"command": "ls\ntrue"})],
            "",
        ),
        ('[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls"}, "id": "x"}]', [LS], ""),
        (
            '[TOOL_CALLS]bash[ARGS]{"command": "ls"}[TOOL_CALLS]read[CALL_ID]abc[ARGS]{"path": "x"}',
            [LS, ("read", {"path": "x"})],
            "",
        ),
        ('<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', [LS], ""),
        ('{"name": "bash", "arguments": {"command": "ls"}};', [LS], ""),
    ],
)
def test_forms(text, calls, rest):
    assert calls_in_text(text, TOOLS) == (calls, rest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ANSWER: [1, 2]",
        "[1, 2]",
        "{}",
        '{"name": "TP53", "arguments": {"x": 1}}',
        '{"name": "bash"}',
        '{"name": "bash", "arguments": {"command": "ls"}} would list the folder',
        "<tool_call>bash ls</tool_call>",
        '<tool_call>{"name": "bash", "arguments": {"command": "ls"</tool_call>',
        '<tool_call>{"name": "browse", "arguments": {}}</tool_call>',
        "[TOOL_CALLS]",
        "[TOOL_CALLS]bash[ARGS]{broken",
        "[" * 100_000,
        "<tool_call>" + "[" * 100_000,
    ],
)
def test_text_that_is_no_call_stays_as_it_is(text):
    assert calls_in_text(text, TOOLS) == ([], text)


def test_without_tools_nothing_is_a_call():
    text = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    assert calls_in_text(text, frozenset()) == ([], text)


pieces = ["<tool_call>", "</tool_call>", "<function=bash>", "</function>", "<parameter=x>", "[TOOL_CALLS]", "bash",
          "[ARGS]", '{"name": "bash", "arguments": {', "}}", " ", "\n"]  # fmt: skip


@given(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=12).map("".join))
def test_any_text_is_read_without_failing(text):
    calls, rest = calls_in_text(text, TOOLS)
    assert all(name in TOOLS for name, _ in calls)
    assert calls or rest == text
