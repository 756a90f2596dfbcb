"""`harness show`: the list of questions, and one attempt turn by turn."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from exporter import Export
from harness.events import trajectory_path
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.observe import Observation
from harness.trajectory import TrajectoryWriter
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import attempt, make_export, make_run, write_trajectory

PROGRAM = "from harness.cli import main; main()"


def pager(program: str, **more: str) -> dict[str, str]:
    """The environment of a terminal with this pager and, for less, no settings but `more`."""
    bare = {key: value for key, value in os.environ.items() if key not in ("LESS", "LESSOPEN", "NO_COLOR")}
    return {**bare, "PAGER": program, "TERM": "xterm", "COLUMNS": "100", **more}


def paged(run: Path, program: str, **more: str) -> str:
    """What a terminal of many lines gets when it shows the run's first question with a pager."""
    command = [sys.executable, "-c", PROGRAM, "show", str(run), "q1"]
    with pexpect.spawn(
        command[0], command[1:], env=pager(program, **more), encoding="utf-8", dimensions=(500, 100)
    ) as child:
        child.expect(pexpect.EOF)
        return str(child.before)


def test_the_list(run: Path) -> None:
    result = run_cli("show", str(run))
    assert result.code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    assert "hit" in rows["q1"]
    assert "right at 2" in rows["q2"]
    assert "failed" in rows["q3"]
    assert "not asked" in rows["q4"]
    assert "  ranking  " in rows["q2"]
    assert rows["q1"].endswith("$0.0100")
    assert rows["q4"].rstrip().endswith("not asked")


def test_the_list_says_why_attempts_failed(tmp_path: Path, export: Export) -> None:
    down = "host: status 404: no such model\x1b[2J"
    records = [attempt(f"q{number}", "backbone_error", error=down) for number in (1, 2)]
    records += [attempt("q3", "sandbox_lost", error="gone"), attempt("q4", "interrupted", error="stopped")]
    run = make_run(tmp_path / "run", export, records).path
    assert run_cli("show", str(run)).stdout.splitlines()[-2:] == [
        "2 attempts failed, backbone_error: host: status 404: no such model\\x1b[2J",
        "1 attempt failed, sandbox_lost: gone",
    ]


def test_the_list_says_what_became_of_misses(tmp_path: Path, export: Export) -> None:
    run = make_run(tmp_path / "run", export, [attempt("q1", ids=[30]), attempt("q2", ids=[30])]).path
    write_trajectory(run)
    rows = {line.split()[0]: line for line in run_cli("show", str(run)).stdout.splitlines()[1:]}
    assert "  miss  " in rows["q1"].replace("       ", "  ")
    assert "  cleared  " in rows["q1"]
    assert "  unreadable  " in rows["q2"]
    quick = {line.split()[0]: line for line in run_cli("show", str(run), "--no-classes").stdout.splitlines()[1:]}
    assert "  ?  " in quick["q1"].replace("      ", "  ")


def test_a_trajectory(run: Path) -> None:
    text = run_cli("show", str(run), "q1").stdout
    for expected in (
        "question q1: Which papers are first?", "turn 1", "turn 2", "for n in 1 2", "timeout: 5",
        "lines folded (--full shows them)", "line 99", "characters folded",
        "cut: 5,000 characters left out of the middle, 1 line shortened; the output is in the sandbox as"
        " outputs/001.txt, and saved as", "cleared from the conversation before turn 2", "1 result cleared",
        "the harness said: 5 turns are left", "repaired: ids with names", "rejected: 99 (unknown)",
        "verdict: hit",
        "1  0  node 0  right  [first shown in turn 1, byte 19, cleared later, named by the agent before]",
        "2  30  node 30  [first shown in turn 1, byte 249, cleared later]", "gold that was not given:",
        "2  node 2  [first shown in turn 1, byte 33, cleared later, named by the agent before]", "cost $0.0100",
    ):  # fmt: skip
        assert expected in text, expected
    assert "line 50" not in text
    assert "prompt p20" not in text


