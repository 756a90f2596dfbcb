"""`harness score`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from tests.support.cli import mistake, run_cli


def test_table(run: Path) -> None:
    result = run_cli("score", str(run))
    assert result.code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["counted", "n", "Hit@1", "Hit@5", "Recall@20", "MRR"]
    assert "failed = miss (1 failed)  3  33.3 [6.1, 79.2]" in lines[1]
    assert "failures left out" in lines[2]
    assert "50.0 [9.5, 90.5]" in lines[2]
    assert "1 of 5 questions not asked yet" in result.stderr
    assert (run / "scores.json").is_file()


def test_json_is_an_object_for_one_run_and_a_list_for_several(run: Path) -> None:
    one = json.loads(run_cli("score", str(run), "--json").stdout)
    assert one["hit@1"] == pytest.approx(1 / 3)
    assert {"hit@5", "recall@20", "mrr", "n", "ci"} <= one.keys()
    assert json.loads(run_cli("score", str(run), str(run), "--json").stdout) == [one, one]


def test_prices(run: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[tester]\ninput = 1000\noutput = 0\n", encoding="utf-8")
    result = json.loads(run_cli("score", str(run), "--json", "--prices", str(prices)).stdout)
    assert result["cost"] == pytest.approx(3.0)
    mistake(run_cli("score", str(run), "--prices", str(tmp_path / "none")), "none: no such file")


@pytest.mark.parametrize("command", [["score"], ["score", "--json"], ["compare"], ["report"], ["audit"]])
@pytest.mark.parametrize("cut", [1, 9])
def test_a_torn_ledger_is_said(run: Path, tmp_path: Path, command: list[str], cut: int) -> None:
    whole = shutil.copytree(run, tmp_path / "whole")
    assert "is torn" not in run_cli(*command, str(run), str(whole)).stderr
    ledger = run / "attempts.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-cut])
    done = run_cli(*command, str(run), str(whole))
    told = [line for line in done.stderr.splitlines() if "is torn" in line]
    assert len(told) == 1, done
    assert told[0].startswith(f"{run}: the last line of the ledger is torn"), done
    assert "--resume" in told[0]


def test_no_run(tmp_path: Path) -> None:
    mistake(run_cli("score", str(tmp_path)), "holds no runs", "harness run")
    mistake(run_cli("score", str(tmp_path / "none")), "there is no folder", "harness run")
    mistake(run_cli("score"), "harness score needs RUN|PARENT...")


def test_all_runs_of_a_folder(run: Path, tmp_path: Path) -> None:
    parent = tmp_path / "several"
    runs = [shutil.copytree(run, parent / name) for name in ("a", "b")]
    done = run_cli("score", str(parent))
    assert [line.split()[0] for line in done.stdout.splitlines()[1:7:3]] == [str(path) for path in runs]
    assert all((path / "scores.json").is_file() for path in runs)
    assert len(json.loads(run_cli("score", str(parent), "--json").stdout)) == 2
    assert len(json.loads(run_cli("audit", str(parent), "--json").stdout)) == 2
    one, both = run_cli("check", str(runs[0])), run_cli("check", str(parent))
    assert (both.code, both.stdout) == (one.code, one.stdout * 2)
    assert [line.split(":")[0] for line in both.stderr.splitlines()] == [str(path) for path in runs]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_folder_that_can_not_be_written_is_scored(run: Path) -> None:
    run.chmod(0o555)
    try:
        result = run_cli("score", str(run))
    finally:
        run.chmod(0o755)
    assert result.code == 0
    assert "scores.json is not written" in result.stderr


def test_needs_no_docker_no_client_and_no_sandbox(run: Path) -> None:
    script = (
        "import sys\nfrom harness.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "print(sorted({'openai', 'docker', 'sandbox'} & set(sys.modules)), file=sys.stderr)"
    )
    output = pexpect.run(f'{sys.executable} -c "{script}" score {run}', encoding="utf-8")
    assert output.splitlines()[-1] == "[]"
