"""`harness compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import mistake, run_cli
from tests.support.saved import Ask, Try, make_export, make_run

ASKS = [Ask(f"q{number}", (number,), "test" if number < 5 else "val") for number in range(9)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine questions: q0 and q1 right in `tools` alone, q8 in `files` alone; q3 failed in `tools`."""
    folder = tmp_path_factory.mktemp("runs")
    export = make_export(folder / "graph", "g", ASKS)
    files = {ask.id: Try(ask.gold if ask.id not in ("q0", "q1") else (40,), calls=("bash",)) for ask in ASKS}
    tools = {ask.id: Try(ask.gold if ask.id != "q8" else (40, 8), cost=0.02, calls=("read",) * 2) for ask in ASKS}
    make_run(folder / "runs" / "g-files", export, files, created=1.0)
    make_run(folder / "runs" / "g-tools", export, {**tools, "q3": Try((), "backbone_error")}, mode="tools", created=2.0)
    return folder / "runs"


def test_prints_a_block_for_each_set_and_convention(runs: Path) -> None:
    done = run_cli("compare", str(runs / "g-files"), str(runs / "g-tools"))
    lines = done.stdout.splitlines()
    assert (done.code, done.stderr) == (0, "")
    assert lines[0] == "tools against files: 9 questions of both"
    heads = [line for line in lines if "(n = " in line]
    assert heads == [
        "overall, failed = miss (n = 9)",
        "overall, failures left out (n = 8)",
        "split test, failed = miss (n = 5)",
        "split test, failures left out (n = 4)",
        "split val, failed = miss (n = 4)",
        "split val, failures left out (n = 4)",
    ]
    hit = next(line for line in lines if line.startswith("Hit@1  "))
    assert hit.split()[:4] == ["Hit@1", "77.8", "77.8", "0.0"]
    assert "Hit@1: 2 only files, 2 only tools; exact McNemar p = 1.000, by Holm 1.000" in lines
    assert "tools did better on 2, worse on 2, the same on 5" in lines
    assert next(line for line in lines if line.startswith("cost")).split()[3:6] == ["$0.0100", "$0.0189", "+$0.0089"]


def test_wins_lists_the_questions(runs: Path) -> None:
    lines = run_cli("compare", str(runs), "--wins").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["question"])
    assert [line.split()[:4] for line in lines[at + 1 : at + 5]] == [
        ["win", "q0", "-", "1"],
        ["win", "q1", "-", "1"],
        ["loss", "q3", "1", "-"],
        ["loss", "q8", "1", "2"],
    ]
    assert lines[at + 1].split()[4:8] == ["+$0.0100", "0", "0.0", "0.0"]


def test_json(runs: Path) -> None:
    table = json.loads(run_cli("compare", str(runs), "--wins", "--json", "--where", "run1.calls.bash > 0").stdout)
    assert [system["label"] for system in table["systems"]] == ["files", "tools"]
    assert table["where"] == "run1.calls.bash > 0"
    pair = table["pairs"][0]
    overall = pair["figures"][0]
    assert (overall["level"], overall["failures"], overall["n"]) == ("overall", "miss", 9)
    assert overall["hit@1"]["only_first"] == 2
    assert overall["hit@1"]["p_holm"] == 1.0
    assert len(overall["mrr"]["ci"]) == 2
    assert (overall["wins"], overall["losses"], overall["ties"]) == (2, 2, 5)
    assert [question["id"] for question in pair["questions"]] == ["q0", "q1", "q3", "q8"]
    assert pair["questions_left_out"]["condition"] == 0


def test_where_and_prices(runs: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[m]\ninput = 1000.0\noutput = 0.0\n")
    condition = f'other("{runs / "g-files"}").hit@1 == 0'
    done = run_cli("compare", str(runs), "--where", condition, "--prices", str(prices))
    assert "tools against files: 2 questions of both" in done.stdout
    assert "not compared: 7 not kept by --where" in done.stdout
    assert next(line for line in done.stdout.splitlines() if line.startswith("cost")).split()[3] == "$1.00"


def test_nothing_failed_is_said_once(runs: Path) -> None:
    done = run_cli("compare", str(runs), "--where", 'run2.state == "scored"')
    assert "no attempt failed for infrastructure reasons" in done.stdout
    assert "left out (n" not in done.stdout


def test_runs_on_different_exports_are_noticed(runs: Path, tmp_path: Path) -> None:
    other = make_export(tmp_path / "graph", "another", [*ASKS, Ask("more", (1,))])
    run = make_run(tmp_path / "run", other, {"q0": Try((0,))}, graph="g")
    done = run_cli("compare", str(runs / "g-files"), str(run))
    assert done.stderr.startswith("g: the runs were made on different exports, ")
    assert "not compared: 1 asked in the second alone, 8 not finished in both" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--where", "turnz > 1"], "unknown field 'turnz'", "did you mean 'turns'?"),
        (["--where", "import os"], "not understood", "for example"),
        (["--where", 'other("nowhere").hit@1'], "there is no folder nowhere", "harness run"),
        (["--where", "turns > 99"], "no question is kept by --where", "9 not kept"),
        (["--prices", "nowhere.toml"], "nowhere.toml", ""),
    ],
)
def test_mistakes(runs: Path, arguments: list[str], message: str, hint: str) -> None:
    mistake(run_cli("compare", str(runs), *arguments), message, hint)


def test_one_run_is_nothing_to_compare(runs: Path) -> None:
    mistake(run_cli("compare", str(runs / "g-files")), "nothing to compare", "two runs or more")
    mistake(run_cli("compare"), "needs RUN...")


def test_another_run_that_holds_several_systems_is_refused(runs: Path) -> None:
    mistake(run_cli("compare", str(runs), "--where", f'other("{runs}").mrr > 0'), "holds several systems: files, tools")
