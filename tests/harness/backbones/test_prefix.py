"""What a provider's cache sees: a request begins with the whole of the one before, but where results were cleared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter import Export
from harness.backbones.dialect import Asked
from harness.backbones.http import DIALECTS, HttpBackbone
from harness.context import Conversation
from harness.events import read_events
from harness.messages import AttemptKey, Reply, Request, Usage
from harness.modes import Context
from harness.observe import Observation
from tests.support.cli import run_cli
from tests.support.server import Received, ScriptedServer
from tests.support.talk import TOOLS, profile
from tests.support.voices import Chat, Responses, Voice

VOICES = {"chat": Chat(), "responses": Responses()}
ARGUMENTS = st.sampled_from(['{"command": "ls"}', "{", "", '{"command": "é😀"}', None]) | st.text(max_size=20)
CALLS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), ARGUMENTS, st.integers(0, 9_000)), max_size=3)


def body(model: HttpBackbone, conversation: Conversation, turn: int) -> tuple[Request, bytes]:
    request = Request(AttemptKey("q", 0, 0), turn, "which?", conversation.view(), TOOLS)
    return request, b"".join(model.body(request))


def opened(whole: bytes) -> bytes:
    """A request without what ends it."""
    assert whole.endswith(b"]}")
    return whole.removesuffix(b"]}")


@pytest.mark.parametrize("api", VOICES)
@settings(max_examples=60, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=25), st.integers(2_000, 30_000), st.sampled_from(["marks", "sliding"]))
def test_a_request_begins_with_the_one_before_unless_results_were_cleared(
    api: str, turns: list[list[tuple[str | None, Any, int]]], window: int, policy: Any
) -> None:
    voice, dialect = VOICES[api], DIALECTS[api]
    model = HttpBackbone(profile("http://127.0.0.1:1/v1", api=api))
    conversation = Conversation(Context(policy=policy, sliding_from=20_000), window)
    conversation.say("the task")
    before = b""
    for number, calls in enumerate(turns, 1):
        clearing = conversation.clear(number, lambda _: "outputs/001.txt")
        request, now = body(model, conversation, number)
        assert clearing is not None or now.startswith(before)
        assert json.loads(now), "what is sent is JSON"
        before = opened(now)
        said = voice.calls(*((id_, "bash", given) for id_, given, _ in calls)) if calls else voice.says("hm")
        parsed = dialect.parse(said.body, Asked.by(request))
        conversation.reply(Reply(parsed.entry, parsed.finish, Usage(input=len(now) // 4)))
        for call, (_, _, size) in zip(parsed.entry.calls, calls, strict=True):
            conversation.result(call.id, number, Observation("x" * size, whole=b"x" * size))
        if not calls:
            conversation.say("go on")
    model.close()


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("api", VOICES)
def test_so_it_is_over_the_wire(api: str, biogo: Export, tmp_path: Path) -> None:
    voice: Voice = VOICES[api]

    def script(received: Received) -> Any:
        usage = {"prompt_tokens": len(received.raw) // 4, "completion_tokens": 5}
        if received.turn == 25:
            return voice.says("ANSWER: [1]", usage=usage)
        print_ = json.dumps({"command": f"seq {received.turn} 700; echo '{{'"})
        return voice.calls((f"c{received.turn}", "bash", print_), ("again", "bash", "{"), usage=usage)

    with ScriptedServer(script) as server:
        flags = [
            "--graph",
            str(biogo.path),
            "--mode",
            "files",
            "--model",
            "m",
            "--base-url",
            server.url,
            "--limit",
            "1",
        ]
        window = ["--set", f"model.api={api}", "--set", "model.window=9_000", "--out", str(tmp_path / "run")]
        done = run_cli("run", *flags, *window, "--sandbox", "bwrap")
    assert done.code == 0, done
    (path,) = (tmp_path / "run" / "trajectories").rglob("*.jsonl")
    cleared = {event["turn"] for event in read_events(path) if event["type"] == "clear"}
    assert 2 <= len(cleared) <= 6
    bodies = [request.raw for request in server.requests]
    assert len(bodies) == 25
    broken = {n + 2 for n in range(24) if not bodies[n + 1].startswith(opened(bodies[n]))}
    assert broken == cleared
