"""Commands that list what there is: graphs and models."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export
from tests.support.server import ScriptedServer, by_turn, call, refuse, say

PROGRAM = "from harness.cli import main; main()"


class TestGraphs:
    def test_table_and_json(self, tmp_path: Path) -> None:
        make_export(tmp_path / "exports", name="mine")
        result = run_cli("graphs", "--data-dir", str(tmp_path))
        assert result.stdout.splitlines()[-1].split()[:4] == ["mine", "exported", "60", "30"]
        assert "3 test, 1 train, 1 val" in result.stdout
        listed = json.loads(run_cli("graphs", "--json", env={"HARNESS_DATA": str(tmp_path)}).stdout)
        assert (listed[0]["name"], listed[0]["state"]) == ("biogo", "embedded")
        assert listed[-1]["nodes"] == 60


class TestModels:
    def test_a_key_is_said_to_be_set_and_never_shown(self) -> None:
        env = {"OPENAI_API_KEY": "sk-very-secret-1234"}
        outputs = [
            run_cli("models", env=env), run_cli("models", "--json", env=env), run_cli("models", "gpt-5.2", env=env),
            run_cli("models", "gpt-5.2", "--json", env=env),
        ]  # fmt: skip
        assert all(output.code == 0 for output in outputs)
        assert not any("sk-very-secret" in output.stdout + output.stderr for output in outputs)
        assert "OPENAI_API_KEY is set" in outputs[0].stdout
        assert json.loads(outputs[3].stdout)["key_is_set"] is True

    def test_a_probe_says_what_the_endpoint_supports(self) -> None:
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}}
        turns = by_turn([say(calls=[call("report", {"number": 7})], usage=usage)])
        with ScriptedServer(turns, models=[{"id": "m", "max_model_len": 4096}]) as server:
            flags = ("models", "m", "--base-url", server.url, "--probe")
            text, as_json = run_cli(*flags), run_cli(*flags, "--json")
        assert (text.code, as_json.code, server.count) == (0, 0, 2)
        rows = {line[:16].strip(): line[16:] for line in text.stdout.splitlines()}
        assert (rows["tool calls"], rows["usage"]) == ("made when required", "input, cached, output")
        assert rows["context window"] == "4,096 tokens (profile: not told)"
        found = json.loads(as_json.stdout)
        assert (found["tools"], found["window"], found["error"]) == (True, 4096, None)

    def test_settings_go_over_the_profile(self) -> None:
        done = run_cli("models", "gpt-5.2", "--set", "model.effort=low", "--set", "model.prices.input=3", "--json")
        found = json.loads(done.stdout)
        assert (found["effort"], found["prices"]["input"], found["prices"]["output"]) == ("low", 3.0, 14.0)
        assert "extra_body = {}" in run_cli("models", "gpt-5.2").stdout.splitlines()
        with ScriptedServer([refuse(500)]) as server:
            flags = ("--base-url", server.url, "--set", "model.api=responses", "--probe", "--json")
            run_cli("models", "m", *flags)
        assert server.requests[0].path == "/v1/responses"
        mistake(
            run_cli("models", "gpt-5.2", "--set", "limits.turns=3"), "limits is no setting of a model", "effort=low"
        )
        mistake(run_cli("models", "--set", "model.effort=low"), "need the NAME of a model", "gpt-5.2")

    def test_a_probe_that_fails_is_infrastructure(self) -> None:
        with ScriptedServer(by_turn([refuse(500, "out of order")])) as server:
            flags = ("models", "m", "--base-url", server.url, "--probe")
            text, as_json = run_cli(*flags), run_cli(*flags, "--json")
        assert (text.code, as_json.code) == (3, 3)
        assert text.stderr.startswith("error: model 'm': ") and "out of order" in text.stderr
        assert "out of order" in json.loads(as_json.stdout)["error"]

    def test_a_probe_needs_a_name_and_a_key(self) -> None:
        mistake(run_cli("models", "--probe"), "need the NAME of a model", "gpt-5.2")
        mistake(run_cli("models", "gpt-5.2", "--probe", env={"OPENAI_API_KEY": None}), "OPENAI_API_KEY is not set")

    def test_an_unknown_model(self) -> None:
        mistake(run_cli("models", "gpt-52"), "unknown model 'gpt-52'", "gpt-5.2")
        mistake(run_cli("models", "demo", "--probe"), "model 'demo' is no profile", "asked without an endpoint")
