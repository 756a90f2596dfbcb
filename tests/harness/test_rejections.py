"""Attempts that fail for the endpoint's sake: said once, and what the endpoint rejects is not asked over and over."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from exporter import Export
from harness.backbones.http import HttpBackbone
from harness.errors import BackboneError, EndpointUnreached, RequestRejected
from harness.ledger import AttemptRecord
from harness.messages import Reply, Request
from harness.questions import Question
from harness.runner import execute
from harness.schemas import check_run
from sandbox import Backend
from tests.support.running import Make, Notes, maker, run
from tests.support.server import ScriptedServer, refuse
from tests.support.talk import profile
from tests.support.words import Words, bash, calls, says


@pytest.fixture
def make(biogo: Export, bwrap: Backend, tmp_path: Path) -> Make:
    return maker(biogo, bwrap, tmp_path / "run")


def test_a_failure_is_explained_once_for_each_reason(make: Make) -> None:
    def moody(request: Request) -> Reply:
        odd = request.query == config.questions.questions[1].text
        raise BackboneError(
            "no route" if odd else f"no reply in the {request.key.attempt + 5} s, id req_{request.turn}a"
        )

    config = make(Words([moody]), count=3, workers=1)
    _, notes = run(config)
    first, second = (question.id for question in config.questions.questions[:2])
    said = [text for text in notes.texts if "failed" in text]
    assert said == [f"{first} failed: no reply in the 5 s, id req_1a", f"{second} failed: no route"]


def test_a_request_rejected_before_any_reply_stops_the_run_and_resume_asks_again(make: Make) -> None:
    with ScriptedServer(lambda _: refuse(404, "The model `nope` does not exist")) as server:
        config = make([], count=5, workers=1)
        for resume in (False, True, True, True):
            notes = Notes()
            with pytest.raises(RequestRejected, match="status 404: The model `nope` does not exist"):
                execute(replace(config, resume=resume, backbone=HttpBackbone(profile(server.url))), notes)
            assert [record.stop_reason for record in notes.records] == ["backbone_error"]
        assert server.count == 4
    outcome, _ = run(replace(config, resume=True, backbone=Words([says("ANSWER: [1]")])))
    assert (outcome.scored, outcome.failed) == (5, 0)


@pytest.mark.parametrize("count", [2, 6])
def test_one_question_whose_request_is_rejected_does_not_stop_the_run(make: Make, count: int) -> None:
    """The rejection comes first, while the model is still at another question."""
    asked, rejected = threading.Event(), threading.Event()

    class Watch(Notes):
        def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
            super().attempt_finished(record, question)
            rejected.set()

    def odd(request: Request) -> Reply:
        if request.query == config.questions.questions[1].text:
            asked.wait(60)
            raise RequestRejected("status 400: invalid unicode")
        asked.set()
        rejected.wait(60)
        return says("ANSWER: [1]")

    backbone, notes = Words([odd]), Watch()
    config = make(backbone, count=count, workers=2)
    outcome = execute(config, notes)
    assert (outcome.scored, outcome.failed) == (count - 1, 1)
    assert len(backbone.requests) == count, "not asked a second time"
    assert [text for text in notes.texts if "400" in text] == [
        f"{config.questions.questions[1].id} failed: status 400: invalid unicode"
    ]
    assert list(check_run(config.out)) == []


@pytest.mark.parametrize(("price", "cost"), [(None, None), (0.5, 0.0)])
def test_a_failed_attempt_costs_nothing_only_where_prices_are_known(
    make: Make, price: float | None, cost: float | None
) -> None:
    config = make(Words([BackboneError("down")]), count=1, retry="none", cost_of=lambda _: price)
    _, notes = run(config)
    assert [record.cost for record in notes.records] == [cost]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_endpoint_that_never_was_there_stops_the_run_and_resume_goes_on(make: Make, workers: int) -> None:
    with socket.socket() as held:  # bound, not listening: refused, and taken by nobody else
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        config = make([], count=8, workers=workers)
        for resume in (False, True, True, True):
            notes, backbone = Notes(), HttpBackbone(profile(url))
            with pytest.raises(EndpointUnreached, match=r"connection failed: .*refused.*\(3 tries\)") as error:
                execute(replace(config, resume=resume, backbone=backbone), notes)
            assert "whether the server runs" in error.value.hint
            assert {record.stop_reason for record in notes.records} <= {"backbone_error", "interrupted"}
            assert 1 <= len(notes.records) <= workers + 1
    outcome, _ = run(replace(config, resume=True, backbone=Words([says("ANSWER: [1]")])))
    assert (outcome.scored, outcome.failed) == (8, 0)


def test_an_endpoint_that_is_not_there_any_more_stops_a_resumed_run_too(make: Make) -> None:
    config = make([says("ANSWER: [1]")], count=1)
    run(config)
    more = replace(config, resume=True, questions=make([], count=4).questions)
    backbone = Words([EndpointUnreached("connection refused")])
    with pytest.raises(EndpointUnreached):
        execute(replace(more, backbone=backbone, workers=1), Notes())
    assert len(backbone.requests) == 1


def test_many_workers_stop_at_the_second_rejection(make: Make) -> None:
    backbone = Words([RequestRejected("status 404: no such model")])
    config = make(backbone, count=12, workers=4)
    with pytest.raises(RequestRejected):
        execute(config, Notes())
    assert len(backbone.requests) <= 5


def test_a_request_rejected_in_a_later_turn_does_not_stop_the_run(make: Make) -> None:
    config = make([calls(bash("true")), RequestRejected("status 400: no tool results here")], count=2)
    outcome, notes = run(config)
    assert outcome.failed == 2
    assert [record.turns for record in notes.records] == [2, 2]
