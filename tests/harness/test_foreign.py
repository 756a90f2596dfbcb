"""Runs made elsewhere, imported and audited. The files are written by hand in the formats' documented form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.audit import audit_run
from harness.errors import UserError
from harness.events import read_events
from harness.foreign import read_sessions
from harness.ledger import read_ledger
from harness.runfiles import read_manifest
from harness.schemas import check_run
from harness.score import score_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export

QUESTION = "Which papers are first?"  # q1 of the small graph; its gold is 0 and 2
PYTHON = "python3 -c \"print([l for l in open('/data/kg/nodes/0000.jsonl')])\""


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return make_export(tmp_path / "graph")


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def imported(export: Export, out: Path, *files: Path, options: tuple[str, ...] = ()) -> Path:
    done = run_cli("import", "--graph", str(export.path), "--out", str(out), *options, *map(str, files))
    assert done.code == 0, done
    assert list(check_run(out)) == []
    return out


def ark_file(path: Path) -> Path:
    call = {"name": "search_in_graph", "arguments": '{"query": "first"}'}
    add = {"name": "add_to_answer", "arguments": '{"answer_nodes": [{"node_index": 2, "reasoning": "it is"}]}'}
    near = {"name": "search_in_neighborhood", "arguments": '{"node_index": '}
    history = [
        {"role": "system", "content": "Knowledge Graph Exploration Agent"},
        {"role": "user", "content": f"Find nodes that answer the question: {QUESTION}"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": "Found 1 node:\n[2] node 2 (paper)"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "b", "type": "function", "function": near}, {"id": "c", "type": "function", "function": add}]},
        {"role": "tool", "tool_call_id": "b", "content": "bad"},
        {"role": "tool", "tool_call_id": "c", "content": "Added"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "d", "type": "function", "function": {"name": "finish", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "d", "content": "Exploration finished."},
    ]  # fmt: skip
    agents = [
        {"message_history": history, "agent_answer_indices": [2, 2, 999], "steps": 3, "step_times": [1.0, 2.0, 0.5]},
        {"message_history": history[:4], "agent_answer_indices": [30], "steps": 1, "step_times": [1.0]},
    ]
    path.write_text(json.dumps({"question": QUESTION, "answer_indices": [2, 30], "trajectories": agents}, indent=4))
    return path


def test_ark(export: Export, tmp_path: Path) -> None:
    run = imported(export, tmp_path / "run", ark_file(tmp_path / "q1.json"))
    first, second = read_ledger(run)
    assert (first.query_id, first.agent, first.ids, first.stop_reason, first.turns) == ("q1", 0, (2,), "answered", 3)
    assert (second.agent, second.ids, second.stop_reason) == (1, (30,), "turn_limit")
    assert [entry["why"] for entry in first.answer["rejected"]] == ["duplicate", "unknown"]
    assert first.times.wall == pytest.approx(3.5)
    manifest = read_manifest(run)
    assert (manifest["mode"]["agents"]["count"], manifest["sandbox"]["kind"]) == (2, "ark")
    assert "$query" in manifest["mode"]["prompt"]
    audit = audit_run(run)
    assert {label: tally.count for label, tally in audit.rows("graph_tools").items()} == {
        "search": 2, "neighbours": 1, "record": 0,
    }  # fmt: skip
    assert audit.rows("mistakes")["malformed_arguments"].count == 1
    assert audit.rows("returned_ids")["in an output that was still there"].count == 1
    assert score_run(run).failed_is_miss.mean["hit@1"] == 1.0


def pi_file(path: Path, answer: str = "ANSWER: [0, 2]", stop: str = "stop") -> Path:
    def entry(identity: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
        time = f"2026-01-02T03:00:0{len(identity)}.000Z"
        return {"type": "message", "id": identity, "parentId": parent, "timestamp": time, "message": message}

    def reply(*content: dict[str, Any], reason: str = "toolUse") -> dict[str, Any]:
        usage = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 0, "cost": {"total": 0.25}}
        return {"role": "assistant", "content": list(content), "model": "luna", "usage": usage, "stopReason": reason}

    def call(identity: str, command: str) -> dict[str, Any]:
        return {"type": "toolCall", "id": identity, "name": "bash", "arguments": {"command": command, "timeout": 5}}

    def result(identity: str, text: str, error: bool = False) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"role": "toolResult", "toolCallId": identity, "toolName": "bash", "content": content, "isError": error}

    look = {"type": "text", "text": "I look."}
    return lines(
        path,
        [
            {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:00:00.000Z", "cwd": "/data/work"},
            {"type": "model_change", "id": "m", "parentId": None, "timestamp": "x", "provider": "p", "modelId": "luna"},
            entry("a", "m", {"role": "user", "content": [{"type": "text", "text": f"In /data/kg:\n{QUESTION}"}]}),
            entry("bb", "a", reply({"type": "thinking", "thinking": "Hm."}, look, call("1", PYTHON))),
            entry("ccc", "bb", result("1", "{\"node_id\":0}\n{\"node_id\":2}")),
            entry("gone", "bb", result("1", "of another branch")),
            {"type": "label", "id": "l", "parentId": "ccc", "timestamp": "x", "targetId": "a", "label": "here"},
            entry("dddd", "l", reply(call("2", "cd /data/work; false"))),
            entry("eeeee", "dddd", result("2", "no\n\nCommand exited with code 1", error=True)),
            {"type": "compaction", "id": "k", "parentId": "eeeee", "timestamp": "x", "summary": "So far"},
            entry("ffffff", "k", reply({"type": "text", "text": answer}, reason=stop)),
        ],
    )  # fmt: skip


def test_pi(export: Export, tmp_path: Path) -> None:
    options = ("--graph-dir", "/data/kg/", "--scratch-dir", "/data/work")
    run = imported(export, tmp_path / "run", pi_file(tmp_path / "s" / "x.jsonl"), options=options)
    (record,) = read_ledger(run)
    assert (record.query_id, record.ids, record.turns, record.cost) == ("q1", (0, 2), 3, 0.75)
    assert record.usage == {"input": 300, "cached": 270, "output": 15, "reasoning": None}
    assert (record.times.wall, read_manifest(run)["model"]["name"]) == (6.0, "luna")
    events = list(read_events(run / record.trajectory))
    assert events[0]["prompt"] == f"In /graph:\n{QUESTION}"
    results = [event for event in events if event["type"] == "result"]
    assert results[0]["arguments"] == {"command": PYTHON.replace("/data/kg", "/graph")}
    assert [event["exec"]["exit_code"] for event in results] == [0, 1]
    assert [event["text"] for event in events if event["type"] == "notice"] == ["So far"]
    audit = audit_run(run)
    assert audit.rows("operations")["node_scan"].count == 1
    assert audit.rows("error_classes")["hit"].count == 1
    assert audit.rows("attempts_at")["to look outside of the graph and the scratch directory"].count == 0
    assert audit.rows("failed_calls")[""].count == 1


def test_several_sessions_of_a_question_are_attempts(export: Export, tmp_path: Path) -> None:
    later = pi_file(tmp_path / "s" / "a.jsonl")
    later.write_text(later.read_text().replace("2026-01-02", "2026-01-03"))
    pi_file(tmp_path / "s" / "deep" / "b.jsonl", answer="I can't", stop="aborted")
    lines(tmp_path / "s" / "empty.jsonl", [{"type": "session", "id": "e", "timestamp": "x", "cwd": "/"}])
    run = imported(export, tmp_path / "run", tmp_path / "s")
    assert [(record.attempt, record.stop_reason, record.ids) for record in read_ledger(run)] == [
        (0, "interrupted", ()), (1, "answered", (0, 2)),
    ]  # fmt: skip


def codex_rows(answer: str = "ANSWER: [2, 0]") -> list[dict[str, Any]]:
    def row(kind: str, payload: dict[str, Any], second: int) -> dict[str, Any]:
        return {"timestamp": f"2026-01-02T03:00:{second:02}.000Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    def tokens(given: int, cached: int) -> dict[str, Any]:
        last = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": 7, "reasoning_output_tokens": 3}
        return {"type": "token_count", "info": {"last_token_usage": last}}

    def item(kind: str, second: int, **fields: Any) -> dict[str, Any]:
        return row("response_item", {"type": kind, **fields}, second)

    shell = json.dumps({"command": ["bash", "-lc", PYTHON], "workdir": "/data/work"})
    output = json.dumps({"output": '{"node_id":2}\n', "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
    ended = "Wall time: 0.1\nProcess exited with code 2\nOutput:\nno"
    return [
        row("session_meta", {"id": "s", "cwd": "/data/work", "cli_version": "0.65.0", "instructions": "x" * 200}, 0),
        row("response_item", message("user", "<environment_context/>"), 1),
        row("response_item", message("user", QUESTION), 1),
        row("event_msg", {"type": "user_message", "message": QUESTION}, 1),
        row("turn_context", {"cwd": "/data/work", "model": "luna-codex"}, 1),
        row("event_msg", {"type": "token_count", "info": None}, 1),
        item("reasoning", 2, summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="g"),
        row("response_item", message("assistant", "I look."), 2),
        item("function_call", 3, name="shell", arguments=shell, call_id="c1"),
        row("event_msg", tokens(100, 0), 3),
        item("function_call_output", 4, call_id="c1", output=output),
        item("function_call", 5, name="exec_command", arguments='{"cmd": "ls /nowhere"}', call_id="c2"),
        item("custom_tool_call", 5, name="apply_patch", input="*** Begin", call_id="c3"),
        item("function_call_output", 6, call_id="c2", output=ended),
        item("custom_tool_call_output", 6, call_id="c3", output="done"),
        row("event_msg", tokens(200, 100), 6),
        item("local_shell_call", 7, call_id="c4", action={"type": "exec", "command": ["ls", "a b"]}),
        item("function_call_output", 8, call_id="c4", output=[{"type": "input_text", "text": "0"}]),
        row("response_item", message("assistant", answer), 9),
        row("event_msg", tokens(300, 200), 9),
    ]


def test_codex(export: Export, tmp_path: Path) -> None:
    run = imported(export, tmp_path / "run", lines(tmp_path / "rollout-x.jsonl", codex_rows()))
    (record,) = read_ledger(run)
    assert (record.query_id, record.ids, record.turns, record.cost) == ("q1", (2, 0), 4, None)
    assert record.usage == {"input": 600, "cached": 300, "output": 21, "reasoning": 9}
    assert (record.times.wall, read_manifest(run)["model"]["name"]) == (9.0, "luna-codex")
    results = [event for event in read_events(run / record.trajectory) if event["type"] == "result"]
    assert [(event["name"], event["arguments"]) for event in results] == [
        ("bash", {"command": PYTHON}), ("bash", {"command": "ls /nowhere"}), ("apply_patch", {"input": "*** Begin"}),
        ("bash", {"command": "ls 'a b'"}),
    ]  # fmt: skip
    assert [(event["exec"] or {}).get("exit_code") for event in results] == [0, 2, None, None]
    assert results[0]["text"] == '{"node_id":2}\n'
    assert audit_run(run).rows("error_classes")["hit"].count == 1


def test_codex_files_without_envelopes(export: Export, tmp_path: Path) -> None:
    rows = [{"id": "s", "timestamp": "2026-01-02T03:00:00Z", "instructions": None}]
    rows += [row["payload"] for row in codex_rows() if row["type"] == "response_item"]
    run = imported(export, tmp_path / "run", lines(tmp_path / "old.jsonl", rows))
    (record,) = read_ledger(run)
    assert (record.ids, record.turns) == ((2, 0), 4)


def test_an_answer_that_is_none(export: Export, tmp_path: Path) -> None:
    run = imported(export, tmp_path / "run", lines(tmp_path / "x.jsonl", codex_rows("I don't know.")))
    assert [(record.stop_reason, record.ids) for record in read_ledger(run)] == [("no_answer", ())]


def test_sessions_of_other_questions_are_left_out(export: Export, tmp_path: Path) -> None:
    other = [json.loads(json.dumps(row).replace(QUESTION, "What else?")) for row in codex_rows()]
    lines(tmp_path / "s" / "other.jsonl", other)
    lines(tmp_path / "s" / "mine.jsonl", codex_rows())
    done = run_cli("import", "--graph", str(export.path), "--out", str(tmp_path / "run"), str(tmp_path / "s"))
    assert (done.code, done.stdout) == (0, f"{tmp_path / 'run'}: 1 attempt\n")
    assert "other.jsonl is left out" in done.stderr
    alone = run_cli(
        "import", "--graph", str(export.path), "--out", str(tmp_path / "no"), str(tmp_path / "s/other.jsonl")
    )
    mistake(alone, "of 1 session none answers a question", "--queries")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "of no known format"),
        ('{"a": 1}\n', "of no known format"),
        ('{"question": "x", "answer_indices": [], "trajectories": [{"message_history": 5}]}', "is damaged"),
        ('{"type": "session", "cwd": "/", "id": "x"}\nnonsense\n', "is damaged"),
        ('{"type": "session_meta", "payload": {}}\n[1]\n', "is damaged"),
        ('{"type": "session_meta"}\n{"type": "response_item", "payload": {"type": "function_call"}}\n', "is damaged"),
    ],
)  # fmt: skip
def test_files_that_are_no_sessions(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=message):
        read_sessions(tmp_path / "x.json")


def test_rings_of_entries_end(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"type": "session", "cwd": "/", "id": "x"}]
    rows += [{"type": "label", "id": one, "parentId": other} for one, other in (("a", "b"), ("b", "a"))]
    assert read_sessions(lines(tmp_path / "x.jsonl", rows)) == ("Pi", [])


def test_mistakes(export: Export, tmp_path: Path) -> None:
    one, two = ark_file(tmp_path / "q1.json"), lines(tmp_path / "x.jsonl", codex_rows())
    graph = ("--graph", str(export.path))
    mistake(run_cli("import", *graph, "--out", str(tmp_path / "r"), str(one), str(two)), "several formats: ARK, Codex")
    mistake(run_cli("import", *graph, "--out", str(tmp_path / "r"), str(tmp_path / "none")), "can't be read")
    (tmp_path / "empty").mkdir()
    mistake(run_cli("import", *graph, "--out", str(tmp_path / "r"), str(tmp_path / "empty")), "no files in")
    imported(export, tmp_path / "run", two)
    mistake(run_cli("import", *graph, "--out", str(tmp_path / "run"), str(two)), "exists")
