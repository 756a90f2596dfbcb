"""Commands about this machine: doctor, shell, clean; and what `harness run` shows on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from docker.errors import NotFound

from exporter import Export
from sandbox import SandboxUnavailable
from sandbox.daemon import connect
from tests.support.cli import HARNESS, HARNESS_ENV, SMALL, mistake, run_cli
from tests.support.runs import jsonl, make_export


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def terminal(*arguments: str, folder: Path, **env: str) -> pexpect.spawn[str]:
    command = [*HARNESS, *arguments]
    size = (30, 110)
    return pexpect.spawn(
        command[0], command[1:], cwd=str(folder), env={**HARNESS_ENV, **env}, encoding="utf-8", timeout=60,
        dimensions=size,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.usefixtures("bwrap")
class TestShell:
    def test_a_person_is_where_the_agent_would_be(self, export: Export, tmp_path: Path) -> None:
        shell = terminal("shell", "--graph", str(export.path), "--sandbox", "bwrap", folder=tmp_path)
        shell.expect("the graph small is at /graph, you are in /scratch")
        shell.sendline("pwd; ls /graph; echo $((6 * 7))done")
        shell.expect_exact("/scratch\r\n")
        shell.expect_exact("schema.json")
        shell.expect_exact("42done\r\n")
        shell.sendline("touch /graph/x; id -u; ls /root /home; cat /graph/../queries/*")
        shell.expect("Read-only file system")
        shell.sendline("exit 7")
        shell.expect(pexpect.EOF)
        shell.close()
        assert shell.exitstatus == 7

    def test_what_is_typed_before_the_shell_is_there_runs_in_it(self, export: Export, tmp_path: Path) -> None:
        shell = terminal("shell", "--graph", str(export.path), "--sandbox", "bwrap", folder=tmp_path)
        shell.sendline("echo $((6 * 7))$PWD; exit 7")
        shell.expect_exact("42/scratch")
        shell.expect(pexpect.EOF)
        shell.close()
        assert shell.exitstatus == 7

    @pytest.mark.parametrize(
        ("setting", "typed", "code", "said"),
        [
            ("pids=32", "f() { f | f; }; f", 137, "more processes and threads than sandbox.pids, 32"),
            (
                "memory=1_100",
                "exec python3 -c 'x = [bytearray(1 << 20) for _ in range(1 << 20)]'",
                137,
                "more memory than sandbox.memory, 1,100 MiB",
            ),
            ("cpu_seconds=1", "while :; do :; done", None, "used up sandbox.cpu_seconds"),
            ("pids=64", "kill -KILL $$", 137, "exit code 137 means that it, or what it ran last, was killed"),
        ],
    )
    def test_a_sudden_end_is_explained(
        self, export: Export, tmp_path: Path, setting: str, typed: str, code: int | None, said: str
    ) -> None:
        flags = ("--sandbox", "bwrap", "--set", f"sandbox.{setting}", "--set", "sandbox.scratch=16")
        shell = terminal("shell", "--graph", str(export.path), *flags, folder=tmp_path)
        shell.expect("sandbox:~")
        shell.sendline(typed)
        shell.expect("\r\n[^\r\n]*the shell(?: was ended:|'s exit code)[^\r\n]*\r\n", timeout=120)
        assert said in shell.after
        shell.expect(pexpect.EOF)
        shell.close()
        assert shell.exitstatus == code or code is None
        assert shell.exitstatus

    @pytest.mark.parametrize(("typed", "code"), [("false; exit", 1), ("(exit 130); exit", 130), ("exit", 0)])
    def test_an_end_of_its_own_needs_no_word(self, export: Export, tmp_path: Path, typed: str, code: int) -> None:
        shell = terminal("shell", "--graph", str(export.path), "--sandbox", "bwrap", folder=tmp_path)
        shell.expect("sandbox:~")
        shell.sendline(typed)
        shell.expect(pexpect.EOF)
        assert "the shell" not in shell.before
        shell.close()
        assert shell.exitstatus == code

    def test_a_sandbox_that_is_gone_is_said(self, export: Export, tmp_path: Path) -> None:
        shell = terminal("shell", "--graph", str(export.path), "--sandbox", "bwrap", folder=tmp_path)
        shell.expect("sandbox:~")
        (outer,) = children(shell.pid)
        (supervisor,) = children(outer)
        os.kill(supervisor, signal.SIGKILL)
        shell.expect("\r\nerror: [^\r\n]*sandbox[^\r\n]*\r\n")
        shell.expect(pexpect.EOF)
        shell.close()
        assert shell.exitstatus == 3

    def test_needs_a_terminal(self, export: Export) -> None:
        mistake(run_cli("shell", "--graph", str(export.path)), "harness shell needs a terminal")

    def test_mistakes(self, tmp_path: Path) -> None:
        shell = terminal("shell", "--graph", "biogoo", folder=tmp_path, HARNESS_DATA=str(tmp_path))
        shell.expect("error: unknown graph 'biogoo'")
        shell.expect("hint: did you mean 'biogo'?")
        shell.expect(pexpect.EOF)
        shell.close()
        assert shell.exitstatus == 2


@pytest.mark.usefixtures("bwrap")
class TestDoctor:
    def test_one_screen(self, tmp_path: Path) -> None:
        make_export(tmp_path / "exports", name="mine")
        env = {"OPENAI_API_KEY": "sk-very-secret-1234", "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
        result = run_cli("doctor", "--data-dir", str(tmp_path), env=env)
        assert result.code == 0, result
        lines = result.stdout.splitlines()
        assert len(lines) < 40
        assert all(line.split()[0] in ("ok", "missing", "note", "hint:") for line in lines)
        text = result.stdout
        assert "missing  sandbox docker" in text
        assert text.count("no Docker daemon answers") == 1
        assert "ok       sandbox bwrap" in text
        assert "probes passed" in text
        assert "key OPENAI_API_KEY" in text
        assert "sk-very-secret" not in text + result.stderr
        for name in ("rg", "graph biogo", "graph mine", "config", "data directory", "memory", "open files"):
            assert name in text

    def test_json(self, tmp_path: Path) -> None:
        env = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock", "OPENAI_API_KEY": None}
        report = json.loads(run_cli("doctor", "--json", "--data-dir", str(tmp_path), env=env).stdout)
        assert report["can_run"] is True
        docker, bwrap = report["sandboxes"]
        assert (docker["works"], bwrap["works"]) == (False, True)
        assert docker["hint"]
        assert bwrap["probe"]
        assert all(result["passed"] for result in bwrap["probe"])
        (key,) = [finding for finding in report["findings"] if finding["name"] == "key OPENAI_API_KEY"]
        assert key["state"] == "missing"
        assert key["hint"]
        assert not list(tmp_path.iterdir()), "looking changes nothing"

    def test_a_config_that_is_wrong_is_said(self, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text("[models.mine]\nefort = 'low'\n", encoding="utf-8")
        env = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock", "HARNESS_CONFIG": str(config)}
        text = run_cli("doctor", "--data-dir", str(tmp_path), env=env).stdout
        assert "unknown key 'efort'" in text


class TestClean:
    def test_nothing_to_clean(self, tmp_path: Path) -> None:
        env = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
        assert run_cli("clean", "--dry-run", env=env).stderr == "0 leftovers would be removed\n"
        assert run_cli("clean", env=env).stderr == "0 leftovers removed\n"


@pytest.mark.usefixtures("bwrap")
class TestTerminal:
    def flags(self, export: Export, script: Path) -> list[str]:
        flags = ["run", "--graph", str(export.path), "--mode", "files", "--model", f"scripted:{script}"]
        return [*flags, "--sandbox", "bwrap", "--out", "run", *SMALL]

    def test_a_bar_with_hits_tokens_and_cost(self, export: Export, tmp_path: Path) -> None:
        usage = {"prompt_tokens": 2_000_000, "completion_tokens": 0}
        script = jsonl(tmp_path / "s.jsonl", [{"role": "assistant", "content": "ANSWER: [0]", "usage": usage}])
        prices = ["--set", "model.prices.input=1.0", "--set", "model.prices.output=1.0"]
        process = terminal(*self.flags(export, script), *prices, folder=tmp_path)
        process.expect(r"3/3.*hits 1/3  6,000,000 tokens  \$6\.00")
        process.expect("run folder: run")
        process.expect(pexpect.EOF)
        process.close()
        assert process.exitstatus == 0

    def test_lines_fit_a_narrow_terminal(self, export: Export, tmp_path: Path) -> None:
        script = jsonl(tmp_path / "s.jsonl", [{"role": "assistant", "content": "ANSWER: [0]"}])
        long = jsonl(tmp_path / "q.jsonl", [{"id": "long", "query": "Which papers " + "of many words " * 40 + "?"}])
        process = terminal(*self.flags(export, script), "--queries", str(long), folder=tmp_path)
        process.expect(r"long  Which papers [^\r\n]*…  0 node 0  unscored  1 turn  \d")
        assert len(process.match.group(0)) <= 110
        process.expect(pexpect.EOF)
        process.close()

    def test_a_person_as_the_model_has_the_terminal_to_himself(self, export: Export, tmp_path: Path) -> None:
        flags = self.flags(export, tmp_path)
        flags[flags.index("--model") + 1] = "manual"
        process = terminal(*flags, "--limit", "1", folder=tmp_path)
        process.expect("=== question q1")
        process.expect_exact("turn 1> ")
        process.sendline("ls $GRAPH")
        process.expect("schema.json")
        process.expect_exact("turn 2> ")
        process.sendline("ANSWER: [0]")
        process.expect("q1  Which papers are first.*hit")
        process.expect(pexpect.EOF)
        process.close()
        assert process.exitstatus == 0


@pytest.mark.docker
def test_leftovers_of_a_killed_harness_are_removed(tmp_path: Path) -> None:
    """A container that nobody owns is made by hand with the labels of a process that is gone."""
    try:
        client = connect()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    with contextlib.closing(client):
        images = client.images()
        if not images:
            pytest.skip("the daemon has no image")
        container = client.create_container(images[0]["Id"], command=["true"], labels=marks_of_a_process_that_is_gone())
        name = client.inspect_container(container)["Name"].lstrip("/")
        listed = run_cli("clean", "--dry-run")
        assert name in listed.stdout
        assert "gone" in listed.stdout
        assert run_cli("clean").code == 0
        assert name not in run_cli("clean", "--dry-run").stdout
        with pytest.raises(NotFound):
            client.inspect_container(container)


def marks_of_a_process_that_is_gone() -> dict[str, str]:
    script = "import json; from sandbox.owner import labels; print(json.dumps(labels({'run': 'gone'})))"
    gone = subprocess.run([sys.executable, "-c", script], env=HARNESS_ENV, capture_output=True, check=True)
    marks: dict[str, str] = json.loads(gone.stdout)
    return marks
