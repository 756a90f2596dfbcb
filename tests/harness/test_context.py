"""What requests show: pairing, prefixes, clearing between two marks."""

from __future__ import annotations

from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.context import Conversation, entry_bytes
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import Context
from harness.observe import Observation


class Spill:
    """Keeps what is spilled, as the sandbox's outputs folder would."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __call__(self, data: bytes) -> str:
        path = f"outputs/{len(self.files) + 1:03d}.txt"
        self.files[path] = data
        return path


def observation(size: int, spill: str | None = None) -> Observation:
    text = "[exit code 0]\n" + "x" * size
    record = {"exit_code": 0, "termination": "exit", "total_bytes": size, "lines": 1}
    return Observation(text, exec=record, spill=spill, whole=b"x" * size)


def turn(conversation: Conversation, number: int, sizes: list[int], tokens_per_byte: float | None = 0.3) -> None:
    """One turn: a reply with one call per size, its results, and the provider's count of the request."""
    calls = tuple(ToolCall(f"call-{number}-{i}", "bash", '{"command": "true"}') for i in range(len(sizes)))
    usage = Usage(input=int(conversation.size * tokens_per_byte)) if tokens_per_byte else Usage()
    conversation.reply(Reply(Entry("assistant", "", calls), "tool_calls", usage))
    for call, size in zip(calls, sizes, strict=True):
        conversation.result(call.id, number, observation(size))


def assert_paired(entries: tuple[Entry, ...]) -> None:
    """Every call is followed by exactly its results, in order, before anything else."""
    waiting: list[str] = []
    for entry in entries:
        if entry.role == "tool":
            assert waiting, "a result without a call"
            assert entry.call_id == waiting.pop(0)
        else:
            assert not waiting, "a call without its result"
            waiting = [call.id for call in entry.calls]
    assert not waiting


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 30_000), min_size=1, max_size=4), min_size=1, max_size=40),
    st.integers(2_000, 60_000),
    st.booleans(),
)
def test_calls_keep_their_results_and_requests_their_prefix(
    turns: list[list[int]], window: int, reports_usage: bool
) -> None:
    conversation, spill = Conversation(Context(), window), Spill()
    conversation.say("the task")
    shown: tuple[Entry, ...] = ()
    for number, sizes in enumerate(turns, 1):
        cleared = conversation.clear(number, spill)
        view = conversation.view()
        assert_paired(view)
        if cleared is None:
            assert view[: len(shown)] == shown, "without a clearing, a request starts with the whole one before"
        else:
            assert cleared.tokens_after < cleared.tokens_before
        shown = view
        turn(conversation, number, sizes, 0.3 if reports_usage else None)
    assert_paired(conversation.view())
    assert conversation.size == sum(entry_bytes(entry) for entry in conversation.view())


def test_clearing_goes_from_the_high_mark_to_the_low_mark_and_then_rests() -> None:
    policy = Context(high=0.75, low=0.4, keep_turns=3)
    conversation, spill = Conversation(policy, 30_000), Spill()
    conversation.say("task")
    cleared_at = []
    for number in range(1, 60):
        clearing = conversation.clear(number, spill)
        if clearing:
            assert clearing.tokens_before > 0.75 * 30_000
            assert clearing.tokens_after <= 0.4 * 30_000
            cleared_at.append(number)
        turn(conversation, number, [4_000])
    gaps = [b - a for a, b in pairwise(cleared_at)]
    assert cleared_at, "60 turns of 1,200 tokens overflow 22,500"
    assert min(gaps) >= 7, "a clearing frees 35 % of the window: at least 7 turns' worth"


def test_a_cleared_result_is_spilled_first_and_its_placeholder_says_where() -> None:
    conversation, spill = Conversation(Context(keep_turns=1), 1_000), Spill()
    conversation.say("task")
    turn(conversation, 1, [3_000])
    turn(conversation, 2, [3_000])
    clearing = conversation.clear(3, spill)
    assert clearing is not None
    assert clearing.call_ids == ("call-1-0",)
    assert spill.files == {"outputs/001.txt": b"x" * 3_000}
    text = conversation.view()[2].text
    assert "exit code 0" in text
    assert "3,000 bytes" in text
    assert "outputs/001.txt" in text
    assert conversation.cleared == ["call-1-0"]


def test_the_last_turns_stay_where_the_others_free_enough() -> None:
    conversation, spill = Conversation(Context(keep_turns=3), 8_000), Spill()
    conversation.say("task")
    for number in range(1, 8):
        turn(conversation, number, [3_000])
    cleared = conversation.clear(8, spill)
    assert cleared is not None
    assert cleared.call_ids == tuple(f"call-{number}-0" for number in (1, 2, 3, 4))


def test_the_last_turn_alone_stays_where_three_fill_the_window() -> None:
    conversation, spill = Conversation(Context(keep_turns=3), 5_000), Spill()
    conversation.say("task")
    for number in range(1, 4):
        turn(conversation, number, [5_000])
    cleared = conversation.clear(4, spill)
    assert cleared is not None
    assert cleared.call_ids == ("call-1-0", "call-2-0"), "else every turn from here on would clear one result"


