"""A run folder and an export are copied apart: the export is found again by its digest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.graphs import open_graph
from tests.support.cli import mistake, run_cli
from tests.support.runs import QUESTIONS, attempt, make_export, make_run, write_trajectory

COMMANDS = (
    ("score",),
    ("compare",),
    ("report",),
    ("audit",),
    ("replay",),
    ("show", "q1"),
    ("convert", "--to", "messages"),
)


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A data directory with the export that the run in `run` was made on, and with others."""
    export = make_export(tmp_path)
    write_trajectory(make_run(tmp_path / "run", export, [attempt("q1", ids=[0, 30])]).path)
    exports = tmp_path / "data" / "exports"
    make_export(exports, [], name="other")
    (exports / "broken").mkdir()
    (exports / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    export.path.rename(exports / "renamed")
    return tmp_path / "data"


def lacks(name: str, *words: str, **env: str) -> bool:
    result = run_cli(name, *words, env=env)
    text = result.stdout + result.stderr
    assert result.code == 0 or "is it in the data directory" in text or name == "replay", result
    return "nor is it in the data directory" in text


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_it_is_found_in_the_data_directory(moved: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *more = command
    words, data = (str(tmp_path / "run"), *more), moved
    if name == "compare":
        words = (*words, str(shutil.copytree(tmp_path / "run", tmp_path / "again")))
    for place in (data, data / "exports" / "renamed"):
        (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
        assert not lacks(name, *words, "--data-dir", str(place))
    (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
    assert not lacks(name, *words, HARNESS_DATA=str(data))
    (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
    assert lacks(name, *words, "--data-dir", str(tmp_path / "none"))


def test_another_export_in_its_place_is_not_taken_for_it(moved: Path, tmp_path: Path) -> None:
    words = ("score", str(tmp_path / "run"), "--data-dir")
    new = make_export(tmp_path / "new", QUESTIONS[:1]).path
    mistake(run_cli(*words, str(new)), f"the questions of {new} changed since")
    (moved / "exports" / "renamed").rename(tmp_path / "gone")
    (moved / "exports" / "other").rename(tmp_path / "gone too")
    mistake(run_cli(*words, str(moved)), "nor is it in the data directory", "--data-dir")


def test_the_embedded_graph_is_exported_again(tmp_path: Path) -> None:
    place = tmp_path / "first" / "exports" / "biogo"
    opened = open_graph("biogo", tmp_path / "first", lambda _: None).export
    run = make_run(tmp_path / "run", opened, []).path
    place.rename(tmp_path / "gone")
    assert run_cli("score", str(run), "--data-dir", str(tmp_path / "second")).code == 0
    assert (tmp_path / "second" / "exports" / "biogo").is_dir()
