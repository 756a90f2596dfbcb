"""`harness run` in a mode with a model of its own: what that model needs is made last, and not in a dry run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export


def test_mistakes_in_questions_are_told_before_the_baseline_is_built(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    questions = tmp_path / "mine.jsonl"
    questions.write_text(json.dumps({"id": "q", "query": "?", "answer_ids": [10**6]}) + "\n", encoding="utf-8")
    words = ("run", "--graph", str(export.path), "--mode", "bm25", "--out", str(tmp_path / "run"))
    for more in ((), ("--dry-run",)):
        mistake(run_cli(*words, "--queries", str(questions), *more), "1000000")
    assert run_cli(*words, "--dry-run").code == 0
    assert not list(export.path.glob("index/baseline-*"))
    done = run_cli(*words)
    assert done.code == 0, done
    assert list(export.path.glob("index/baseline-*"))


def test_a_mode_with_an_unknown_model_of_its_own(tmp_path: Path) -> None:
    words = ("run", "--graph", str(make_export(tmp_path).path), "--mode", "bm25", "--out", str(tmp_path / "run"))
    for more in ((), ("--dry-run",)):
        mistake(run_cli(*words, "--set", "backbone=elastic", *more), "unknown backbone 'elastic'", "bm25")
