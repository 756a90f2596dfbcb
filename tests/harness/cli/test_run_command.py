"""`harness run`, in a real sandbox: what a user sees, resumes, the dry run, and every mistake."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest

from exporter import Export
from harness.ledger import read_ledger
from harness.schemas import check_run
from tests.support.cli import HARNESS, HARNESS_ENV, SMALL, Outcome, mistake, run_cli
from tests.support.runs import QUESTIONS, jsonl, make_export
from tests.support.server import ScriptedServer, by_turn, call, refuse, say
from tests.support.waiting import wait_until

Run = Callable[..., Outcome]

pytestmark = pytest.mark.usefixtures("bwrap")


def turn(text: str = "", command: str = "", query_id: str | None = None, tokens: int | None = None) -> dict[str, Any]:
    """A line of a script."""
    line: dict[str, Any] = {"role": "assistant", "content": text}
    if command:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        line["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
    if query_id is not None:
        line["query_id"] = query_id
    if tokens is not None:
        line["usage"] = {"prompt_tokens": tokens, "completion_tokens": 10}
    return line


def start(command: list[str], folder: Path) -> pexpect.spawn[str]:
    """The command in a process and a terminal of its own."""
    return pexpect.spawn(command[0], command[1:], cwd=str(folder), env=HARNESS_ENV, encoding="utf-8", timeout=60)


def finish(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, to its end."""
    return subprocess.run(command, cwd=folder, env=HARNESS_ENV, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """q1 is answered right, q2 at rank 2, the others wrong, after one command."""
    answers = {"q1": "[0]", "q2": "[30, 4]"}
    lines = [turn(command="ls $GRAPH"), turn("ANSWER: [30]")]
    for query_id, ids in answers.items():
        lines += [turn(command="ls $GRAPH", query_id=query_id), turn(f"ANSWER: {ids}", query_id=query_id)]
    return jsonl(tmp_path / "script.jsonl", lines)


@pytest.fixture
def run(export: Export, script: Path, tmp_path: Path) -> Run:
    """Runs `harness run` on the small graph with the script, and with further flags."""

    def go(*flags: str, **kwargs: Any) -> Outcome:
        usual = {"--graph": str(export.path), "--mode": "files", "--model": f"scripted:{script}", "--sandbox": "bwrap",
                 "--out": str(tmp_path / "run")}  # fmt: skip
        rest = [part for pair in usual.items() if pair[0] not in flags for part in pair]
        return run_cli("run", *rest, *SMALL, *flags, **kwargs)

    return go


class TestWhatAUserSees:
    def test_lines_tables_and_the_folder(self, run: Run, tmp_path: Path) -> None:
        result = run("--split", "all")
        assert result.code == 0, result
        lines = {line.split()[0]: line for line in result.stderr.splitlines()}
        assert re.search(r"^q1  Which papers are first\?  0 node 0  hit  2 turns  \d+\.\d s$", lines["q1"])
        assert "30 node 30, 4  miss (right at rank 2)" in lines["q2"]
        assert "30 node 30  miss" in lines["q3"]
        assert "30 node 30  unscored" in lines["q5"]
        assert "1 of 5 questions without gold" in result.stderr
        output = result.stdout.splitlines()
        assert output[0].split() == ["counted", "n", "Hit@1", "Hit@5", "Recall@20", "MRR"]
        assert output[1].startswith("all      4  25.0 [4.6, 69.9]  50.0 [15.0, 85.0]")
        assert output[-1] == f"run folder: {tmp_path / 'run'}"
        assert json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))["hit@1"] == 0.25
        assert list(check_run(tmp_path / "run")) == []

    def test_the_folder_has_a_name_of_its_own_where_none_is_given(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: Export, script: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        flags = ["run", "--graph", str(export.path), "--mode", "files", "--model", f"scripted:{script}"]
        flags += ["--sandbox", "bwrap", "--limit", "1", *SMALL]
        assert run_cli(*flags).code == 0
        assert run_cli(*flags).code == 0
        names = sorted(path.name for path in (tmp_path / "runs").iterdir())
        assert len(names) == 2
        assert all(re.fullmatch(r"\d{8}-\d{6}-small-files(-2)?", name) for name in names)

    def test_several_graphs_have_a_folder_each(self, run: Run, tmp_path: Path, export: Export) -> None:
        other = make_export(tmp_path / "other", name="second")
        result = run("--graph", f"{export.path},{other.path}", "--limit", "1")
        assert result.code == 0
        assert {path.name for path in (tmp_path / "run").iterdir()} == {"small-files", "second-files"}
        rows = result.stdout.splitlines()
        assert rows[0].split()[0] == "run"
        assert rows[1].startswith(str(tmp_path / "run" / "small-files"))

    def test_an_endpoint_on_this_machine_needs_no_key(self, run: Run, tmp_path: Path) -> None:
        turns = by_turn([say(calls=[call("bash", {"command": "ls"})]), say("ANSWER: [0]")])
        with ScriptedServer(turns) as server:
            result = run("--model", "anything", "--base-url", server.url, "--limit", "2")
        assert result.code == 0, result
        assert len(server.requests) == 4
        assert "q1" in result.stderr

    def test_a_replay_says_how_many_results_are_as_recorded(self, run: Run, tmp_path: Path) -> None:
        changing = [turn(command="cat /proc/sys/kernel/random/uuid", query_id="q2"), turn("ANSWER: [4]", query_id="q2")]
        script = jsonl(tmp_path / "s.jsonl", [turn(command="ls $GRAPH"), turn("ANSWER: [0]"), *changing])
        assert run("--model", f"scripted:{script}").stdout.count("replay: ") == 0
        again = run("--model", f"replay:{tmp_path / 'run'}", "--out", str(tmp_path / "again"))
        assert again.code == 0, again
        assert "\nreplay: 2 results as recorded, 1 differs\nrun folder: " in again.stdout

    def test_a_model_that_the_endpoint_does_not_have_is_said_at_once(self, run: Run) -> None:
        with ScriptedServer(lambda _: refuse(404, "The model `nope` does not exist")) as server:
            flags = ("--model", "nope", "--base-url", server.url)
            result = run(*flags, "--workers", "1")
            mistake(result, "status 404: The model `nope` does not exist", "--model and --base-url")
            assert "to go on: " in result.stderr
            mistake(run(*flags, "--workers", "1", "--resume"), "status 404")
        assert server.count == 2

    def test_a_question_with_an_endless_id_has_a_short_line(self, run: Run, tmp_path: Path) -> None:
        queries = jsonl(tmp_path / "q.jsonl", [{"id": "x" * 5000, "query": "Which?"}])
        result = run("--queries", str(queries))
        assert result.code == 0, result
        assert "x" * 59 + "…" in result.stderr
        assert "x" * 60 not in result.stderr

    def test_a_failure_is_explained_once(self, run: Run, tmp_path: Path) -> None:
        with ScriptedServer(lambda _: refuse(500, "out of order")) as server:
            result = run("--model", "m", "--base-url", server.url, "--set", "model.tries=1", "--workers", "2")
        assert result.code == 1, result
        assert result.stderr.count("status 500: out of order") == 1
        for command in ("show", "audit"):
            assert "status 500: out of order" in run_cli(command, str(tmp_path / "run")).stdout

    def test_failures_of_infrastructure_are_told_apart(self, run: Run, tmp_path: Path) -> None:
        short = jsonl(tmp_path / "short.jsonl", [turn("ANSWER: [0]", query_id="q1"), turn("x", "ls", query_id="q2")])
        result = run("--model", f"scripted:{short}", "--limit", "2")
        assert result.code == 1
        assert result.stderr.count("failed (backbone_error), to be tried again") == 2
        assert "failed = miss (1 failed)" in result.stdout
        assert "failures left out" in result.stdout
        assert "first attempts" in result.stdout

    def test_flags_in_the_environment_and_in_the_config(self, export: Export, script: Path, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text(
            f'default_model = "scripted:{script}"\n[run]\nlimit = 1\nout = "{tmp_path / "run"}"\n'
            'set = {limits.turns = 7, sandbox = {scratch = 16, tmp = 16}}\nsplit = ["train", "test"]\n',
            encoding="utf-8",
        )
        env = {"HARNESS_CONFIG": str(config), "HARNESS_RUN_LIMIT": "4", "HARNESS_RUN_SANDBOX": "bwrap"}
        result = run_cli("run", "--graph", str(export.path), "--mode", "files", env=env)
        assert result.code == 0, result
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
        assert manifest["questions"]["ids"] == ["q1", "q2", "q3", "q4"]
        assert manifest["mode"]["limits"]["turns"] == 7
        assert manifest["command"][:2] == ["harness", "run"]


class TestResume:
    def test_ctrl_c_names_the_command_that_goes_on(self, export: Export, tmp_path: Path) -> None:
        """The second question's command waits until the run is stopped; the command that is named does the rest."""
        waits = jsonl(
            tmp_path / "waits.jsonl",
            [turn(command="true"), turn("ANSWER: [0]"), turn(command="read x < <(sleep 100)", query_id="q2"),
             turn("ANSWER: [4]", query_id="q2")],
        )  # fmt: skip
        command = [*HARNESS, "run", "--graph", str(export.path), "--mode", "files", "--sandbox", "bwrap", *SMALL]
        command += ["--model", f"scripted:{waits}", "--workers", "1"]
        process = pexpect.spawn(
            command[0], command[1:], cwd=str(tmp_path), env=HARNESS_ENV, encoding="utf-8", timeout=60
        )
        process.expect(r"q1 .* hit")
        wait_until(lambda: any((tmp_path / "runs").glob("*/trajectories/q2/*.jsonl")))
        process.sendintr()
        process.expect(r"to go on: (harness run [^\r\n]* --resume)\r\n")
        again = shlex.split(process.match.group(1))
        process.expect(pexpect.EOF)
        process.close()
        assert process.exitstatus == 130
        jsonl(waits, [turn(command="true"), turn("ANSWER: [4]")])
        done = subprocess.run(
            [*HARNESS, *again[1:]], cwd=tmp_path, env=HARNESS_ENV, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (folder,) = (tmp_path / "runs").iterdir()
        stops = [(record.query_id, record.stop_reason) for record in read_ledger(folder)]
        assert stops == [("q1", "answered"), ("q2", "interrupted"), ("q2", "answered"), ("q3", "answered")]
        assert "1 attempt of 3 done before" in done.stderr

    def test_a_limit_of_the_run_is_told_and_can_be_raised(self, run: Run, tmp_path: Path) -> None:
        script = jsonl(tmp_path / "s.jsonl", [turn("ANSWER: [0]", tokens=1_000)])
        flags = ("--model", f"scripted:{script}", "--workers", "1")
        stopped = run(*flags, "--set", "run.tokens=2_000")
        assert stopped.code == 1
        assert "stopped: run.tokens is reached, 2,020 of 2,000; to go on, raise it: harness run " in stopped.stderr
        assert "1 of 3 questions not asked yet" in stopped.stderr
        done = run(*flags, "--set", "run.tokens=9_000", "--resume")
        assert done.code == 0, done
        assert len(read_ledger(tmp_path / "run")) == 3

    def test_a_finished_run_is_not_asked_again(self, run: Run, tmp_path: Path) -> None:
        first = run()
        again = run("--resume")
        assert again.code == 0
        assert again.stdout == first.stdout
        assert len(read_ledger(tmp_path / "run")) == 3

    def test_other_settings_are_named(self, run: Run, tmp_path: Path) -> None:
        run("--limit", "1")
        before = (tmp_path / "run" / "manifest.json").read_bytes()
        mistake(run("--limit", "2", "--resume"), "other questions: 1 then, 2 now", "resume with what")
        mistake(run("--limit", "1", "--resume", "--set", "limits.turns=5"), "mode.limits.turns was 300, now 5")
        other = jsonl(tmp_path / "other.jsonl", [turn("ANSWER: [0]")])
        mistake(run("--model", f"scripted:{other}", "--limit", "1", "--resume"), "model.name differs")
        graph = make_export(tmp_path / "x", name="different")
        mistake(run("--graph", str(graph.path), "--limit", "1", "--resume"), 'graph was "small", now "different"')
        assert (tmp_path / "run" / "manifest.json").read_bytes() == before

    def test_several_runs_of_which_one_was_never_begun(self, run: Run, tmp_path: Path, export: Export) -> None:
        other = make_export(tmp_path / "other", name="second")
        assert run("--limit", "1", "--out", str(tmp_path / "all" / "small-files")).code == 0
        flags = ("--graph", f"{export.path},{other.path}", "--limit", "1", "--out", str(tmp_path / "all"))
        mistake(run(*flags), "small-files exists", "--resume")
        result = run(*flags, "--resume")
        assert result.code == 0, result
        assert len(read_ledger(tmp_path / "all" / "small-files")) == 1
        assert len(read_ledger(tmp_path / "all" / "second-files")) == 1

    def test_a_damaged_ledger(self, run: Run, tmp_path: Path) -> None:
        run("--limit", "1")
        ledger = tmp_path / "run" / "attempts.jsonl"
        ledger.write_bytes(b"{}\n" + ledger.read_bytes())
        mistake(run("--limit", "1", "--resume"), "attempts.jsonl:1: not an attempt", "harness check")

    def test_a_torn_last_line_is_set_aside_and_said(self, run: Run, tmp_path: Path) -> None:
        run("--limit", "1")
        ledger = tmp_path / "run" / "attempts.jsonl"
        ledger.write_bytes(ledger.read_bytes() + b'{"query_id": "q1", "ag')
        result = run("--limit", "1", "--resume")
        assert result.code == 0
        assert "the last line of the ledger was torn by a crash; set aside as attempts.jsonl.torn-1" in result.stderr

    def test_nothing_to_resume(self, run: Run, tmp_path: Path) -> None:
        mistake(run("--resume"), "nothing to resume", "leave --resume out")
        assert not (tmp_path / "run").exists()

    def test_resume_needs_a_folder(
        self, export: Export, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        flags = ["run", "--graph", str(export.path), "--mode", "files", "--model", f"scripted:{script}", "--resume"]
        mistake(run_cli(*flags), "--resume needs --out", "name the run folder")


class TestDryRun:
    def test_says_what_would_run_and_writes_nothing(self, run: Run, tmp_path: Path) -> None:
        result = run("--dry-run")
        assert result.code == 0
        assert "nothing is missing" in result.stdout
        assert "basis: no model is asked" in result.stdout
        header, row = (line.split() for line in result.stdout.splitlines()[:2])
        assert row[header.index("questions")] == "3"
        assert not (tmp_path / "run").exists()

    def test_names_the_key_that_is_missing_and_has_a_price_range(self, run: Run) -> None:
        result = run("--model", "gpt-5.2", "--dry-run", env={"OPENAI_API_KEY": None})
        assert result.code == 0
        assert "missing: no key for model 'gpt-5.2': OPENAI_API_KEY is not set" in result.stdout
        assert re.search(r"\$[\d.,]+ to \$[\d.,]+", result.stdout)

    def test_earlier_runs_are_the_basis_where_there_are_enough(self, run: Run, tmp_path: Path) -> None:
        script = jsonl(tmp_path / "s.jsonl", [turn(command="ls", tokens=1000), turn("ANSWER: [0]", tokens=1000)])
        queries = jsonl(tmp_path / "q.jsonl", [{"id": f"n{i}", "query": f"Which is {i}?"} for i in range(6)])
        flags = ("--model", f"scripted:{script}", "--queries", str(queries))
        assert run(*flags).code == 0
        out = ("--out", str(tmp_path / "next"))
        result = run_cli("run", "--graph", str(_graph(tmp_path)), "--mode", "files", *SMALL, *flags, *out, "--dry-run")
        assert f"basis: 6 earlier attempts under {tmp_path}" in result.stdout
        header, row = (re.split(r"  +", line) for line in result.stdout.splitlines()[:2])
        assert (row[header.index("requests")], row[header.index("input")]) == ("12", "12,000")

    def test_a_mistake_is_one_in_a_dry_run_too(self, run: Run) -> None:
        mistake(run("--model", "gpt-52", "--dry-run"), "unknown model 'gpt-52'")
        mistake(run("--model", "scripted:"), "lacks what comes behind the colon", "scripted:turns.jsonl")
        mistake(run("--model", "replay:"), "lacks what comes behind the colon", "replay:runs/mine")
        mistake(run("--model", "scripted:none.jsonl", "--dry-run"), "script none.jsonl can't be read")


def _graph(folder: Path) -> str:
    manifest = json.loads((folder / "run" / "manifest.json").read_text("utf-8"))
    return str(manifest["export"]["path"])


class TestMistakes:
    def test_limits_of_the_run_that_make_no_sense(self, run: Run) -> None:
        mistake(run("--set", "run.tokens=-1"), "tokens is -1; it must be greater than 0", "the default is none")
        mistake(run("--set", "run.token=1"), "unknown key 'token'", "cost, seconds, tokens")
        mistake(run("--set", "run=1"), "--set run takes a limit", "run.tokens=5_000_000")
        for key in ("run.cost", "limits.cost"):
            mistake(run("--set", f"{key}=1"), f"{key} can't be kept: the prices of model", "model.prices.input")

    @pytest.mark.parametrize(
        ("flags", "message", "hint"),
        [
            (["--graph", "biogoo"], "unknown graph 'biogoo'", "did you mean 'biogo'?"),
            (["--mode", "fiels"], "unknown mode 'fiels'", "did you mean 'files'?"),
            (["--mode", "files,"], "--mode: 'files,' has an empty name", "see harness run --help"),
            (["--model", "gpt-52"], "unknown model 'gpt-52'", "gpt-5.2"),
            (["--split", "tset"], "unknown split 'tset'", "did you mean 'test'?"),
            (["--split", "human"], "no questions in split 'human'", "splits there are: test, train, val"),
            (["--worker", "3"], "harness run has no flag --worker", "did you mean '--workers'?"),
            (["--workers", "0"], "--workers: '0' is no whole number from 1 on", "see harness run --help"),
            (["--retry", "always"], "--retry: 'always' is not one of 'infra', 'timeout', 'none'", "see harness run"),
            (["--set", "limits.turn=3"], "unknown key 'turn'", "known keys:"),
            (["--set", "limits.turns=many"], "limits: turns takes a whole number, not 'many'", "the default is 300"),
            (["--set", "limits"], "--set 'limits' is not key=value", "for example"),
            (["--set", "model.efort=low"], "unknown key 'efort'", "known keys:"),
            (["--set", "sandbox.memory=64"], "sandbox: memory is 64 MiB; it must be", "the default is 4096 MiB"),
            (["--set", "sandbox.memory=9999999"], "this machine's memory", "--set sandbox.memory="),
            (["--set", "sandbox.pids=1"], "sandbox: pids is 1; it must be at least 16", "the default is 256"),
            (["--set", "limits.turns=0"], "limits: turns is 0; it must be at least 1", "the default is 300"),
            (["--set", "model.window=10"], "window is 10; it must be at least 1,000", "the default is none"),
            (
                ["--model", "m", "--base-url", "localhost:8000"],
                "'localhost:8000' is not an http or https URL",
                "http://localhost:8000/v1",
            ),
            (["--model", "m", "--base-url", ""], "endpoint '' is not an http or https URL", "http://localhost:8000/v1"),
            (["--model", "gpt-5.2"], "no key for model 'gpt-5.2': OPENAI_API_KEY is not set", "OPENAI_API_KEY"),
            (["--queries", "none.jsonl"], "none.jsonl", ""),
            (["--queries", "none.txt"], "none.txt", ""),
        ],
    )
    def test_one_line_a_hint_and_nothing_written(
        self, run: Run, tmp_path: Path, flags: list[str], message: str, hint: str
    ) -> None:
        before = sorted(tmp_path.iterdir())
        mistake(run(*flags, env={"OPENAI_API_KEY": None, "HARNESS_DATA": str(tmp_path / "data")}), message, hint)
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([], "is empty"),
            ([QUESTIONS[0], QUESTIONS[0]], "line 2: duplicate question id 'q1'"),
            ([{"id": "a", "qurey": "A?"}], "line 1: unknown field 'qurey'; is 'query' meant?"),
            (
                [{"id": "a", "query": "A?", "answer_ids": ["X:0", "Z:9"]}],
                "1 of 2 answer ids is not in the graph: 'Z:9'",
            ),
        ],
    )
    def test_question_files(self, run: Run, tmp_path: Path, rows: Sequence[Mapping[str, Any]], message: str) -> None:
        mistake(run("--queries", str(jsonl(tmp_path / "mine.jsonl", map(dict, rows)))), message)
        assert not (tmp_path / "run").exists()

    def test_a_run_folder_that_exists(self, run: Run, tmp_path: Path) -> None:
        run("--limit", "1")
        ledger = (tmp_path / "run" / "attempts.jsonl").read_bytes()
        mistake(run("--limit", "1"), "run folder", "--resume")
        assert (tmp_path / "run" / "attempts.jsonl").read_bytes() == ledger

    def test_a_folder_with_something_else_in_it(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "thesis.txt").write_text("x", encoding="utf-8")
        mistake(run(), "is not empty and holds no run", "--out")

    def test_a_folder_below_a_file(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x", encoding="utf-8")
        mistake(run("--out", str(tmp_path / "file" / "run")), "file", "")
        mistake(run("--out", str(tmp_path / "file")), "file", "")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_can_not_be_written(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "locked").mkdir(mode=0o555)
        mistake(run("--out", str(tmp_path / "locked" / "run")), "can't write the run folder", "--out")

    def test_a_damaged_and_a_changed_export(self, run: Run, tmp_path: Path) -> None:
        graph = make_export(tmp_path / "g")
        schema = graph.files / "schema.json"
        text = schema.read_text("utf-8")
        schema.write_text(text.replace("paper", "papre"), encoding="utf-8")
        mistake(
            run("--graph", str(graph.path)),
            "files/schema.json: the sha256 is not that of what was written",
            "harness check",
        )
        schema.write_text(text[:-5], encoding="utf-8")
        mistake(run("--graph", str(graph.path)), "schema.json", "")
        assert not (tmp_path / "run").exists()

    def test_no_sandbox_to_be_had(self, run: Run, tmp_path: Path) -> None:
        result = run("--sandbox", "docker", env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
        mistake(result, "no Docker daemon answers", "--sandbox bwrap")
        assert not (tmp_path / "run").exists()

    def test_a_killed_run_is_not_in_the_way(self, export: Export, tmp_path: Path) -> None:
        """SIGKILL in mid-command leaves a folder that --resume takes on."""
        waits = jsonl(tmp_path / "waits.jsonl", [turn(command="sleep 100"), turn("ANSWER: [0]")])
        command = [*HARNESS, "run", "--graph", str(export.path), "--mode", "files", "--sandbox", "bwrap", *SMALL]
        command += ["--model", f"scripted:{waits}", "--limit", "1", "--out", "run"]
        process = pexpect.spawn(
            command[0], command[1:], cwd=str(tmp_path), env=HARNESS_ENV, encoding="utf-8", timeout=60
        )
        process.expect("small, files, scripted")
        process.kill(signal.SIGKILL)
        process.close(force=True)
        jsonl(waits, [turn("ANSWER: [0]")])
        done = subprocess.run(
            [*command, "--resume"], cwd=tmp_path, env=HARNESS_ENV, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert read_ledger(tmp_path / "run")[-1].stop_reason == "answered"
