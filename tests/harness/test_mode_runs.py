"""The comparison's modes, run over the sample graph: what the model is given, and what becomes of its answers."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from exporter import Export
from harness.backbones import maker_of_own
from harness.errors import BackboneError, ContextOverflow
from harness.events import read_events
from harness.ledger import AttemptRecord, read_ledger
from harness.messages import Reply, Request
from harness.modes import load_mode, mode_names
from harness.prompt import prompt_hashes
from harness.questions import QuestionSet, load_questions
from harness.runconfig import RunConfig
from harness.runner import execute
from harness.schemas import check_run
from harness.settings import parse_assignments
from harness.tools.kit import needs_sandbox
from tests.support.words import Turn, Words, call, calls, says

Run = Callable[..., tuple[list[AttemptRecord], Words, Path]]
_names = itertools.count()


class Silent:
    """A listener."""

    def started(self, total: int, done: int) -> None: ...

    def attempt_finished(self, record: AttemptRecord, question: Any) -> None: ...

    def notice(self, text: str) -> None: ...

    def closed(self) -> None: ...


@pytest.fixture
def run(biogo: Export, tmp_path: Path) -> Run:
    """Runs one question in a mode whose tools need no sandbox."""

    def one(mode: str, turns: list[Turn], *settings: str) -> tuple[list[AttemptRecord], Words, Path]:
        questions = load_questions(biogo, splits=["all"])
        words = Words(turns)
        config = RunConfig(
            graph="biogo",
            export=biogo,
            mode=load_mode(mode, parse_assignments(settings)),
            profile={"name": "words"},
            backbone=words,
            sandboxes=None,
            questions=QuestionSet(questions.questions[:1], questions.source, questions.sha256),
            out=tmp_path / f"run-{next(_names)}",
        )
        execute(config, Silent())
        assert list(check_run(config.out)) == []
        return read_ledger(config.out), words, config.out

    return one


def results(out: Path) -> list[dict[str, Any]]:
    return [
        event
        for path in sorted(out.glob("trajectories/*/*.jsonl"))
        for event in read_events(path)
        if event["type"] == "result"
    ]


def tool(name: str, **arguments: Any) -> Any:
    return call(name, orjson.dumps(arguments).decode())


def test_tools_mode_searches_and_walks(run: Run, biogo: Export) -> None:
    steps = [
        calls(tool("get_schema"), tool("search", query="mismatch repair", k=3)),
        calls(tool("neighbors", node_id=851, relation="involved_in", node_type="gene"), tool("get_node", node_id=101)),
        says("ANSWER: [101]"),
    ]
    records, words, out = run("tools", steps)
    schema, found, around, record = (event["text"] for event in results(out))
    assert "involved_in" in schema
    assert "[851] mismatch repair (biological_process)" in found
    assert "[101] LIG1 (gene)" in around
    assert '"node_id":101' in record
    assert records[0].ids == (101,)
    assert [spec.name for spec in words.requests[0].tools] == ["search", "get_node", "get_schema", "neighbors"]
    assert "/graph" not in words.requests[0].entries[0].text


def test_mistakes_name_what_is_possible(run: Run) -> None:
    wrong = [
        tool("search", query="x", k=31),
        tool("get_node", node_id=2522),
        tool("neighbors", node_id=851, relation="involvd_in"),
        tool("neighbors", node_id=851, node_type="protein"),
    ]
    _, _, out = run("tools", [calls(*wrong), says("ANSWER: [1]")])
    texts = [event["text"] for event in results(out)]
    assert [event["error"] for event in results(out)] == ["invalid_arguments", "not_found", "not_found", "not_found"]
    assert "30" in texts[0]
    assert "2521" in texts[1]
    assert "involved_in" in texts[2]
    assert "gene" in texts[3]


@pytest.mark.parametrize("depth", [300, 1_000, 5_000])
def test_arguments_that_are_nested_without_end(run: Run, depth: int) -> None:
    """What JSON can be read may be too deep to be written down again."""
    deep = call("search", '{"query": ' + "[" * depth + "]" * depth + "}")
    records, _, out = run("tools", [calls(deep), says("ANSWER: [1]")])
    assert records[0].stop_reason == "answered"
    assert [event["error"] for event in results(out)] == ["malformed_arguments"]


def test_retrieval_has_no_neighbors(run: Run) -> None:
    _, words, out = run("retrieval", [calls(tool("neighbors", node_id=851)), says("ANSWER: [1]")])
    assert results(out)[0]["error"] == "unknown_tool"
    assert "neighbors" not in {spec.name for spec in words.requests[0].tools}


def select(*nodes: int) -> Any:
    return tool("add_to_answer", answer_nodes=[{"node_index": node, "reasoning": "fits"} for node in nodes])


def test_ark_keeps_a_selection_and_fuses_three_agents(run: Run) -> None:
    def choose(request: Request) -> Reply:
        return calls(select(*[(7, 8), (8, 9), (8,)][request.key.agent]))

    records, words, out = run("ark", [calls(tool("search_in_graph", query="repair")), choose, calls(tool("finish"))])
    assert [record.ids for record in sorted(records, key=lambda one: one.agent)] == [(7, 8), (8, 9), (8,)]
    assert all(record.stop_reason == "answered" for record in records)
    request = words.requests[0]
    assert request.tool_choice == "required"
    assert [entry.role for entry in request.entries] == ["system", "user"]
    assert "'gene', 'cytoband'" in request.entries[0].text
    assert "'is_a', 'regulates'" in request.entries[0].text
    assert request.entries[1].text.startswith("Find nodes that answer the question: ")
    assert "Score: " in results(out)[0]["text"]


@pytest.mark.parametrize("mode", ["ark", "tools"])
def test_what_the_model_is_told_is_hashed_into_the_manifest(run: Run, mode: str) -> None:
    _, words, out = run(mode, [calls(tool("finish")), says("ANSWER: [1]")], "agents.count=1")
    told = words.requests[0].entries
    hashes = orjson.loads((out / "manifest.json").read_bytes())["prompts"]
    task = told[-1].text.replace(words.requests[0].query, "$query")
    system = told[0].text if len(told) > 1 else ""
    assert hashes["task"] == hashlib.sha256(task.encode()).hexdigest()
    assert hashes["system"] == hashlib.sha256(system.encode()).hexdigest()
    changed = prompt_hashes(load_mode(mode, {"answer": {"max_ids": 7}}), {})
    assert (changed["task"] != hashes["task"], changed["notices"] == hashes["notices"]) == (mode == "tools", True)


def test_ark_at_its_limit_returns_what_was_selected(run: Run) -> None:
    records, words, _ = run("ark", [calls(select(7, 7, 99_999))] * 20, "agents.count=1")
    assert len(words.requests) == 20
    assert (records[0].stop_reason, records[0].ids) == ("turn_limit", (7,))


@pytest.mark.parametrize(
    ("end", "stop", "ids"),
    [
        (ContextOverflow("prompt is too long"), "context_overflow", (7,)),
        (says("no", finish="refusal"), "refused", (7,)),
        (BackboneError("gone"), "backbone_error", ()),
    ],
)
def test_ark_that_is_cut_short_returns_what_was_selected_but_where_the_endpoint_failed(
    run: Run, end: Turn, stop: str, ids: tuple[int, ...]
) -> None:
    records, _, _ = run("ark", [calls(select(7)), end], "agents.count=1")
    assert (records[-1].stop_reason, records[-1].ids) == (stop, ids)


def test_what_crashes_ark_is_told_to_the_model(run: Run) -> None:
    wrong = [tool("no_such_tool"), call("search_in_graph", "{"), tool("search_in_neighborhood"),
             tool("search_in_neighborhood", node_index=99_999), tool("search_in_graph", query="x", size=0)]  # fmt: skip
    _, _, out = run("ark", [calls(*wrong), calls(tool("finish", comment="ok"))], "agents.count=1")
    assert all(event["error"] for event in results(out)[:5])
    assert results(out)[5]["text"] == "Exploration finished. Agent's comment: ok"


@pytest.mark.parametrize("chosen", [(5,), ()])
def test_calls_behind_finish_get_a_result_and_do_nothing(run: Run, chosen: tuple[int, ...]) -> None:
    steps = [calls(*([select(*chosen)] if chosen else []), tool("finish"), select(6), tool("get_node", node_id=1))]
    records, _, out = run("ark", steps, "agents.count=1")
    assert (records[0].stop_reason, records[0].ids) == ("answered", chosen)
    assert [event["error"] for event in results(out)[-2:]] == ["not_executed", "not_executed"]
    assert results(out)[-1]["text"] == "[error: not run: the answer is given]"


@pytest.mark.parametrize(
    ("mode", "missing"),
    [
        ("ark-no-neighbors", "search_in_neighborhood"),
        ("ark-no-query", "query"),
        ("ark-no-types", "node_type"),
    ],
)
def test_arks_ablations_take_it_from_the_tools_and_from_the_prompt(run: Run, mode: str, missing: str) -> None:
    def shown(name: str) -> tuple[str, str]:
        _, words, _ = run(name, [calls(tool("finish"))], "agents.count=1")
        request = words.requests[0]
        tools = {spec.name: spec.parameters for spec in request.tools}
        around = tools.get("search_in_neighborhood", {}).get("properties", {})
        return repr([*tools, *around]), request.entries[0].text

    whole_tools, whole_prompt = shown("ark")
    tools, prompt = shown(mode)
    assert repr(missing) in whole_tools
    assert repr(missing) not in tools
    assert prompt != whole_prompt


def test_bm25_ranks_without_a_model(biogo: Export) -> None:
    own = maker_of_own("bm25")(biogo, 5, print)
    request = Request(key=("q", 0, 0), turn=1, query="mismatch repair", entries=(), tools=())  # type: ignore[arg-type]
    text = own.complete(request).entry.text
    ids = orjson.loads(text.removeprefix("ANSWER: "))
    assert len(ids) == 5
    assert any("mismatch repair" in biogo.node(node)["name"] for node in ids)


def test_modes_without_files_need_no_sandbox() -> None:
    for name in mode_names():
        mode = load_mode(name)
        if not mode.view.files:
            assert not needs_sandbox(mode.tools) or name.startswith("tools-code")
