"""Saved runs in other tools' formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from exporter import Export
from harness.convert import FORMATS, Source
from harness.convert.attempts import reasoning
from harness.errors import UserError
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, Ledger, Times
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.modes import load_mode
from harness.observe import Observation
from harness.schemas import validator
from harness.trajectory import TrajectoryWriter
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "atif-1.4.schema.json").read_text())
RAN = {
    "exit_code": 0, "termination": "exit", "total_bytes": 2, "lines": 1, "spill": None, "wall": 0.1, "cpu": 0.1,
    "memory": 9,
}  # fmt: skip


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def run(tmp_path: Path, export: Export) -> Path:
    """q1 with two parallel calls of which one is malformed, a clearing, a notice and reasoning; q2 retried."""
    attempts = {"q2": [Attempt(stop="backbone_error"), Attempt([Step("a", "4")], (8, 4))]}
    path = make_audited_run(tmp_path / "run", export, attempts)
    record = AttemptRecord(
        "q1", 0, 0, "answered", (0,), turns=2, cost=0.5, times=Times(wall=9.0, working=8.0), started=1_700_000_000.0,
        usage={"input": 300, "cached": 100, "output": 30, "reasoning": 10}, finished=1_700_000_009.0,
        trajectory=str(trajectory_path("q1", 0, 0)), limit="turn_limit",
    )  # fmt: skip
    with TrajectoryWriter(path / record.trajectory, path / "blobs") as log:
        tool = {"name": "bash", "description": "Run.", "parameters": {"type": "object"}}
        log.write(
            "start", query_id="q1", agent=0, attempt=0, query="Which?", mode="files", prompt="P: Which?", tools=[tool],
            system="You search.",
        )  # fmt: skip
        calls = (ToolCall("c1", "bash", '{"command": "ls"}'), ToolCall("c2", "bash", '{"command": '))
        raw = {"content": "I look.", "reasoning_content": "Hm."}
        log.reply(
            1, Reply(Entry("assistant", "I look.", calls, raw=raw), "tool_calls", Usage(100, 50, 20, 10), latency=1.5)
        )
        log.result(1, calls[0], {"command": "ls"}, Observation("[exit code 0]\nx", exec=RAN))
        log.result(1, calls[1], None, Observation("[error: no JSON]", error="malformed_arguments"))
        log.write("clear", turn=2, call_ids=["c1"], tokens_before=9, tokens_after=1)
        log.write("notice", turn=2, text="Answer now.")
        log.reply(2, Reply(Entry("assistant", "ANSWER: [0]"), "stop", Usage(200, 50, 10, None)))
        log.write("answer", text="ANSWER: [0]", ids=[0], repairs=[], rejected=[])
        log.write("end", stop_reason="answered", limit="turn_limit", error=None)
    Ledger(path).append(record)
    return path


def converted(run: Path, form: str, out: Path) -> int:
    source = Source.open(run)
    return FORMATS[form][0](source, source.read(source.counted()), out)


def test_atif(run: Path, tmp_path: Path) -> None:
    assert converted(run, "atif", tmp_path / "out") == 2
    found = {
        str(path.relative_to(tmp_path / "out")): json.loads(path.read_text())
        for path in (tmp_path / "out").rglob("*.json")
    }
    assert set(found) == {"q1/0-0.json", "q2/0-1.json"}
    for document in found.values():
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
    one = found["q1/0-0.json"]
    assert [(step["step_id"], step["source"]) for step in one["steps"]] == [
        (1, "system"), (2, "user"), (3, "agent"), (4, "system"), (5, "user"), (6, "agent"),
    ]  # fmt: skip
    agent = one["steps"][2]
    assert (agent["message"], agent["reasoning_content"]) == ("I look.", "Hm.")
    assert [call["arguments"] for call in agent["tool_calls"]] == [{"command": "ls"}, {}]
    assert [result["source_call_id"] for result in agent["observation"]["results"]] == ["c1", "c2"]
    assert agent["extra"]["arguments_as_written"] == {"c2": '{"command": '}
    assert agent["extra"]["results"]["c1"]["exec"] == RAN
    assert agent["metrics"] == {
        "prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 50, "extra": {"reasoning_tokens": 10},
    }  # fmt: skip
    assert one["final_metrics"]["total_cost_usd"] == 0.5
    assert one["final_metrics"]["total_steps"] == 6
    assert one["extra"]["ids"] == [0]


def test_the_schema_refuses_what_atif_refuses() -> None:
    step = {"step_id": 1, "source": "user", "message": "x"}
    base = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": [step]}
    valid = jsonschema.Draft202012Validator(SCHEMA)
    assert valid.is_valid(base)
    for wrong in (
        {**step, "tool_calls": []},
        {**step, "more": 1},
        {**step, "step_id": 0},
        {"step_id": 1, "source": "user"},
    ):
        assert not valid.is_valid({**base, "steps": [wrong]})


def test_inspect_reads_its_log(run: Path, tmp_path: Path) -> None:
    log_module: Any = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    assert converted(run, "inspect", tmp_path / "log.json") == 2
    log = log_module.read_eval_log(str(tmp_path / "log.json"))
    assert (log.status, log.eval.task, log.eval.model) == ("success", "small-files", "m")
    assert (log.results.total_samples, log.results.completed_samples) == (2, 2)
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means == {"hit@1": 0.5, "hit@5": 1.0, "recall@20": 0.75, "mrr": 0.75}
    samples = {sample.id: sample for sample in log.samples}
    one = samples["q1"]
    assert (one.target, one.epoch, one.input) == (["0", "2"], 1, "Which?")
    roles = ["system", "user", "assistant", "tool", "tool", "user", "assistant"]
    assert [message.role for message in one.messages] == roles
    assert [call.function for call in one.messages[2].tool_calls] == ["bash", "bash"]
    assert one.messages[2].tool_calls[1].parse_error
    assert one.messages[4].error.type == "parsing"
    assert one.output.completion == "ANSWER: [0]"
    assert (one.limit.type, one.limit.limit, one.limit.reason) == ("turn", 300, "turn_limit")
    assert (one.scores["hit@1"].value, one.working_time, one.error) == (1.0, 8.0, None)
    usage = one.model_usage["m"]
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens) == (200, 100, 30)


def schema_of_events() -> Any:
    schema = validator("event").schema
    assert isinstance(schema, dict)
    return schema["allOf"]


def test_inspect_reads_mistakes_limits_and_failures(tmp_path: Path, export: Export) -> None:
    log_module: Any = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    (result,) = [rule["then"] for rule in schema_of_events() if rule["if"]["properties"]["type"]["const"] == "result"]
    kinds = result["properties"]["error"]["enum"][1:]
    mistakes = [Step(tool="x", output=kind, error=kind) for kind in kinds]
    ends = [Step("a", termination=ended) for ended in ("exit", "timeout", "oom", "output_limit")]
    attempts = {
        "q1": [Attempt([*mistakes, *ends], agent=0), Attempt(agent=1)],
        "q2": [Attempt(stop="sandbox_lost", extra={"error": "gone"}), Attempt(stop="sandbox_lost"), Attempt(ids=(4,))],
    }
    run = make_audited_run(
        tmp_path / "run", export, attempts, mode=load_mode("files", {"agents": {"count": 2}}).as_dict()
    )
    source = Source.open(run)
    FORMATS["inspect"][0](source, source.read(source.records), tmp_path / "log.json")
    log = log_module.read_eval_log(str(tmp_path / "log.json"))
    assert sorted((sample.id, sample.epoch) for sample in log.samples) == [
        ("q1", 1), ("q1", 2), ("q2", 1), ("q2", 3), ("q2", 5),
    ]  # fmt: skip
    one = next(sample for sample in log.samples if (sample.id, sample.epoch) == ("q1", 1))
    types = [message.error.type if message.error else None for message in one.messages if message.role == "tool"]
    expected = {
        "unknown_tool": "parsing", "malformed_arguments": "parsing", "invalid_arguments": "parsing",
        "file_error": "file_not_found", "not_found": "unknown", "not_executed": "limit",
    }  # fmt: skip
    assert types == [*(expected[kind] for kind in kinds), None, "timeout", "limit", "limit"]
    errors = {sample.epoch: sample.error.message for sample in log.samples if sample.error}
    assert errors == {5: "sandbox_lost: gone", 3: "sandbox_lost: no reason is recorded"}


def test_messages_with_their_loss_mask(run: Path, tmp_path: Path) -> None:
    assert converted(run, "messages", tmp_path / "m.jsonl") == 2
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    one = next(line for line in lines if line["metadata"]["query_id"] == "q1")
    assert [(message["role"], message["weight"]) for message in one["messages"]] == [
        ("system", 0), ("user", 0), ("assistant", 0), ("tool", 0), ("tool", 0), ("user", 0), ("assistant", 1),
    ]  # fmt: skip
    assert one["tools"][0]["function"]["name"] == "bash"
    two = next(line for line in lines if line["metadata"]["query_id"] == "q2")
    assert [message["weight"] for message in two["messages"]] == [0, 1, 0, 1]
    calls = {call["id"] for message in two["messages"] for call in message.get("tool_calls", ())}
    assert {message["tool_call_id"] for message in two["messages"] if message["role"] == "tool"} == calls


def test_system_messages_and_programs_calls_go_along(tmp_path: Path, export: Export) -> None:
    steps = [
        Step("python3 p.py", "[4]", made=(("search", False), ("neighbors", True))),
        *(Step("x", "no", error=kind) for kind in ("unknown_tool", "not_found", "not_executed", "file_error")),
    ]
    attempt = Attempt(steps, (4,), system="You explore.")
    run = make_audited_run(tmp_path / "run", export, {"q1": [attempt]})
    for form in FORMATS:
        assert converted(run, form, tmp_path / form) == 1
    made = [
        {"name": name, "arguments": {"k": 5}, "program": "p.py", "characters": 9, "seconds": 0.1, "error": failed}
        for name, failed in steps[0].made
    ]
    document = json.loads((tmp_path / "atif" / "q1" / "0-0.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [(step["source"], step["message"]) for step in document["steps"][:1]] == [("system", "You explore.")]
    assert document["steps"][2]["extra"]["results"]["c1"]["program_calls"] == made
    (sample,) = json.loads((tmp_path / "inspect").read_text())["samples"]
    assert [message["role"] for message in sample["messages"][:2]] == ["system", "user"]
    told = [message for message in sample["messages"] if message["role"] == "tool"]
    assert told[0]["metadata"] == {"program_calls": made}
    assert [message["error"]["type"] for message in told[1:]] == ["parsing", "unknown", "limit", "file_not_found"]
    line = json.loads((tmp_path / "messages").read_text())
    assert [(message["role"], message["weight"]) for message in line["messages"][:2]] == [("system", 0), ("user", 0)]
    assert "program_calls" not in json.dumps(line)


def test_gold_is_only_where_a_log_has_it(run: Path, tmp_path: Path, export: Export) -> None:
    for form in ("atif", "messages"):
        converted(run, form, tmp_path / form)
        paths = [path for path in [tmp_path / form, *(tmp_path / form).rglob("*")] if path.is_file()]
        for path in paths:
            text = path.read_text()
            assert str(export.manifest["canary"]) not in text
            assert '"gold"' not in text
            assert '"target"' not in text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"content": "x"}, ""),
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": 5}, ""),
        ([{"type": "reasoning", "summary": [{"text": "a"}], "content": None}, {"type": "message"}], "a"),
        ([{"type": "reasoning", "content": [{"text": "b"}]}, "odd"], "b"),
        (None, ""),
    ],
)  # fmt: skip
def test_reasoning_that_providers_show(raw: Any, text: str) -> None:
    assert reasoning({"raw": raw}) == text


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_trajectory_leaves_nothing_half_written(run: Path, tmp_path: Path, form: str) -> None:
    (run / "trajectories" / "q2" / "0-1.jsonl").unlink()
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="0-1"):
        converted(run, form, tmp_path / "out" / "it")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_trajectory_without_a_beginning_is_named(run: Path, tmp_path: Path) -> None:
    path = run / "trajectories/q1/0-0.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(UserError, match=r"q1/0-0\.jsonl can't be read"):
        converted(run, "messages", tmp_path / "m.jsonl")
    assert list(tmp_path.glob("*m.jsonl*")) == []


def test_the_command(run: Path, tmp_path: Path) -> None:
    done = run_cli("convert", str(run), "--to", "messages", "--all", "--out", str(tmp_path / "all.jsonl"))
    assert (done.code, done.stdout) == (0, f"{tmp_path / 'all.jsonl'}: 3 attempts\n")
    assert run_cli("convert", str(run), "--to", "atif").stdout == f"{run / 'atif'}: 2 attempts\n"
    mistake(run_cli("convert", str(run), "--to", "atif"), "exists", "--out")
    mistake(run_cli("convert", str(run), "--to", "csv"), "--to")
    mistake(run_cli("convert", str(run), "--to", "atif", "--all", "--best"), "exclude")


def test_the_best_attempts(tmp_path: Path, export: Export) -> None:
    attempts = {
        "q1": [
            Attempt([Step("a")], (0,), agent=0), Attempt([Step("a"), Step("b")], (0, 2), agent=1),
            Attempt([Step("a")], (2, 0), agent=2),
        ],
        "q2": [Attempt([], (30,))],
    }  # fmt: skip
    run = make_audited_run(tmp_path / "run", export, attempts)
    run_cli("convert", str(run), "--to", "messages", "--best")
    (line,) = map(json.loads, (run / "messages.jsonl").read_text().splitlines())
    assert (line["metadata"]["query_id"], line["metadata"]["agent"]) == ("q1", 2)


def test_without_the_export(tmp_path: Path) -> None:
    mine = make_export(tmp_path / "graph")
    run = make_audited_run(tmp_path / "run", mine, {"q1": [Attempt([Step("a")], (0,))]})
    shutil.rmtree(tmp_path / "graph")
    done = run_cli("convert", str(run), "--to", "inspect")
    assert done.code == 0
    assert "gold is not known" in done.stderr
    assert json.loads((run / "inspect.json").read_text())["samples"][0]["scores"] == {}
    mistake(run_cli("convert", str(run), "--to", "messages", "--best"), "--best needs gold")
