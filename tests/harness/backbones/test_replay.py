"""Saved words against new results; trajectories are written by the harness's own writer."""

from __future__ import annotations

import json
import os

import pytest

from harness.backbones import make_backbone
from harness.backbones.replay import ReplayBackbone, recordings_of_run, window_of_run
from harness.errors import BackboneError, UserError
from harness.events import trajectory_path
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.observe import Observation
from harness.trajectory import TrajectoryWriter
from tests.support.talk import answer_calls, request, result, user


def record(run, query_id="q1", agent=0, attempt=0, query="question", word="", turns=("ls", "cat x")):
    """A trajectory of some commands and an answer."""
    with TrajectoryWriter(run / trajectory_path(query_id, agent, attempt), run / "blobs") as log:
        log.write(
            "start", query_id=query_id, agent=agent, attempt=attempt, query=query, mode="files", prompt="", tools=[]
        )
        for turn, command in enumerate(turns, 1):
            call = ToolCall(f"c{turn}", "bash", json.dumps({"command": command}))
            raw = {"role": "assistant", "content": word, "extra": turn}
            reply = Reply(Entry("assistant", word, (call,), raw=raw), "tool_calls", Usage(100 * turn, None, 5, None))
            log.reply(turn, reply)
            log.result(turn, call, {"command": command}, Observation(f"output of {command}"))
        log.reply(len(turns) + 1, Reply(Entry("assistant", f"ANSWER: [{agent}{attempt}]"), "stop"))


def replay(run):
    return ReplayBackbone("replay:x", recordings_of_run(run))


def test_a_conversation_is_repeated_with_its_own_words_ids_and_usage(tmp_path):
    record(tmp_path, word="hm")
    model = replay(tmp_path)
    entries = [user()]
    first = model.complete(request(*entries))
    assert (first.entry.text, first.finish, first.usage) == ("hm", "tool_calls", Usage(100, None, 5, None))
    assert first.entry.calls == (ToolCall("c1", "bash", '{"command": "ls"}'),)
    assert first.entry.raw["extra"] == 1
    entries += answer_calls(first, ["output of ls"])
    second = model.complete(request(*entries, turn=2))
    entries += answer_calls(second, ["output of cat x"])
    last = model.complete(request(*entries, turn=3))
    assert (last.entry.text, last.finish) == ("ANSWER: [00]", "stop")
    assert [reply.notes for reply in (first, second, last)] == [(), (), ()]


def test_a_result_that_differs_is_noted_where_it_begins_to(tmp_path):
    record(tmp_path)
    model = replay(tmp_path)
    entries = [user(), *answer_calls(model.complete(request()), ["output of xs"])]
    second = model.complete(request(*entries, turn=2))
    assert second.notes == (
        {
            "kind": "replay_difference",
            "turn": 1,
            "call_id": "c1",
            "position": 10,
            "recorded": "ls",
            "shown": "xs",
        },
    )
    entries += answer_calls(second, ["output of cat x and more"])
    (note,) = model.complete(request(*entries, turn=3)).notes
    assert (note["turn"], note["position"], note["recorded"], note["shown"]) == (2, 15, "", " and more")


def test_a_result_that_was_not_recorded_is_a_difference(tmp_path):
    record(tmp_path)
    model = replay(tmp_path)
    entries = [user(), model.complete(request()).entry, result("c1", "output of ls"), result("c9", "new"), user("note")]
    (note,) = model.complete(request(*entries, turn=2)).notes
    assert (note["call_id"], note["recorded"]) == ("c9", None)


def test_each_attempt_has_its_recording_and_others_the_nearest(tmp_path):
    for agent, attempt in ((0, 0), (0, 1), (1, 0)):
        record(tmp_path, agent=agent, attempt=attempt, turns=())
    model = replay(tmp_path)

    def answer(agent, attempt):
        return model.complete(request(agent=agent, attempt=attempt)).entry.text

    assert answer(0, 0) == "ANSWER: [00]"
    assert answer(0, 1) == answer(0, 2) == "ANSWER: [01]"
    assert answer(1, 0) == answer(1, 5) == "ANSWER: [10]"
    assert answer(7, 0) == "ANSWER: [01]"


def test_what_is_not_recorded_says_so(tmp_path):
    record(tmp_path, turns=())
    model = replay(tmp_path)
    with pytest.raises(BackboneError, match="no recording of question 'q9'"):
        model.complete(request(query_id="q9"))
    with pytest.raises(BackboneError, match="answers another question"):
        model.complete(request(query="else"))
    entries = [user(), *answer_calls(model.complete(request())), user("go on")]
    with pytest.raises(BackboneError, match=r"'q1' ends after 1 turn$"):
        model.complete(request(*entries, turn=2))


def test_the_questions_it_knows(tmp_path):
    for query_id in ("b", "a/../b", "a"):
        record(tmp_path, query_id=query_id)
    model = replay(tmp_path)
    assert all(model.knows(query_id, "question") for query_id in ("a", "b", "a/../b"))
    assert not model.knows("c", "question")
    assert not model.knows("a", "another question")


def test_a_recording_torn_by_a_crash_is_used_up_to_there(tmp_path):
    record(tmp_path)
    path = recordings_of_run(tmp_path)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    model = replay(tmp_path)
    entries = [user(), *answer_calls(model.complete(request()), ["output of ls"])]
    with pytest.raises(BackboneError, match=r"ends after 1 turn$"):
        model.complete(request(*entries, turn=2))


@pytest.mark.parametrize(
    "changed",
    [{"finish": "odd"}, {"calls": [{"id": "x"}]}, {"usage": {"tokens": 1}}, {"calls": 7}, {"usage": None}],
)
def test_a_damaged_recording_is_an_error_of_the_backbone(tmp_path, changed):
    record(tmp_path)
    path = recordings_of_run(tmp_path)[0]
    lines = path.read_bytes().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | changed).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(BackboneError, match="can't be read"):
        replay(tmp_path).complete(request())


@pytest.mark.parametrize("content", ["", "{}\n", "not json\n", "[]\n", '{"type": "start"}\n'])
def test_a_file_that_is_no_trajectory_is_the_users_mistake(tmp_path, content):
    path = tmp_path / "trajectories" / "q" / "0-0.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(UserError, match="is not a trajectory"):
        replay(tmp_path)


def test_a_run_by_name_with_the_window_of_its_model(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CONFIG", os.devnull)
    record(tmp_path)
    assert make_backbone(f"replay:{tmp_path}")[1].window == 128_000
    (tmp_path / "manifest.json").write_text('{"model": {"window": 32000}}')
    model, profile = make_backbone(f"replay:{tmp_path}")
    assert (profile.window, profile.needs_key, profile.endpoint) == (32_000, False, None)
    assert model.complete(request()).finish == "tool_calls"
    (tmp_path / "manifest.json").write_text("{")
    assert window_of_run(tmp_path) is None
    with pytest.raises(UserError, match="no trajectories"):
        make_backbone(f"replay:{tmp_path}/absent")
