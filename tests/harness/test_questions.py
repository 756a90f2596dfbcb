"""Which questions are asked: splits, samples, limits, files of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exporter import Export, ExportError
from harness.errors import UserError
from harness.questions import QuestionSet, load_questions
from tests.support.runs import QUESTIONS, jsonl, make_export


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def ids(chosen: QuestionSet) -> list[str]:
    return [question.id for question in chosen.questions]


def numbered(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"n{number}", "query": f"Which is {number}?", **fields} for number in range(count)]


def test_gold_is_node_ids(export: Export) -> None:
    first = load_questions(export).questions[0]
    assert (first.id, first.text, first.gold, first.split) == ("q1", "Which papers are first?", (0, 2), "test")


def test_splits(export: Export) -> None:
    assert ids(load_questions(export)) == ["q1", "q2", "q3"]  # test, since there is one
    assert ids(load_questions(export, splits=["train", "val"])) == ["q4", "q5"]
    assert ids(load_questions(export, splits=["all"])) == ["q1", "q2", "q3", "q4", "q5"]


def test_without_test_questions_all_are_asked(tmp_path: Path, export: Export) -> None:
    file = jsonl(tmp_path / "q.jsonl", [*numbered(2), {"id": "t", "query": "T?", "split": "train"}])
    assert ids(load_questions(export, file=file)) == ["n0", "n1", "t"]
    assert ids(load_questions(export, file=file, splits=["train"])) == ["t"]


def test_human_questions_are_not_in_all(tmp_path: Path, export: Export) -> None:
    rows = [*numbered(1, split="test"), {"id": "h", "query": "H?", "split": "human"}]
    file = jsonl(tmp_path / "q.jsonl", rows)
    assert ids(load_questions(export, file=file, splits=["all"])) == ["n0"]
    assert ids(load_questions(export, file=file, splits=["human", "all"])) == ["n0", "h"]


def test_limit_and_sample(tmp_path: Path, export: Export) -> None:
    file = jsonl(tmp_path / "q.jsonl", numbered(50))
    everything = ids(load_questions(export, file=file))
    assert ids(load_questions(export, file=file, limit=3)) == everything[:3]
    drawn = ids(load_questions(export, file=file, sample=10, seed=1))
    assert len(set(drawn)) == 10
    assert drawn == sorted(drawn, key=everything.index)
    assert drawn == ids(load_questions(export, file=file, sample=10, seed=1))
    assert drawn != ids(load_questions(export, file=file, sample=10, seed=2))
    assert ids(load_questions(export, file=file, sample=10, seed=1, limit=4)) == drawn[:4]
    assert ids(load_questions(export, file=file, sample=500)) == everything


def test_a_backbone_that_knows_some_questions_is_asked_those_whatever_their_split(export: Export) -> None:
    asked = {question["id"]: question["query"] for question in QUESTIONS}

    def known(query_id: str, query: str) -> bool:
        assert asked[query_id] == query
        return query_id in ("q2", "q5")

    assert ids(load_questions(export, only=known)) == ["q2", "q5"]
    assert ids(load_questions(export, only=known, splits=["test"])) == ["q2"]
    with pytest.raises(UserError, match="knows none of the questions in graph small") as caught:
        load_questions(export, only=lambda *_: False, only_hint="ask others")
    assert caught.value.hint == "ask others"


def test_the_hash_is_of_what_is_asked_not_of_the_file(tmp_path: Path, export: Export) -> None:
    own = load_questions(export, splits=["test"])
    same = load_questions(export, file=jsonl(tmp_path / "same.jsonl", QUESTIONS), splits=["test"])
    assert own.questions == same.questions
    assert own.sha256 == same.sha256
    changed = jsonl(tmp_path / "changed.jsonl", [{**QUESTIONS[0], "answer_ids": ["X:0"]}, *QUESTIONS[1:]])
    hashes = {
        own.sha256,
        load_questions(export, splits=["test"], limit=2).sha256,
        load_questions(export, file=changed, splits=["test"]).sha256,
    }
    assert len(hashes) == 3


def test_gold_that_the_graph_does_not_have_is_counted(tmp_path: Path, export: Export) -> None:
    rows = [
        {"id": "a", "query": "A?", "answer_ids": ["X:1", "Y:1", "7"]},
        {"id": "b", "query": "B?", "answer_ids": ["Y:2", "Y:3"]},
    ]
    with pytest.raises(UserError) as caught:
        load_questions(export, file=jsonl(tmp_path / "q.jsonl", rows))
    assert "4 of 5 answer ids are not in the graph: 'Y:1' (line 1), '7' (line 1), 'Y:2' (line 2), …" in str(
        caught.value
    )
    assert "like 'X:0'" in caught.value.hint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the file is empty"),
        ([{"id": "a", "query": "A?"}, {"id": "a", "query": "B?"}], r"line 2: duplicate question id 'a'"),
        ([{"id": "a", "qurey": "A?"}], r"line 1: unknown field 'qurey'; is 'query' meant\?"),
        ([{"id": "a", "query": "A?", "answer_id": ["X:1"]}], r"is 'answer_ids' meant\?"),
        ([{"id": "a", "query": ""}], r"line 1: 'query' is empty"),
        ([{"id": "a", "query": "A?", "split": "tset"}], r"line 1: unknown split 'tset'"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, export: Export, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ExportError, match=message):
        load_questions(export, file=jsonl(tmp_path / "q.jsonl", rows))


def test_unknown_and_empty_splits(export: Export) -> None:
    with pytest.raises(UserError, match="unknown split 'tset'") as caught:
        load_questions(export, splits=["tset"])
    assert "did you mean 'test'?" in caught.value.hint
    with pytest.raises(UserError, match="no questions in split 'human'") as caught:
        load_questions(export, splits=["human"])
    assert caught.value.hint == "splits there are: test, train, val"


def test_a_graph_without_questions(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no questions of its own"):
        load_questions(make_export(tmp_path, questions=[]))


def test_hints_fit_the_command_and_the_graph(tmp_path: Path, export: Export) -> None:
    file = tmp_path / "own.jsonl"

    def hint_for(*rows: dict[str, Any]) -> str:
        jsonl(file, rows)
        with pytest.raises((UserError, ExportError)) as caught:
            load_questions(export, file=file)
        return caught.value.hint

    assert hint_for({"id": "a"}) == "correct the row, or remove it from the file"
    assert "look like node ids" in hint_for({"id": "a", "query": "A?", "answer_ids": [0, 59]})
    for other in (60, "59x", "X:60"):
        assert "node ids" not in hint_for({"id": "a", "query": "A?", "answer_ids": [0, other]})
    with pytest.raises(UserError) as caught:
        load_questions(export, splits=["human-x"])
    assert caught.value.hint == "splits there are: test, train, val, all"
