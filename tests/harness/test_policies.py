"""The peers' policies, by their documented numbers: what stays of an output, and when old results give way."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from harness.context import Conversation
from harness.cut import shorten
from harness.errors import UserError
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import Mode, load_mode, policy_names
from harness.observe import Observation
from harness.spill import Spills
from harness.tools import ToolContext
from harness.tools.kit import make_toolbox
from sandbox import Backend, Spec


def policy(name: str) -> Mode:
    return load_mode("files", {"policy": name})


def play(mode: Mode, window: int | None, turns: int, characters: int) -> list[list[int]]:
    """The turns whose results are shown whole in each request, for results of so many characters, 4 to a token."""
    conversation = Conversation(mode.context, window)
    conversation.say("task")
    shown = []
    for turn in range(1, turns + 1):
        conversation.clear(turn, lambda _: "outputs/001.txt")
        cleared = {int(call_id) for call_id in conversation.cleared}
        shown.append([number for number in range(1, turn) if number not in cleared])
        usage = Usage(input=conversation.size // 4)
        conversation.reply(Reply(Entry("assistant", "", (ToolCall(str(turn), "bash", "{}"),)), "tool_calls", usage))
        conversation.result(str(turn), turn, Observation("x" * characters))
    return shown


class TestPi:
    def test_the_last_2000_lines(self) -> None:
        text = "".join(f"line {number}\n" for number in range(1, 2_502))
        view = shorten(text, policy("pi").output)
        lines = view.text.splitlines()
        assert (len(lines), lines[1], lines[-1]) == (2_001, "line 502", "line 2501")
        whole = "".join(f"{number}\n" for number in range(2_000))
        assert shorten(whole, policy("pi").output).text == whole

    def test_or_50_kib_of_whole_lines(self) -> None:
        text = "".join(f"{number:04d} {'é' * 60}\n" for number in range(1_000))
        shown = shorten(text, policy("pi").output).text.partition("\n")[2]
        size = len(shown.encode())
        assert 50 * 1024 - 126 < size <= 50 * 1024
        assert text.endswith("\n" + shown)

    def test_the_end_of_one_endless_line(self) -> None:
        view = shorten("a" * 100_000 + "b", policy("pi").output)
        assert view.text.endswith("ab")
        assert view.omitted == 100_001 - 50 * 1024

    def test_results_give_way_when_16384_tokens_are_left_but_for_20000(self) -> None:
        shown = play(policy("pi"), 128_000, 40, 16_000)
        first = next(n for n, turns in enumerate(shown) if len(turns) < n)
        assert 4_000 * first >= 128_000 - 16_384
        assert 4_000 * first <= 128_000 - 16_384 + 5_000
        assert 16_000 <= 4_000 * len(shown[first]) <= 20_480


class TestCodex:
    def test_10000_tokens_of_four_bytes_half_of_them_from_each_end(self) -> None:
        text = "".join(f"{number:05d} {'x' * 93}\n" for number in range(2_000))  # 100 bytes a line
        view = shorten(text, policy("codex").output)
        head, tail = view.text.split(f"\n[... {view.omitted:,} characters left out here ...]\n")
        assert (text.startswith(head), text.endswith(tail)) == (True, True)
        assert 20_000 - 100 <= len(head) <= 20_000
        assert 20_000 - 100 <= len(tail) <= 20_000

    def test_bytes_count_not_characters(self) -> None:
        assert shorten("é" * 20_000, policy("codex").output).omitted == 0
        assert shorten("é" * 20_001, policy("codex").output).omitted > 0

    def test_at_nine_tenths_of_the_window_all_but_the_last_result_give_way(self) -> None:
        shown = play(policy("codex"), 100_000, 40, 16_000)
        first = next(n for n, turns in enumerate(shown) if len(turns) < n)
        assert 90_000 <= 4_000 * first <= 94_000 + 4_000
        assert len(shown[first]) == 1


class TestDci:
    def test_20000_characters(self) -> None:
        assert shorten("é" * 20_000, policy("dci").output).omitted == 0
        view = shorten("é" * 50_000, policy("dci").output)
        assert view.text.count("é") == 20_000

    def test_the_last_12_turns_once_results_exceed_240000_characters(self) -> None:
        shown = play(policy("dci"), None, 40, 16_000)
        assert shown[15] == list(range(1, 16)), "15 results are 240,000 characters"
        assert shown[16] == list(range(5, 17))
        assert all(len(turns) == 12 for turns in shown[16:])


def test_a_policy_is_named_by_a_setting_that_other_settings_go_over() -> None:
    mode = load_mode("files", {"policy": "dci", "context": {"keep_turns": 5}})
    assert (mode.policy, mode.context.policy, mode.context.keep_turns, mode.output.line_cap) == (
        "dci",
        "sliding",
        5,
        None,
    )
    assert load_mode("files").policy is None
    assert policy_names() == ["codex", "dci", "pi"]
    with pytest.raises(UserError, match="unknown policy 'dcy'") as error:
        load_mode("files", {"policy": "dcy"})
    assert "dci" in error.value.hint


@pytest.mark.parametrize("name", ["pi", "codex", "dci"])
def test_whatever_is_cut_is_kept_whole(name: str, biogo: Export, bwrap: Backend, tmp_path: Path) -> None:
    """Through the sandbox: a notice names the file that holds everything, also of outputs too large to read back."""
    mode = load_mode("files", {"policy": name, "output": {"blob_bytes": 1_000_000}})
    bash = make_toolbox(mode.tools)
    with bwrap.open(Spec(biogo.files, mode.sandbox.limits())) as sandbox:
        spills = Spills(sandbox)
        context = ToolContext(lambda: sandbox, lambda: spills, mode.output, mode.output.cap, 60.0)
        for last in (30_000, 300_000):
            call = ToolCall("c", "bash", "")
            seen = bash.dispatch(call, {"command": f"seq {last}"}, context)
            assert seen.cut is not None and seen.spill is not None
            assert f"the whole output is in {seen.spill}]" in seen.text
            assert str(last) in seen.text.splitlines()[-2:][0]
            whole = "".join(f"{number}\n" for number in range(1, last + 1)).encode()
            assert sandbox.read(seen.spill, 0, len(whole) + 1).data == whole
