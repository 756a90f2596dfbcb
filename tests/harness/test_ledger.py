"""The ledger, its retry policy, and what a crash leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ledger import AgentState, AttemptRecord, Ledger, RetryPolicy, StopReason, fold, read_ledger, total_usage


def record(stop: StopReason, attempt: int = 0, query: str = "q", **counts: int) -> AttemptRecord:
    return AttemptRecord(query, 0, attempt, stop, ids=(1, 2), counts=counts)


def state(*stops: StopReason) -> AgentState:
    return AgentState("q", 0, tuple(record(stop, number) for number, stop in enumerate(stops)))


@pytest.mark.parametrize(
    ("stops", "policy", "is_open"),
    [
        ((), "none", True),
        (("answered",), "timeout", False),
        (("no_answer",), "timeout", False),
        (("refused",), "timeout", False),
        (("context_overflow",), "timeout", False),
        (("backbone_error",), "infra", True),
        (("backbone_error",), "timeout", True),
        (("backbone_error",), "none", False),
        (("sandbox_lost", "backbone_error"), "infra", True),
        (("backbone_error",) * 3, "infra", False),
        (("time_limit",), "infra", False),
        (("time_limit",), "timeout", True),
        (("time_limit",) * 3, "timeout", False),
        (("interrupted",), "none", True),
        (("interrupted",) * 9, "infra", True),
        (("backbone_error", "interrupted", "backbone_error"), "infra", True),
        (("backbone_error", "interrupted", "backbone_error", "backbone_error"), "infra", False),
        (("backbone_error", "answered"), "infra", False),
    ],
)
def test_which_attempts_are_due(stops: tuple[StopReason, ...], policy: RetryPolicy, is_open: bool) -> None:
    assert state(*stops).is_open(policy) is is_open


def test_a_sandbox_lost_under_a_command_is_retried_once() -> None:
    lost = [record("sandbox_lost", number, lost_in_call=1) for number in range(2)]
    assert AgentState("q", 0, tuple(lost[:1])).is_open("infra")
    assert not AgentState("q", 0, tuple(lost)).is_open("infra")


@pytest.mark.parametrize("why", ["request_rejected", "endpoint_unreached"])
def test_a_question_that_never_came_to_the_model_is_asked_again_by_a_later_session_only(why: str) -> None:
    rejected = [record("backbone_error", number, **{why: 1}) for number in range(4)]
    for count in range(1, 5):
        asked = AgentState("q", 0, tuple(rejected[:count]))
        assert not asked.is_open("infra")
        assert asked.is_open("infra", anew=True)
        assert not asked.is_open("none", anew=True)
    then = AgentState("q", 0, (*rejected, record("backbone_error", 4), record("backbone_error", 5)))
    assert then.is_open("infra"), "what was never asked is no retry"


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    records = [record("answered", query=name) for name in ("a", "ü/..", "line\nbreak")]
    ledger = Ledger(tmp_path)
    for one in records:
        ledger.append(one)
    assert read_ledger(tmp_path) == records
    assert set(fold(records)) == {("a", 0), ("ü/..", 0), ("line\nbreak", 0)}


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_torn_last_line_is_set_aside_and_never_appended_to(tmp_path: Path, cut: int) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(record("answered"))
    ledger.append(record("answered", query="torn"))
    path = tmp_path / "attempts.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    torn = ledger.set_aside_torn_line()
    assert torn is not None
    ledger.append(record("no_answer", query="next"))
    assert [one.query_id for one in read_ledger(tmp_path)] == ["q", "next"]
    assert whole[:-cut].endswith((tmp_path / torn).read_bytes())
    assert ledger.set_aside_torn_line() is None


def test_a_bad_line_in_the_middle_is_named(tmp_path: Path) -> None:
    Ledger(tmp_path).append(record("answered"))
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    with pytest.raises(ValueError, match=r"attempts\.jsonl:1"):
        read_ledger(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b"null {"),
        (b'{"query_id"', b'[{"query_id"'),
        (b'"turns":0', b'"turns":"x"'),
        (b'"turns":0', b'"turns":null'),
        (b'"ids":[1,2]', b'"ids":"12"'),
        (b'"ids":[1,2]', b'"ids":[1,"2"]'),
        (b'"stop_reason":"answered"', b'"stop_reason":"lost"'),
        (b'"stop_reason":"answered"', b'"stop_reason":[]'),
        (b'"wall":0.0', b'"wall":"0.0"'),
        (b'"wall":0.0', b'"wal":0.0'),
        (b'"usage":{}', b'"usage":[]'),
        (b'"counts":{}', b'"counts":{"calls":"\\u001b[31m"}'),
        (b'"query_id":"q"', b'"query_id":7'),
        (b'"query_id":"q",', b""),
    ],
)
def test_a_line_of_other_types_is_no_attempt(tmp_path: Path, old: bytes, new: bytes) -> None:
    Ledger(tmp_path).append(record("answered"))
    path = tmp_path / "attempts.jsonl"
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"attempts\.jsonl:1: not an attempt") as error:
        read_ledger(tmp_path)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("value", [b"null", b"[]", b"7", b'"text"'])
def test_a_line_that_is_no_object_is_no_attempt(tmp_path: Path, value: bytes) -> None:
    (tmp_path / "attempts.jsonl").write_bytes(value + b"\n")
    with pytest.raises(ValueError, match=r"attempts\.jsonl:1: not an attempt: no JSON object"):
        read_ledger(tmp_path)


def test_usage_is_null_only_where_nobody_said() -> None:
    total = total_usage([{"input": 5, "cached": None}, {"input": 7, "cached": None, "output": 1}])
    assert total == {"input": 12, "cached": None, "output": 1, "reasoning": None}
