"""Scores of a run folder: both conventions, first attempts, what is left out, costs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from exporter import Export
from harness.errors import UserError
from harness.ledger import AttemptRecord
from harness.metrics import METRICS
from harness.prices import read_prices
from harness.questions import load_questions
from harness.schemas import validator
from harness.score import RunScore, score_run, write_scores
from tests.support.runs import QUESTIONS, attempt, jsonl, make_export, make_run


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def score(folder: Path, export: Export, *records: AttemptRecord) -> RunScore:
    return score_run(make_run(folder / "run", export, records).path)


def means(result: RunScore) -> tuple[float | None, ...]:
    return tuple(result.failed_is_miss.mean[name] for name in METRICS)


def test_worked_by_hand(tmp_path: Path, export: Export) -> None:
    result = score(
        tmp_path,
        export,
        attempt("q1", ids=[0, 30, 2]),  # 1, 1, 2/2, 1
        attempt("q2", ids=[30, 32, 4]),  # 0, 1, 1, 1/3
        attempt("q3", "no_answer"),  # 0, 0, 0, 0
        attempt("q4", ids=[30, 32, 34, 36, 38, 8]),  # 0, 0, 1, 1/6
    )
    assert means(result) == pytest.approx((1 / 4, 2 / 4, 3 / 4, (1 + 1 / 3 + 1 / 6) / 4))
    assert result.failed_is_miss.n == 4
    assert result.count("without_gold") == 1  # q5
    assert result.failed_is_miss == result.failed_left_out
    assert result.first_attempt is None


def test_what_an_agent_selected_before_a_limit_is_scored(tmp_path: Path, export: Export) -> None:
    assert score(tmp_path, export, attempt("q2", "turn_limit", ids=[4])).failed_is_miss.mean["hit@1"] == 1


@pytest.mark.parametrize("reason", ["backbone_error", "sandbox_lost", "interrupted"])
def test_failed_is_a_miss_in_one_figure_and_left_out_of_the_other(tmp_path: Path, export: Export, reason: str) -> None:
    result = score(tmp_path, export, attempt("q1", ids=[0]), attempt("q2", reason, ids=[4]))
    assert (result.failed_is_miss.n, result.failed_is_miss.mean["hit@1"]) == (2, 0.5)
    assert (result.failed_left_out.n, result.failed_left_out.mean["hit@1"]) == (1, 1.0)
    assert (result.count("failed"), result.count("open")) == (1, 2)


def test_questions_never_asked_are_in_neither_figure(tmp_path: Path, export: Export) -> None:
    result = score(tmp_path, export, attempt("q1", ids=[0]))
    assert (result.failed_is_miss.n, result.failed_left_out.n, result.count("open")) == (1, 1, 3)


def test_first_attempts_where_anything_was_retried(tmp_path: Path, export: Export) -> None:
    result = score(
        tmp_path,
        export,
        attempt("q1", ids=[0]),
        attempt("q2", "time_limit", ids=[]),
        attempt("q2", ids=[4], attempt=1),
    )
    assert result.failed_is_miss.mean["hit@1"] == 1
    assert result.first_attempt is not None
    assert (result.first_attempt.n, result.first_attempt.mean["hit@1"]) == (2, 0.5)


def test_an_attempt_cut_short_by_a_crash_is_no_first_attempt(tmp_path: Path, export: Export) -> None:
    result = score(tmp_path, export, attempt("q1", "interrupted"), attempt("q1", ids=[0], attempt=1))
    assert result.first_attempt is None
    assert result.failed_is_miss.mean["hit@1"] == 1


def test_effort_counts_every_attempt(tmp_path: Path, export: Export) -> None:
    result = score(
        tmp_path, export, attempt("q1", "backbone_error"), attempt("q1", ids=[0], attempt=1), attempt("q2", ids=[4])
    )
    assert result.usage == {"input": 3000, "cached": 1200, "output": 300, "reasoning": None}
    assert result.cost == pytest.approx(0.03)
    assert (result.attempts, result.turns) == (3, 12)
    assert result.times["model"] == pytest.approx(18.0)
    assert result.stop_reasons == {"backbone_error": 1, "answered": 2}


def test_a_cost_with_an_unknown_part_is_unknown(tmp_path: Path, export: Export) -> None:
    assert score(tmp_path, export, attempt("q1"), attempt("q2", cost=None)).cost is None


def test_prices_of_the_users_own(tmp_path: Path, export: Export) -> None:
    run = make_run(tmp_path / "run", export, [attempt("q1"), attempt("q2")]).path
    prices = tmp_path / "prices.toml"
    prices.write_text('["tester"]\ninput = 2.0\ncached = 0.5\noutput = 10.0\n', encoding="utf-8")
    expected = 2 * (600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6
    assert score_run(run, read_prices(prices)).cost == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('["testr"]\ninput = 1\noutput = 2\n', "has no prices for 'tester'", "did you mean 'testr'?"),
        ("[tester]\nimput = 1\noutput = 2\n", "unknown key 'imput'", "cached, input, output"),
        ("[tester]\ninput = -1\noutput = 2\n", "input is -1.0; it must be at least 0", "the default is none"),
        ("input = 1\n", "'input' is not a table", "one table for each model"),
        ("", "is empty", "one table for each model"),
        ("[", "prices.toml: ", ""),
    ],
)
def test_mistakes_in_price_files(tmp_path: Path, export: Export, text: str, message: str, hint: str) -> None:
    run = make_run(tmp_path / "run", export, [attempt("q1")]).path
    prices = tmp_path / "prices.toml"
    prices.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        score_run(run, read_prices(prices))
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_scores_json_has_every_question_and_can_be_rebuilt(tmp_path: Path, export: Export) -> None:
    run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0, 2]), attempt("q2", "sandbox_lost")]).path
    write_scores(run, score_run(run))
    first = (run / "scores.json").read_text("utf-8")
    write_scores(run, score_run(run))
    assert (run / "scores.json").read_text("utf-8") == first
    table = json.loads(first)
    assert list(validator("scores").iter_errors(table)) == []
    assert {query["id"]: query["state"] for query in table["queries"]} == {
        "q1": "scored", "q2": "failed", "q3": "open", "q4": "open", "q5": "without_gold",
    }  # fmt: skip
    assert table["hit@1"] == 0.5
    assert table["failed_left_out"]["hit@1"] == 1.0
    assert math.isclose(table["ci"]["hit@1"][0], 0.0945, abs_tol=1e-4)


def test_a_run_without_any_attempt_has_no_figures(tmp_path: Path, export: Export) -> None:
    result = score(tmp_path, export)
    assert result.as_dict()["hit@1"] is None
    assert result.failed_is_miss.n == 0


class TestWhatTheManifestNames:
    def test_the_export_is_gone(self, tmp_path: Path) -> None:
        export = make_export(tmp_path)
        run = make_run(tmp_path / "run", export, [attempt("q1")]).path
        export.path.rename(tmp_path / "elsewhere")
        with pytest.raises(UserError, match=r"the export of .* can't be read") as caught:
            score_run(run)
        assert str(tmp_path / "small") in caught.value.hint

    def test_another_export_is_there(self, tmp_path: Path) -> None:
        export = make_export(tmp_path / "a")
        run = make_run(tmp_path / "run", export, [attempt("q1")]).path
        manifest = json.loads((run / "manifest.json").read_text("utf-8"))
        manifest["export"]["digest"] = "0" * 64
        (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(UserError, match=r"is not the export that .* was made on"):
            score_run(run)

    def test_the_question_file_changed(self, tmp_path: Path, export: Export) -> None:
        file = jsonl(tmp_path / "mine.jsonl", QUESTIONS[:2])
        run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0])], load_questions(export, file=file)).path
        assert score_run(run).failed_is_miss.mean["hit@1"] == 1
        jsonl(file, [{**QUESTIONS[0], "answer_ids": ["X:40"]}, QUESTIONS[1]])
        with pytest.raises(UserError, match=r"mine\.jsonl changed since"):
            score_run(run)

    @pytest.mark.parametrize("content", [b"", b"[1]", b"{}", b"\xff"])
    def test_a_damaged_manifest(self, tmp_path: Path, export: Export, content: bytes) -> None:
        run = make_run(tmp_path / "run", export, []).path
        (run / "manifest.json").write_bytes(content)
        with pytest.raises(UserError, match=r"manifest\.json"):
            score_run(run)

    def test_a_damaged_ledger(self, tmp_path: Path, export: Export) -> None:
        run = make_run(tmp_path / "run", export, [attempt("q1")]).path
        (run / "attempts.jsonl").write_text("{}\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"attempts\.jsonl:1"):
            score_run(run)

    def test_a_parent_of_runs(self, tmp_path: Path, export: Export) -> None:
        make_run(tmp_path / "runs" / "small-files", export, [])
        with pytest.raises(UserError) as caught:
            score_run(tmp_path / "runs")
        assert "small-files" in caught.value.hint