@pytest.mark.parametrize("flags", [(), ("--full",)])
def test_commands_stand_there_as_they_were(tmp_path: Path, export: Export, flags: tuple[str, ...]) -> None:
    program = "cat <<'E'\n" + "x = [" + "1234, " * 60 + "]\n\tif x:\n\n    y   =\t1  \nE"
    run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0])]).path
    call = ToolCall("c1", "bash", json.dumps({"command": program}))
    with TrajectoryWriter(run / trajectory_path("q1", 0, 0), run / "blobs") as log:
        log.write("start", query_id="q1", agent=0, attempt=0, query="?", mode="files", prompt="?", tools=[])
        log.reply(1, Reply(Entry("assistant", "", (call,)), "tool_calls", Usage(1, 0, 1, None)))
        log.result(1, call, json.loads(call.arguments), Observation("seen"))
        log.write("end", stop_reason="answered", limit=None, error=None)
    assert f"\n{program}\n" in run_cli("show", str(run), "q1", *flags).stdout


def test_full_folds_nothing(run: Path) -> None:
    text = run_cli("show", str(run), "q1", "--full").stdout
    assert "folded" not in text
    assert all(f"line {number}\n" in text for number in range(100))
    assert "prompt p20" in text


def test_nothing_in_a_trajectory_drives_the_terminal(run: Path) -> None:
    text = run_cli("show", str(run), "q1", "--full").stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "\\x1b]0;owned\\x07" in text
    assert "[bold]x[/bold]" in text


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_a_terminal_gets_colours_and_a_pager_but_no_control_characters_of_the_trajectory(run: Path) -> None:
    text = paged(run, "less", LESS="-FRX")
    assert "\x1b[1m" in text
    assert "\x1b]0;owned" not in text
    assert "\x1b[2J" not in text
    assert "verdict: hit" in text


def test_a_pager_that_might_write_colours_out_as_text_gets_none(run: Path) -> None:
    text = paged(run, "cat")
    assert "\x1b[" not in text
    assert "verdict: hit" in text


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_as_it_comes_shows_colours_not_their_codes(run: Path) -> None:
    child = pexpect.spawn(
        sys.executable, ["-c", PROGRAM, "show", str(run), "q1"], env=pager("less"), encoding="utf-8",
        dimensions=(24, 100),
    )  # fmt: skip
    child.expect("question q1")
    seen = child.before
    child.expect("tools: bash")
    seen += child.before
    child.send("q")
    child.expect(pexpect.EOF)
    assert "\x1b[1m" in seen
    assert "ESC" not in seen


def test_without_the_export_it_still_shows(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0])]).path
    write_trajectory(run)
    export.path.rename(tmp_path / "elsewhere")
    result = run_cli("show", str(run), "q1")
    assert result.code == 0
    assert "gold is not known: the export of" in result.stdout


def test_mistakes(run: Path) -> None:
    mistake(run_cli("show", str(run), "q11"), "no question 'q11'", "did you mean 'q1'?")
    mistake(run_cli("show", str(run), "q4"), "'q4' has not been asked yet", "--resume")
    mistake(run_cli("show", str(run), "q1", "--attempt", "2"), "no such attempt", "it has 1")
    mistake(run_cli("show", str(run), "q2"), "can't be read", "harness check")


def test_many_calls_of_a_program_are_folded(tmp_path: Path) -> None:
    steps = [Step("python3 p.py", "done", made=(("search", False),) * 9_990)]
    export = make_export(tmp_path / "graph")
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(steps)]})
    lines = run_cli("show", str(run), "q1").stdout.splitlines()
    made = [number for number, line in enumerate(lines) if line.startswith("search(k=5)")]
    assert len(made) == 10
    assert lines[made[-1] + 1] == "… 9,980 calls folded (--full shows them) …"
    assert run_cli("show", str(run), "q1", "--full").stdout.count("search(k=5)") == 9_990