def test_an_overflow_clears_to_the_low_mark_and_teaches_the_window() -> None:
    conversation, spill = Conversation(Context(), None), Spill()
    conversation.say("task")
    for number in range(1, 11):
        turn(conversation, number, [3_000])
    assert conversation.clear(11, spill) is None, "nobody knows the window"
    forced = conversation.clear(11, spill, force=True)
    assert forced is not None
    assert forced.tokens_after < 0.4 * forced.tokens_before
    assert conversation.cleared == [f"call-{number}-0" for number in range(1, 10)]
    for number in range(11, 17):
        turn(conversation, number, [3_000])
        again = conversation.clear(number + 1, spill)
    assert again is not None, "from then on the window is known"
    assert again.tokens_before < forced.tokens_before


def test_an_overflow_far_below_the_window_that_was_given_is_believed() -> None:
    conversation, spill = Conversation(Context(), 128_000), Spill()
    conversation.say("task")
    for number in (1, 2, 3):
        turn(conversation, number, [9_000])
    forced = conversation.clear(4, spill, force=True)
    assert forced is not None
    assert forced.call_ids == ("call-1-0", "call-2-0")


def test_an_overflow_by_the_last_turns_results_alone_clears_those() -> None:
    conversation, spill = Conversation(Context(), 128_000), Spill()
    conversation.say("task")
    turn(conversation, 1, [9_000] * 8)
    forced = conversation.clear(2, spill, force=True)
    assert forced is not None
    assert 0 < len(forced.call_ids) < 8, "no more than it takes"
    assert conversation.clear(2, spill, force=True) is not None
    assert len(spill.files) == len(conversation.cleared)


def test_a_sliding_window_keeps_the_last_turns_once_there_is_enough_to_clear() -> None:
    policy = Context(policy="sliding", sliding_from=20_000, keep_turns=4)
    conversation, spill = Conversation(policy, None), Spill()
    conversation.say("task")
    shown = []
    for number in range(1, 12):
        conversation.clear(number, spill)
        shown.append(number - 1 - len(conversation.cleared))
        turn(conversation, number, [4_000])
    assert shown == [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_without_a_policy_only_an_overflow_clears() -> None:
    conversation, spill = Conversation(Context(policy="none"), 2_000), Spill()
    conversation.say("task")
    for number in range(1, 9):
        turn(conversation, number, [4_000])
        assert conversation.clear(number + 1, spill) is None
    assert conversation.clear(9, spill, force=True) is not None


def test_of_a_large_window_no_more_is_used_than_the_mode_says() -> None:
    for most, clears in ((5_000, True), (None, False)):
        conversation = Conversation(Context(most=most), 1_000_000)
        conversation.say("task")
        for number in range(1, 9):
            turn(conversation, number, [3_000])
        assert (conversation.clear(9, Spill()) is not None) is clears


def test_a_server_that_counts_no_more_tokens_though_more_was_sent_cuts_requests() -> None:
    conversation = Conversation(Context(), 100_000)
    conversation.say("x" * 3_000)
    heard = []
    for number, tokens in enumerate((1_000, 3_000, 4_000, 4_000, None, 3_900, 5_200), 1):
        call = ToolCall(f"c{number}", "bash", "{}")
        heard.append(conversation.reply(Reply(Entry("assistant", "", (call,)), "tool_calls", Usage(input=tokens))))
        conversation.result(f"c{number}", number, observation(6_000))
    assert heard == [False, False, False, True, False, True, False]


def test_ids_used_again_in_a_later_turn_do_not_mix_up_results() -> None:
    conversation, spill = Conversation(Context(keep_turns=1), 2_000), Spill()
    conversation.say("task")
    for number in range(1, 5):
        call = ToolCall("call_0", "bash", "{}")
        conversation.reply(Reply(Entry("assistant", "", (call,)), "tool_calls", Usage(input=conversation.size // 3)))
        conversation.result("call_0", number, observation(2_000 + number))
    conversation.clear(5, spill)
    assert_paired(conversation.view())
    assert list(spill.files.values()) == [b"x" * 2_001, b"x" * 2_002, b"x" * 2_003][: len(spill.files)]


def test_the_size_is_the_providers_figure_plus_what_came_since() -> None:
    conversation = Conversation(Context(), 100_000)
    conversation.say("x" * 3_000)
    conversation.reply(Reply(Entry("assistant", "ok"), "stop", Usage(input=1_500)))
    before = conversation.tokens()
    conversation.say("y" * 2_000)
    added = conversation.tokens() - before
    assert 1_500 <= before <= 1_520
    assert 990 <= added <= 1_020, "2 bytes a token, as the provider counted"


def test_a_single_result_cannot_overflow_the_window() -> None:
    conversation = Conversation(Context(), 8_000)
    conversation.say("task")
    for number in count(1):
        room = conversation.room(20_000)
        if room < 20_000:
            break
        turn(conversation, number, [4_000])
    assert 1_000 <= room < 20_000
    assert conversation.tokens() + room / 3 <= 8_000


def test_digests_tell_requests_apart() -> None:
    one, two = Conversation(Context(), None), Conversation(Context(), None)
    for conversation in (one, two):
        conversation.say("task")
    assert one.digest() == two.digest()
    two.say("more")
    assert one.digest() != two.digest()
