"""What refusals mean, in the wordings that providers use."""

from __future__ import annotations

import json

import pytest

from harness.backbones.faults import Trouble, from_status
from harness.errors import ContextOverflow, KeyRejected, QuotaExhausted, RequestRejected
from tests.support.wordings import OVERFLOWS, error


def judge(status, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_status(status, data, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_overflow(status, body):
    assert isinstance(judge(status, body), ContextOverflow)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, error("You exceeded your current quota", code="insufficient_quota"), QuotaExhausted),
        (429, error("You exceeded your current quota, please check your plan and billing details."), QuotaExhausted),
        (402, {"error": {"message": "Insufficient Balance"}}, QuotaExhausted),
        (400, error("Your credit balance is too low to access the API"), QuotaExhausted),
        (402, {"error": {"code": 402, "message": "This request requires more credits"}}, QuotaExhausted),
        (401, error("Incorrect API key provided", code="invalid_api_key"), KeyRejected),
        (403, {"detail": "forbidden"}, KeyRejected),
        (404, error("The model `x` does not exist", code="model_not_found"), RequestRejected),
        (400, error("Unsupported parameter: temperature"), RequestRejected),
        (307, b"", RequestRejected),
    ],
)
def test_refusals_that_no_retry_mends(status, body, kind):
    found = judge(status, body)
    assert type(found) is kind
    assert f"status {status}" in str(found)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_statuses_worth_another_try(status):
    found = judge(status, b"<html>upstream</html>")
    assert isinstance(found, Trouble)
    assert (found.wait, found.shared) == (None, status == 429)


def test_waits_are_read_from_headers_and_from_messages():
    limited = judge(429, error("Rate limit reached"), retry_after="12")
    assert (limited.wait, limited.shared) == (12.0, True)
    overloaded = judge(503, error("overloaded"), retry_after_ms="250")
    assert (overloaded.wait, overloaded.shared) == (0.25, True)
    gemini = error("You exceeded your current quota, please check your plan. Please retry in 33.5s.")
    assert judge(429, gemini).wait == 33.5
    detail = {"error": {"message": "exceeded your current quota", "details": [{"retryDelay": "7s"}]}}
    assert judge(429, [detail]).wait == 7.0


def test_a_message_is_one_short_line_without_keys():
    found = judge(401, error("Incorrect API key provided:\nsk-proj-abc***4711. " + "x" * 1000))
    assert "\n" not in str(found)
    assert "sk-proj" not in str(found)
    assert len(str(found)) < 450


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"[[1]]", b'{"error": null}', b'{"error": [1]}', b"\xff\xfe", b"7"]
)
def test_bodies_in_no_known_form(body):
    assert isinstance(judge(500, body), Trouble)
    assert type(judge(400, body)) is RequestRejected
