from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.backbones import OTHERS, make_backbone
from harness.errors import UserError
from tests.support.server import ScriptedServer, say
from tests.support.talk import request


@pytest.fixture(autouse=True)
def no_config(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.touch()
    monkeypatch.setenv("HARNESS_CONFIG", str(path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return path


def test_a_profile_behind_another_url(no_config):
    with ScriptedServer([say("hello")]) as server:
        model, profile = make_backbone("gpt-4o", base_url=server.url, overrides={"temperature": 0.1})
        reply = model.complete(request())
        model.close()
    assert reply.entry.text == "hello"
    assert (profile.endpoint, profile.name) == (server.url, "gpt-4o")
    assert (server.requests[0].body["model"], server.requests[0].body["temperature"]) == ("gpt-4o", 0.1)


def test_an_id_with_a_colon_is_a_model_where_there_is_a_url():
    model, profile = make_backbone("qwen3:8b", base_url="http://localhost:11434/v1")
    model.close()
    assert profile.model == "qwen3:8b"
    with pytest.raises(UserError, match="unknown model 'qwen3:8b'"):
        make_backbone("qwen3:8b")


def test_unknown_models_name_all_kinds():
    with pytest.raises(UserError, match="unknown model 'replay'") as error:
        make_backbone("replay")
    assert all(name in error.value.hint for name in (*OTHERS, "gpt-6-luna"))


def test_a_missing_key_is_the_users_mistake():
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        make_backbone("gpt-6-luna")


def test_a_profile_without_an_endpoint():
    with pytest.raises(UserError, match="has no endpoint"):
        make_backbone("gpt-4o", overrides={"endpoint": "none"})


@pytest.mark.parametrize("name", ["manual", "demo", "scripted:x", "replay:x"])
def test_a_base_url_means_nothing_to_recorded_words(name):
    with pytest.raises(UserError, match="--base-url"):
        make_backbone(name, base_url="http://localhost:1/v1")


def test_a_script_by_name_with_settings(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"role": "assistant", "content": "ANSWER: [1]"}) + "\n")
    model, profile = make_backbone(f"scripted:{path}", overrides={"window": 9000, "prices": {"input": 1, "output": 2}})
    assert model.complete(request()).entry.text == "ANSWER: [1]"
    assert (profile.window, profile.prices.output, profile.key_variable) == (9000, 2.0, None)
    with pytest.raises(UserError, match="unknown key 'windo'"):
        make_backbone(f"scripted:{path}", overrides={"windo": 1})


def test_words_from_files_need_no_openai_import(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"role": "assistant", "content": "x"}) + "\n")
    program = (
        "import sys; from harness.backbones import make_backbone; import harness.backbones.replay;"
        f"make_backbone('scripted:{path}'); make_backbone('manual'); print('openai' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, stdin=subprocess.PIPE
    )
    assert ran.stdout.strip() == "False"


def test_the_demo_is_recorded_over_questions_of_the_sample(biogo):
    notices: list[str] = []
    model, profile = make_backbone("demo", notice=notices.append)
    assert notices == ["demo: recorded turns, no model is asked; their commands run live in the sandbox"]
    questions = {row["id"]: row["query"] for row in biogo.queries()}
    known = [query_id for query_id, query in questions.items() if model.knows(query_id, query)]
    assert len(known) >= 5
    for query_id in known:
        reply = model.complete(request(query_id=query_id, query=questions[query_id]))
        assert reply.finish == "tool_calls"
    assert not profile.needs_key
