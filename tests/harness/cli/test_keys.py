"""A key lives in the harness's process alone: not in a run folder, a log, an error or the sandbox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from exporter import Export
from tests.support.cli import HARNESS, HARNESS_ENV
from tests.support.runs import make_export
from tests.support.server import Behaviour, Received, ScriptedServer, bash, refuse, say

KEY = "canary-key-90210-do-not-keep"
LOOK = "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; rg -uuu -l canary-key /graph /scratch /tmp; exit 0"


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
def test_a_key_that_the_endpoint_echoes_is_in_no_file_and_no_sandbox(export: Export, tmp_path: Path) -> None:
    headers = {"X-Your-Key": KEY}

    def script(received: Received) -> Behaviour:
        if received.number == 1:
            return refuse(500, f"key {KEY} met an error", headers=headers)
        if received.turn == 1:
            return bash(LOOK, f"I was called with {KEY}", headers=headers)
        if received.number < 4:
            return say(f"{KEY}? ANSWER: [0]", headers=headers, top={"echo": {"authorization": f"Bearer {KEY}"}})
        return refuse(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key", headers=headers)

    with ScriptedServer(script) as server:
        flags = ["--graph", str(export.path), "--mode", "files", "--sandbox", "bwrap", "--out", "run", "--workers", "1"]
        set_ = ["--set", "model.backoff=0.001"]
        done = harness("run", *flags, "--model", "m", "--base-url", server.url, "--limit", "2", *set_, folder=tmp_path)
    nowhere(done, tmp_path, server)
    assert done.returncode == 2
    assert b"error: " in done.stderr and b"[key]" in done.stderr
    trajectories = b"".join(path.read_bytes() for path in (tmp_path / "run" / "trajectories").rglob("*.jsonl"))
    assert b"I was called with [key]" in trajectories
    assert b"SCRATCH" in trajectories, "the command looked around in the sandbox's environment"


def test_a_probe_keeps_the_key_too(tmp_path: Path) -> None:
    with ScriptedServer([refuse(403, f"{KEY} may not do this")]) as server:
        done = harness("models", "m", "--base-url", server.url, "--probe", "--json", folder=tmp_path)
    nowhere(done, tmp_path, server)
    assert b"[key] may not do this" in done.stdout
