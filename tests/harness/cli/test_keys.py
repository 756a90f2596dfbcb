"""A key lives in the harness's process alone: not in a run folder, a log, an error or the sandbox."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from exporter import Export
from tests.support.cli import HARNESS, HARNESS_ENV, SMALL
from tests.support.runs import make_export
from tests.support.server import Behaviour, Received, ScriptedServer, refuse
from tests.support.voices import Chat, Responses, Voice

KEY = "canary-key-90210-do-not-keep"
LOOK = (
    "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n';"
    " rg -uuu -l canary-key /graph /scratch /tmp /sandbox 2>&1; seq 30000; exit 0"
)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def harness(*arguments: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A process of its own, with the client's own log at its most talkative."""
    env = {**HARNESS_ENV, "OPENAI_API_KEY": KEY, "OPENAI_LOG": "debug"}
    return subprocess.run([*HARNESS, *arguments], cwd=folder, env=env, capture_output=True, check=False)


def nowhere(done: subprocess.CompletedProcess[bytes], folder: Path, server: ScriptedServer) -> None:
    """The endpoint got the key, and nobody else did."""
    assert server.requests and all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.requests)
    assert KEY.encode() not in done.stdout + done.stderr
    assert not any(KEY.encode() in request.raw for request in server.requests)
    assert [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize(
    ("mode", "voice", "streamed"),
    [
        ("files", Chat(), False),
        ("files", Responses(), True),
        ("tools-code", Chat(), True),
        ("tools", Responses(), False),
    ],
    ids=["files", "files-responses-streamed", "tools-code-streamed", "tools-responses"],
)
def test_a_key_that_the_endpoint_echoes_is_in_no_file_and_no_sandbox(
    export: Export, tmp_path: Path, mode: str, voice: Voice, streamed: bool
) -> None:
    def made(behaviour: Behaviour) -> Behaviour:
        sent = voice.streamed(behaviour) if streamed else behaviour
        return replace(sent, headers={**sent.headers, "X-Your-Key": KEY})

    def script(received: Received) -> Behaviour:
        if received.number == 1:
            return refuse(500, f"key {KEY} met an error", headers={"X-Your-Key": KEY})
        if received.turn == 1:
            tool = (
                ("search", json.dumps({"query": KEY})) if mode == "tools" else ("bash", json.dumps({"command": LOOK}))
            )
            return made(voice.calls((f"call-{KEY}", *tool)))
        if received.number < 4:
            return made(voice.says(f"{KEY}? ANSWER: [0]"))
        return refuse(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key", headers={"X-Your-Key": KEY})

    with ScriptedServer(script) as server:
        flags = ["--graph", str(export.path), "--mode", mode, "--sandbox", "bwrap", "--out", "run", "--workers", "1"]
        settings = ("model.backoff=0.001", f"model.api={voice.api}", f"model.stream={str(streamed).lower()}")
        flags += [word for setting in settings for word in ("--set", setting)]
        done = harness("run", *flags, *SMALL, "--model", "m", "--base-url", server.url, "--limit", "2", folder=tmp_path)
    nowhere(done, tmp_path, server)
    assert done.returncode == 2
    assert b"error: " in done.stderr and b"[key]" in done.stderr
    trajectories = b"".join(path.read_bytes() for path in (tmp_path / "run" / "trajectories").rglob("*.jsonl"))
    assert b"call-[key]" in trajectories and b"[key]? ANSWER" in trajectories
    if mode != "tools":
        assert b"SCRATCH" in trajectories, "the command looked around in the sandbox's environment"
        assert b"the whole output is in outputs/" in trajectories
        assert any((tmp_path / "run" / "blobs").rglob("*")), "what it printed is kept whole"


def test_a_probe_keeps_the_key_too(tmp_path: Path) -> None:
    with ScriptedServer([refuse(403, f"{KEY} may not do this")]) as server:
        done = harness("models", "m", "--base-url", server.url, "--probe", "--json", folder=tmp_path)
    nowhere(done, tmp_path, server)
    assert b"[key] may not do this" in done.stdout
