"""`harness run` with recorded turns: where they can't mean anything, it says so before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from harness.modes import load_mode, mode_names
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import QUESTIONS, make_export

WORKS = "harness run --graph biogo --mode files --model demo"
FITTING = {name for name in mode_names() if load_mode(name).backbone or name in ("files", "files-kernel")}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs would be written to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("mode", sorted(set(mode_names()) - FITTING))
def test_the_demo_in_a_mode_that_it_was_not_recorded_in(biogo: Export, mode: str) -> None:
    for modes in (mode, f"files,{mode}"):
        done = run_cli("run", "--graph", str(biogo.path), "--mode", modes, "--model", "demo")
        mistake(done, f"model 'demo' can't be used in mode '{mode}': its", WORKS)
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("mode", sorted(FITTING))
def test_the_demo_in_a_mode_with_its_tools_and_its_sandbox(biogo: Export, mode: str) -> None:
    words = ("--sandbox", "bwrap", "--limit", "1", "--out", "run")
    done = run_cli("run", "--graph", str(biogo.path), "--mode", mode, "--model", "demo", *words)
    assert done.code == 0, done
    assert ("results as recorded, 0 differ" in done.stdout) == (load_mode(mode).backbone is None)


@pytest.mark.parametrize("graph", ["prime", "mag", "amazon", "mine"])
def test_the_demo_on_another_graph(tmp_path: Path, graph: str) -> None:
    data = tmp_path / "data"
    make_export(data / "exports", name="mine")
    made = sorted(data.rglob("*"))
    done = run_cli("run", "--graph", graph, "--mode", "files", "--model", "demo", "--data-dir", str(data))
    mistake(done, f"knows none of the questions in graph {graph}", WORKS)
    assert sorted(data.rglob("*")) == made
    assert list(tmp_path.iterdir()) == [data]


def test_the_demo_on_a_path_and_on_questions_of_its_ids(tmp_path: Path) -> None:
    export = make_export(tmp_path, [{**QUESTIONS[0], "id": f"bio{number:02}"} for number in range(14)])
    done = run_cli("run", "--graph", str(export.path), "--mode", "files", "--model", "demo")
    mistake(done, "knows none of the questions in graph small", WORKS)


def test_a_replayed_run_in_a_mode_without_its_tools(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt([Step("ls", "x")])]})
    words = ("run", "--graph", str(export.path), "--model", f"replay:{run}", "--mode")
    mistake(run_cli(*words, "retrieval"), "its recorded turns call bash", "in a mode with its tools")
    assert run_cli(*words, "shell", "--dry-run").code == 0
    other = make_export(tmp_path, [{**QUESTIONS[0], "query": "Another question of this id?"}], name="other")
    words = ("run", "--graph", str(other.path), "--model", f"replay:{run}", "--mode", "files")
    mistake(run_cli(*words), "knows none of the questions in graph other", "on the questions that it was made with")
