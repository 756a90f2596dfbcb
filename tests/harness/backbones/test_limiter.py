from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime

import pytest

from harness.backbones.limiter import Limiter, backoff, clock, retry_after
from harness.errors import BackboneError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "3", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, 60.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05"}, 60.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:00:00 GMT"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, 1e9),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "what", "retry-after": "2"}, 2.0),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, NOW) == seconds


def test_backoff_doubles_with_jitter_up_to_a_limit():
    for tries, whole in ((1, 1.0), (2, 2.0), (5, 16.0), (9, 60.0), (5000, 60.0)):
        waits = [backoff(tries, 1.0, 60.0) for _ in range(200)]
        assert all(0.75 * whole <= wait <= whole for wait in waits)
        assert len(set(waits)) > 1


def test_a_time_of_day_has_its_date_where_that_is_not_todays():
    assert re.fullmatch(r"\d\d:\d\d:\d\d", clock(0.0))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", clock(30 * 3600.0))
    assert clock(1e9) > clock(9e8)


def test_one_hold_holds_all():
    limiter = Limiter()
    limiter.hold(0.3, "told to")
    began = time.monotonic()
    ends: list[float] = []

    def work() -> None:
        limiter.enter()
        ends.append(time.monotonic())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 8
    assert min(ends) - began >= 0.29


def test_a_shorter_hold_does_not_end_a_longer_one():
    limiter = Limiter()
    began = time.monotonic()
    limiter.hold(0.3, "long")
    limiter.hold(0.01, "short")
    limiter.enter()
    assert time.monotonic() - began >= 0.29


def test_a_hold_reaches_those_who_wait_already():
    limiter = Limiter()
    began = time.monotonic()
    ended: list[float] = []
    waiter = threading.Thread(target=lambda: (limiter.enter(0.05), ended.append(time.monotonic())))
    waiter.start()
    limiter.hold(0.4, "meanwhile")
    waiter.join()
    assert ended[0] - began >= 0.39


def test_stopping_ends_all_waits():
    limiter = Limiter()
    limiter.hold(3600, "an hour")
    failures: list[BackboneError] = []

    def work() -> None:
        with pytest.raises(BackboneError, match="stopped") as error:
            limiter.enter()
        failures.append(error.value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    limiter.stop()
    for thread in threads:
        thread.join(60)
    assert len(failures) == 4


def test_a_refusal_halves_the_requests_at_a_time_and_successes_raise_them():
    told: list[str] = []
    limiter = Limiter(told.append)
    for _ in range(8):
        limiter.enter()
    sent = time.monotonic()
    limiter.leave(succeeded=False)
    limiter.slow_down(sent, "host: 429")
    for _ in range(5):  # the same burst
        limiter.leave(succeeded=False)
        limiter.slow_down(sent, "host: 429")
    assert told == ["host: 429: 4 requests at a time instead of 8"]
    limiter.enter()
    limiter.enter()  # four are under way
    fifth = threading.Event()
    waiting = threading.Thread(target=lambda: (limiter.enter(), fifth.set()))
    waiting.start()
    assert not fifth.wait(0.1)
    limiter.leave(succeeded=True)
    assert fifth.wait(60)
    waiting.join()
    for _ in range(30):  # 4 + 5 + 6 + 7 successes lift it
        limiter.leave(succeeded=True)
        limiter.enter()
    for _ in range(20):
        limiter.enter()


def test_a_refusal_of_the_only_request_leaves_one():
    told: list[str] = []
    limiter = Limiter(told.append)
    limiter.enter()
    limiter.leave(succeeded=False)
    limiter.slow_down(time.monotonic(), "host")
    limiter.enter()
    assert told == []


def test_a_long_hold_is_announced_once_with_its_end():
    told: list[str] = []
    limiter = Limiter(told.append)
    limiter.hold(1.0, "short")
    for _ in range(8):
        limiter.hold(3600, "host: status 429")
    assert len(told) == 1
    assert told[0].startswith("host: status 429: all requests wait until ")
    assert "(1:00:00)" in told[0]
