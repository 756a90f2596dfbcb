"""`harness audit`."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.audit.checks import run as run_checks
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import make_export

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e"


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return make_export(tmp_path / "graph")


@pytest.fixture
def run(tmp_path: Path, export: Export) -> Path:
    steps = [Step("rg a", "0 and 2"), Step("curl x", "not found", exit_code=127), Step("python3 -c 'print(1)'", "1")]
    attempts = {"q1": [Attempt(steps, (30, 0))], "q2": [Attempt([Step("cat x")], stop="backbone_error")]}
    return make_audited_run(tmp_path / "run", export, attempts)


def test_text(run: Path) -> None:
    done = run_cli("audit", str(run))
    rows = [line for line in done.stdout.splitlines() if line]
    assert (done.code, done.stderr) == (0, "")
    assert rows[0].startswith(f"{run}: small, files, m; 2 questions, 2 attempts, ")
    assert [row.split("  ")[0] for row in rows if row.isupper() or row.split("  ")[0].isupper()][:4] == [
        "WHAT THE AGENT DID", "WHERE ANSWERS COME FROM", "WHETHER THE RUN CAN BE TRUSTED", "WHAT IT COST",
    ]  # fmt: skip
    classes = rows.index("what became of the questions (of attempts)")
    ranking = next(row for row in rows[classes:] if row.startswith("- ranking"))
    assert ranking.split()[2:6] == ["1", "2", "50.0", "%"]
    assert "trajectories/q1/0-0.jsonl:3 (node 0, turn 1, byte 14)" in ranking
    verdict = rows[rows.index("Worth a look before the run is trusted:") :]
    assert "  calls that tried: to reach the network: 1 of 4" in verdict
    assert "    trajectories/q1/0-0.jsonl:5" in verdict
    assert any("infrastructure" in row for row in verdict)


def test_json_says_the_same(run: Path) -> None:
    one = json.loads(run_cli("audit", "--json", str(run)).stdout)
    two = json.loads(run_cli("audit", "--json", str(run), str(run)).stdout)
    assert two == [one, one]
    checks = {check["name"]: check for section in one["sections"].values() for check in section["checks"]}
    rows = {row["label"]: row for row in checks["attempts_at"]["rows"]}
    assert rows["to reach the network"]["count"] == 1
    assert rows["to reach the network"]["examples"][0] == {"file": "trajectories/q1/0-0.jsonl", "line": 5, "what": ""}


def test_text_and_report_have_the_figures_of_json(run: Path, tmp_path: Path) -> None:
    content = json.loads(run_cli("audit", "--json", str(run)).stdout)
    text = [" ".join(row.split()) for row in run_cli("audit", str(run)).stdout.splitlines()]
    page = tmp_path / "page.html"
    assert run_cli("report", str(run), "--format", "html", "--out", str(page)).code == 0
    rows = re.findall(r"<tr>(.*?)</tr>", page.read_text())
    cells = [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in rows]
    compared = 0
    for section in content["sections"].values():
        for check in section["checks"]:
            for row in filter(lambda row: row["count"], check["rows"]):
                figures = shown(row)
                label = row["label"].replace("_", " ")
                start = f"- {label} {figures}" if label else f"{check['title']} (of {check['unit']}) {figures}"
                assert start.rstrip() in text
                title = f"{check['title']}: {label}" if label else check["title"]
                assert f"{title} {check['unit']} {figures}".rstrip() in cells
                compared += 1
        for measure in filter(lambda measure: measure["n"], section["measures"]):
            place = measure["examples"][0]
            end = f"{place['file']}:{place['line']}"
            start = f"{measure['title']} {measure['unit']} {measure['n']} "
            (one,) = [row for row in text if row.startswith(start)]
            assert one in cells
            assert one.endswith(end)
            compared += 1
    assert compared > 40


def shown(row: dict[str, Any]) -> str:
    """A row's figures as tables have them."""
    ends, place = row["interval"], row["examples"][0] if row["examples"] else None
    parts = [
        f"{row['count']:,}" if isinstance(row["count"], int) else f"{row['count']:,.1f}",
        f"{row['of']:,}", f"{row['rate'] * 100:.1f} %", f"[{ends[0] * 100:.1f}, {ends[1] * 100:.1f}]" if ends else "",
        f"{place['file']}{':' + str(place['line']) if place['line'] else ''}" if place else "",
        f"({place['what']})" if place and place["what"] else "",
    ]  # fmt: skip
    return " ".join(part for part in parts if part)


def test_every_figure_on_attempts_has_a_pointer(run: Path) -> None:
    content = json.loads(run_cli("audit", "--json", str(run)).stdout)
    for section in content["sections"].values():
        for check in section["checks"]:
            for row in check["rows"]:
                if row["count"] and check["name"] not in ("retry_bias", "retried"):
                    assert row["examples"], (check["name"], row["label"])
                    assert all(place["line"] for place in row["examples"]), (check["name"], row["label"])
                assert row["interval"] or not row["of"] or check["name"] in RUN_CHECKS
        assert all(measure["examples"] for measure in section["measures"] if measure["n"])


RUN_CHECKS = {check.name for check in run_checks.CHECKS}


def test_without_the_export(run: Path, export: Export) -> None:
    shutil.rmtree(export.path)
    done = run_cli("audit", str(run))
    assert done.code == 0
    assert done.stderr.startswith(f"{run}: what needs gold is left out: ")
    assert "- no gold" in done.stdout


def test_nothing_that_an_agent_wrote_reaches_the_terminal_as_it_is(tmp_path: Path, export: Export) -> None:
    steps = [
        Step(tool=f"x{HOSTILE}", arguments={"a": HOSTILE}, output=HOSTILE, error="unknown_tool"),
        Step(HOSTILE, HOSTILE),
    ]
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(steps, (0,), extra={"error": HOSTILE})]})
    output = run_cli("audit", str(run)).stdout
    assert not set(HOSTILE) & set(output) - set("[2J]0;owned")


def test_trajectories_that_are_gone(run: Path) -> None:
    assert run_cli("audit", str(run)).stderr == ""
    shutil.rmtree(run / "trajectories" / "q2")
    done = run_cli("audit", str(run))
    assert (done.code, done.stderr) == (0, f"{run}: of 2 attempts in the ledger 1 not audited: no trajectory\n")
    assert json.loads(run_cli("audit", "--json", str(run)).stdout)["missing"] == 1
    shutil.rmtree(run / "trajectories")
    for more in ([], ["--json"]):
        mistake(run_cli("audit", str(run), *more), f"nothing to audit in {run}: its ledger has 2 attempts", "score")


def test_mistakes(tmp_path: Path, run: Path) -> None:
    mistake(run_cli("audit", str(tmp_path / "none")), "there is no folder", "give the folder")
    mistake(run_cli("audit"), "needs RUN")
    mistake(run_cli("audit", str(run), "--processes", "0"), "--processes")
