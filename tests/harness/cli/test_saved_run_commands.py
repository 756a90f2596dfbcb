"""Commands on saved runs and exports: score, show, check, graphs, export, models."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from exporter import Export
from harness.events import trajectory_path
from harness.graphs import open_graph
from harness.messages import Entry, Reply, ToolCall, Usage
from harness.observe import Observation
from harness.trajectory import TrajectoryWriter
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import HARNESS, HARNESS_ENV, mistake, run_cli
from tests.support.runs import EDGES, NODES, QUESTIONS, attempt, jsonl, make_export, make_run

PROGRAM = "from harness.cli import main; main()"
HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold]x[/bold]\u202e"


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def run(tmp_path: Path, export: Export) -> Path:
    """A run: q1 right, q2 right at rank 2, q3 lost, q4 not asked; q1 has a trajectory of two turns."""
    records = [attempt("q1", ids=[0, 30]), attempt("q2", ids=[30, 4]), attempt("q3", "sandbox_lost", error="gone")]
    path = make_run(tmp_path / "run", export, records).path
    write_trajectory(path)
    return path


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


def write_trajectory(run: Path) -> None:
    call = ToolCall("c1", "bash", json.dumps({"command": f"for n in 1 2; do echo {HOSTILE}; done", "timeout": 5}))
    output = "\n".join(f"line {number}" for number in range(100)) + "\n" + HOSTILE + "x" * 900
    cut = {"lines": 1, "characters": 5000, "spill": "outputs/001.txt", "spilled_bytes": 7000}
    ran = {
        "exit_code": 0, "total_bytes": 7000, "lines": 101, "spill": None, "termination": "exit", "wall": 1.5,
        "cpu": 1.0, "memory": 2**20,
    }  # fmt: skip
    seen = Observation(f"[exit code 0]\n{output}", exec=ran, cut=cut, spill="outputs/001.txt", whole=b"all of it")
    usage = Usage(1000, 400, 50, None)
    with TrajectoryWriter(run / trajectory_path("q1", 0, 0), run / "blobs") as log:
        log.write(
            "start", query_id="q1", agent=0, attempt=0, query="Which papers are first?", mode="files",
            prompt="\n".join(f"prompt p{number}" for number in range(40)),
            tools=[{"name": "bash", "description": "", "parameters": {}}],
        )  # fmt: skip
        request = {"entries": 1, "bytes": 900, "tokens_estimate": 300, "cleared": [], "digest": "0" * 64}
        log.write("request", turn=1, **request)
        log.reply(1, Reply(Entry("assistant", f"I look. {HOSTILE}", (call,)), "tool_calls", usage, latency=2.0))
        log.result(1, call, json.loads(call.arguments), seen)
        log.write("clear", turn=2, call_ids=["c1"], tokens_before=9000, tokens_after=400)
        log.write("request", turn=2, **{**request, "cleared": ["c1"]})
        log.write("notice", turn=2, text="5 turns are left")
        log.reply(2, Reply(Entry("assistant", "ANSWER: [0, 30]"), "stop", usage, waited=3.0, latency=1.0))
        rejected = [{"value": "99", "why": "unknown"}]
        log.write("answer", text="ANSWER: [0, 30]", ids=[0, 30], repairs=["ids with names"], rejected=rejected)
        log.write("end", stop_reason="answered", limit=None, error=None)


class TestScore:
    def test_table(self, run: Path) -> None:
        result = run_cli("score", str(run))
        assert result.code == 0
        lines = result.stdout.splitlines()
        assert lines[0].split() == ["counted", "n", "Hit@1", "Hit@5", "Recall@20", "MRR"]
        assert "failed = miss (1 failed)  3  33.3 [6.1, 79.2]" in lines[1]
        assert "failures left out" in lines[2]
        assert "50.0 [9.5, 90.5]" in lines[2]
        assert "1 of 5 questions not asked yet" in result.stderr
        assert (run / "scores.json").is_file()

    def test_json_is_an_object_for_one_run_and_a_list_for_several(self, run: Path) -> None:
        one = json.loads(run_cli("score", str(run), "--json").stdout)
        assert one["hit@1"] == pytest.approx(1 / 3)
        assert {"hit@5", "recall@20", "mrr", "n", "ci"} <= one.keys()
        assert json.loads(run_cli("score", str(run), str(run), "--json").stdout) == [one, one]

    def test_prices(self, run: Path, tmp_path: Path) -> None:
        prices = tmp_path / "prices.toml"
        prices.write_text("[tester]\ninput = 1000\noutput = 0\n", encoding="utf-8")
        result = json.loads(run_cli("score", str(run), "--json", "--prices", str(prices)).stdout)
        assert result["cost"] == pytest.approx(3.0)
        mistake(run_cli("score", str(run), "--prices", str(tmp_path / "none")), "none: no such file")

    @pytest.mark.parametrize("command", [["score"], ["score", "--json"], ["compare"], ["report"], ["audit"]])
    @pytest.mark.parametrize("cut", [1, 9])
    def test_a_torn_ledger_is_said(self, run: Path, tmp_path: Path, command: list[str], cut: int) -> None:
        whole = shutil.copytree(run, tmp_path / "whole")
        assert "is torn" not in run_cli(*command, str(run), str(whole)).stderr
        ledger = run / "attempts.jsonl"
        ledger.write_bytes(ledger.read_bytes()[:-cut])
        done = run_cli(*command, str(run), str(whole))
        told = [line for line in done.stderr.splitlines() if "is torn" in line]
        assert len(told) == 1, done
        assert told[0].startswith(f"{run}: the last line of the ledger is torn"), done
        assert "--resume" in told[0]

    def test_many_calls_of_a_program_are_folded(self, tmp_path: Path) -> None:
        steps = [Step("python3 p.py", "done", made=(("search", False),) * 9_990)]
        export = make_export(tmp_path / "graph")
        run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(steps)]})
        lines = run_cli("show", str(run), "q1").stdout.splitlines()
        made = [number for number, line in enumerate(lines) if line.startswith("search(k=5)")]
        assert len(made) == 10
        assert lines[made[-1] + 1] == "… 9,980 calls folded (--full shows them) …"
        assert run_cli("show", str(run), "q1", "--full").stdout.count("search(k=5)") == 9_990

    def test_no_run(self, tmp_path: Path) -> None:
        mistake(run_cli("score", str(tmp_path)), "holds no runs", "harness run")
        mistake(run_cli("score", str(tmp_path / "none")), "there is no folder", "harness run")
        mistake(run_cli("score"), "harness score needs RUN|PARENT...")

    def test_all_runs_of_a_folder(self, run: Path, tmp_path: Path) -> None:
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
    def test_a_run_folder_that_can_not_be_written_is_scored(self, run: Path) -> None:
        run.chmod(0o555)
        try:
            result = run_cli("score", str(run))
        finally:
            run.chmod(0o755)
        assert result.code == 0
        assert "scores.json is not written" in result.stderr

    def test_needs_no_docker_no_client_and_no_sandbox(self, run: Path) -> None:
        script = (
            "import sys\nfrom harness.cli import main\n"
            "try:\n    main()\nexcept SystemExit: pass\n"
            "print(sorted({'openai', 'docker', 'sandbox'} & set(sys.modules)), file=sys.stderr)"
        )
        output = pexpect.run(f'{sys.executable} -c "{script}" score {run}', encoding="utf-8")
        assert output.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [("modes", "files"), ("graphs",), ("check", "RUN"), ("show", "RUN", "q1", "--full")])
def test_a_reader_that_has_had_enough_changes_no_exit_code(run: Path, words: tuple[str, ...]) -> None:
    command = [*HARNESS, *(str(run) if word == "RUN" else word for word in words)]
    usual = subprocess.run(command, env=HARNESS_ENV, capture_output=True, check=False)
    assert usual.stdout
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes) as pipe:
        closed = subprocess.run(command, env=HARNESS_ENV, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (usual.returncode, usual.stderr)


class TestMovedExport:
    """A run folder and an export are copied apart: the export is found again by its digest."""

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
    def moved(self, tmp_path: Path) -> Path:
        """A data directory with the export that the run in `run` was made on, and with others."""
        export = make_export(tmp_path)
        write_trajectory(make_run(tmp_path / "run", export, [attempt("q1", ids=[0, 30])]).path)
        exports = tmp_path / "data" / "exports"
        make_export(exports, [], name="other")
        (exports / "broken").mkdir()
        (exports / "broken" / "manifest.json").write_text("{", encoding="utf-8")
        export.path.rename(exports / "renamed")
        return tmp_path / "data"

    @staticmethod
    def lacks(name: str, *words: str, **env: str) -> bool:
        result = run_cli(name, *words, env=env)
        text = result.stdout + result.stderr
        assert result.code == 0 or "is it in the data directory" in text or name == "replay", result
        return "nor is it in the data directory" in text

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_it_is_found_in_the_data_directory(self, moved: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
        name, *more = command
        words, data = (str(tmp_path / "run"), *more), moved
        if name == "compare":
            words = (*words, str(shutil.copytree(tmp_path / "run", tmp_path / "again")))
        for place in (data, data / "exports" / "renamed"):
            (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
            assert not self.lacks(name, *words, "--data-dir", str(place))
        (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
        assert not self.lacks(name, *words, HARNESS_DATA=str(data))
        (tmp_path / "run" / "messages.jsonl").unlink(missing_ok=True)
        assert self.lacks(name, *words, "--data-dir", str(tmp_path / "none"))

    def test_another_export_in_its_place_is_not_taken_for_it(self, moved: Path, tmp_path: Path) -> None:
        words = ("score", str(tmp_path / "run"), "--data-dir")
        new = make_export(tmp_path / "new", QUESTIONS[:1]).path
        mistake(run_cli(*words, str(new)), f"the questions of {new} changed since")
        (moved / "exports" / "renamed").rename(tmp_path / "gone")
        (moved / "exports" / "other").rename(tmp_path / "gone too")
        mistake(run_cli(*words, str(moved)), "nor is it in the data directory", "--data-dir")

    def test_the_embedded_graph_is_exported_again(self, tmp_path: Path) -> None:
        place = tmp_path / "first" / "exports" / "biogo"
        opened = open_graph("biogo", tmp_path / "first", lambda _: None).export
        run = make_run(tmp_path / "run", opened, []).path
        place.rename(tmp_path / "gone")
        assert run_cli("score", str(run), "--data-dir", str(tmp_path / "second")).code == 0
        assert (tmp_path / "second" / "exports" / "biogo").is_dir()


class TestShow:
    def test_the_list(self, run: Path) -> None:
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

    def test_the_list_says_why_attempts_failed(self, tmp_path: Path, export: Export) -> None:
        down = "host: status 404: no such model\x1b[2J"
        records = [attempt(f"q{number}", "backbone_error", error=down) for number in (1, 2)]
        records += [attempt("q3", "sandbox_lost", error="gone"), attempt("q4", "interrupted", error="stopped")]
        run = make_run(tmp_path / "run", export, records).path
        assert run_cli("show", str(run)).stdout.splitlines()[-2:] == [
            "2 attempts failed, backbone_error: host: status 404: no such model\\x1b[2J",
            "1 attempt failed, sandbox_lost: gone",
        ]

    def test_the_list_says_what_became_of_misses(self, tmp_path: Path, export: Export) -> None:
        run = make_run(tmp_path / "run", export, [attempt("q1", ids=[30]), attempt("q2", ids=[30])]).path
        write_trajectory(run)
        rows = {line.split()[0]: line for line in run_cli("show", str(run)).stdout.splitlines()[1:]}
        assert "  miss  " in rows["q1"].replace("       ", "  ")
        assert "  cleared  " in rows["q1"]
        assert "  unreadable  " in rows["q2"]
        quick = {line.split()[0]: line for line in run_cli("show", str(run), "--no-classes").stdout.splitlines()[1:]}
        assert "  ?  " in quick["q1"].replace("      ", "  ")

    def test_a_trajectory(self, run: Path) -> None:
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
    def test_commands_stand_there_as_they_were(self, tmp_path: Path, export: Export, flags: tuple[str, ...]) -> None:
        program = "cat <<'E'\n" + "x = [" + "1234, " * 60 + "]\n\tif x:\n\n    y   =\t1  \nE"
        run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0])]).path
        call = ToolCall("c1", "bash", json.dumps({"command": program}))
        with TrajectoryWriter(run / trajectory_path("q1", 0, 0), run / "blobs") as log:
            log.write("start", query_id="q1", agent=0, attempt=0, query="?", mode="files", prompt="?", tools=[])
            log.reply(1, Reply(Entry("assistant", "", (call,)), "tool_calls", Usage(1, 0, 1, None)))
            log.result(1, call, json.loads(call.arguments), Observation("seen"))
            log.write("end", stop_reason="answered", limit=None, error=None)
        assert f"\n{program}\n" in run_cli("show", str(run), "q1", *flags).stdout

    def test_full_folds_nothing(self, run: Path) -> None:
        text = run_cli("show", str(run), "q1", "--full").stdout
        assert "folded" not in text
        assert all(f"line {number}\n" in text for number in range(100))
        assert "prompt p20" in text

    def test_nothing_in_a_trajectory_drives_the_terminal(self, run: Path) -> None:
        text = run_cli("show", str(run), "q1", "--full").stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "\\x1b]0;owned\\x07" in text
        assert "[bold]x[/bold]" in text

    @pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
    def test_a_terminal_gets_colours_and_a_pager_but_no_control_characters_of_the_trajectory(self, run: Path) -> None:
        text = paged(run, "less", LESS="-FRX")
        assert "\x1b[1m" in text
        assert "\x1b]0;owned" not in text
        assert "\x1b[2J" not in text
        assert "verdict: hit" in text

    def test_a_pager_that_might_write_colours_out_as_text_gets_none(self, run: Path) -> None:
        text = paged(run, "cat")
        assert "\x1b[" not in text
        assert "verdict: hit" in text

    @pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
    def test_less_as_it_comes_shows_colours_not_their_codes(self, run: Path) -> None:
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

    def test_without_the_export_it_still_shows(self, tmp_path: Path) -> None:
        export = make_export(tmp_path)
        run = make_run(tmp_path / "run", export, [attempt("q1", ids=[0])]).path
        write_trajectory(run)
        export.path.rename(tmp_path / "elsewhere")
        result = run_cli("show", str(run), "q1")
        assert result.code == 0
        assert "gold is not known: the export of" in result.stdout

    def test_mistakes(self, run: Path) -> None:
        mistake(run_cli("show", str(run), "q11"), "no question 'q11'", "did you mean 'q1'?")
        mistake(run_cli("show", str(run), "q4"), "'q4' has not been asked yet", "--resume")
        mistake(run_cli("show", str(run), "q1", "--attempt", "2"), "no such attempt", "it has 1")
        mistake(run_cli("show", str(run), "q2"), "can't be read", "harness check")


class TestCheck:
    def test_exports(self, tmp_path: Path) -> None:
        export = make_export(tmp_path)
        good = run_cli("check", str(export.path))
        assert (good.code, good.stdout) == (0, "")
        path = export.files / "nodes" / "0000.jsonl"
        path.write_text(path.read_text("utf-8").replace('"node 7"', '"node 8"'), encoding="utf-8")
        bad = run_cli("check", str(export.path))
        assert bad.code == 1
        assert "files/nodes/0000.jsonl" in bad.stdout

    def test_runs(self, run: Path) -> None:
        result = run_cli("check", str(run))
        assert result.code == 1
        assert "attempts.jsonl:2: its trajectory trajectories/q2/0-0.jsonl is missing" in result.stdout

    def test_a_run_that_goes_on(self, tmp_path: Path, export: Export) -> None:
        run = make_run(tmp_path / "run", export, []).path
        write_trajectory(run)
        path = run / trajectory_path("q1", 0, 0)
        path.write_bytes(path.read_bytes()[:-3])
        with (run / ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            going = run_cli("check", str(run))
        assert "a run is writing it" in going.stderr
        assert "in flight at a crash" not in going.stdout
        assert "torn" not in going.stdout
        stopped = run_cli("check", str(run))
        assert stopped.code == 1
        assert "a run is writing it" not in stopped.stderr
        assert "in flight at a crash" in stopped.stdout
        assert "torn" in stopped.stdout

    def test_neither(self, tmp_path: Path) -> None:
        mistake(run_cli("check", str(tmp_path)), "is neither an export nor a run folder", "manifest.json")


class TestExport:
    @pytest.fixture
    def tables(self, tmp_path: Path) -> Iterator[tuple[str, str]]:
        edges = tmp_path / "edges.tsv"
        edges.write_text(EDGES, encoding="utf-8")
        yield str(jsonl(tmp_path / "nodes.jsonl", NODES)), str(edges)

    def test_tables(self, tables: tuple[str, str], tmp_path: Path) -> None:
        out = tmp_path / "graph"
        result = run_cli("export", "tables", *tables, "--out", str(out), "--candidates", "paper")
        assert (result.code, result.stdout) == (0, f"{out}: 60 nodes, 30 edges\n")
        assert Export.open(out).is_candidate(0)
        assert not Export.open(out).is_candidate(1)

    def test_mistakes(self, tables: tuple[str, str], tmp_path: Path) -> None:
        out = str(tmp_path / "graph")
        mistake(run_cli("export", "tables", "none.csv", tables[1], "--out", out), "none.csv")
        mistake(run_cli("export", "tables", *tables), "harness export tables needs --out")
        mistake(run_cli("export", "tables", *tables, "--out", out, "--candidates", "papre"), "papre")
        mistake(run_cli("export"), "harness export needs a command", "commands: ")
        mistake(run_cli("export", "tabels"), "unknown command 'tabels'", "did you mean 'tables'?")
        assert not (tmp_path / "graph").exists()
        run_cli("export", "tables", *tables, "--out", out)
        mistake(run_cli("export", "tables", *tables, "--out", out), "graph")

    def test_bad_rows(self, tables: tuple[str, str], tmp_path: Path) -> None:
        edges = Path(tables[1])
        edges.write_text(edges.read_text("utf-8") + "X:0\twrites\tnobody\n", encoding="utf-8")
        out = str(tmp_path / "graph")
        mistake(run_cli("export", "tables", *tables, "--out", out), "nobody")
        result = run_cli("export", "tables", *tables, "--out", out, "--skip-bad-rows")
        assert result.code == 0
        assert "left out 1 row:" in result.stderr
