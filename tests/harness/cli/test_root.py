"""The root command: help, unknown things, the config file, start-up."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.errors import explain, report
from harness.cli.root import COMMANDS
from tests.support.cli import HARNESS, HARNESS_ENV, mistake, run_cli

HEAVY = {"openai", "docker", "numpy", "polars", "rich.console", "exporter", "sandbox", "jsonschema"}


def test_help_names_every_command_and_no_command_is_help() -> None:
    result = run_cli("--help")
    assert result.code == 0
    for name, summary in COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert summary in " ".join(result.stdout.split()), "however it is wrapped"
    assert run_cli().stdout == result.stdout


def test_version() -> None:
    assert run_cli("--version").stdout.startswith("harness, version ")


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from harness.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        f"print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Commands:" in done.stdout


def test_a_real_process_exits_with_two_lines_and_two() -> None:
    command = [sys.executable, "-c", "from harness.cli import main; main()", "scoer"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "error: unknown command 'scoer'"
    assert done.stderr.splitlines()[1].startswith("hint: did you mean 'score'?")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("module", ["harness.cli.start", "harness.cli.root", "harness.cli.modes"])
def test_ctrl_c_before_a_command_has_begun_is_one_word(module: str) -> None:
    """It comes while `module` is imported."""
    script = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from harness.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, "modes"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--versoin"], "harness has no flag --versoin", "did you mean '--version'?"),
        (["modes", "--jsno"], "harness modes has no flag --jsno", "did you mean '--json'?"),
        (["modes", "--verbose"], "harness modes has no flag --verbose", "flags: --json"),
        (["modes", "a", "b"], "got unexpected extra argument (b)", "see harness modes --help"),
        (["modes", "fiels"], "unknown mode 'fiels'", "did you mean 'files'?"),
    ],
)
def test_mistakes(arguments: list[str], message: str, hint: str) -> None:
    mistake(run_cli(*arguments), message, hint)


def test_text_of_the_user_can_not_drive_the_terminal() -> None:
    result = run_cli("x\x1b[2Jy")
    assert "\x1b" not in result.stderr
    assert "\\x1b[2J" in result.stderr


def test_a_closed_pipe_is_no_defect() -> None:
    command = f"{shlex.join(HARNESS)} modes files | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=HARNESS_ENV, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("name = ")
    assert "Traceback" not in done.stderr


def test_a_defect_keeps_its_traceback() -> None:
    """Something nobody raises on purpose is not dressed up as a mistake of the user's."""
    assert explain(ZeroDivisionError("x")) is None
    assert report(ZeroDivisionError("x")) is None


def test_shells_can_complete() -> None:
    env = {**HARNESS_ENV, "_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness sc", "COMP_CWORD": "1"}
    done = subprocess.run([*HARNESS, "sc"], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,score\n"


class TestConfig:
    def write(self, folder: Path, text: str) -> dict[str, str]:
        path = folder / "config.toml"
        path.write_text(text, encoding="utf-8")
        return {"HARNESS_CONFIG": str(path)}

    def test_a_flag_in_the_config(self, tmp_path: Path) -> None:
        env = self.write(tmp_path, "[graphs]\njson = true\n")
        assert run_cli("graphs", "--data-dir", str(tmp_path), env=env).stdout.startswith("[")

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ("defaultmodel = 'x'\n", "unknown key 'defaultmodel'", "did you mean 'default_model'?"),
            ("[runn]\nlimit = 3\n", "unknown key 'runn'", "did you mean 'run'?"),
            ("[graphs]\njsonn = true\n", "unknown key 'graphs.jsonn'", "did you mean 'json'?"),
            ("[graphs]\njson = 3\n", "graphs.json takes true or false, not 3", ""),
            ("graphs = 3\n", "graphs is a table, not 3", ""),
            ("[graphs\n", "config.toml: ", ""),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, message: str, hint: str) -> None:
        mistake(run_cli("graphs", env=self.write(tmp_path, text)), message, hint)

    def test_a_config_that_is_named_has_to_be_there(self, tmp_path: Path) -> None:
        env = {"HARNESS_CONFIG": str(tmp_path / "none.toml")}
        mistake(run_cli("graphs", env=env), "there is no config file", "HARNESS_CONFIG names it")

    def test_a_refused_value_says_where_it_was_set(self, tmp_path: Path) -> None:
        env = self.write(tmp_path, "[run]\nworkers = 'many'\n")
        message = "--workers: 'many' is no whole number from 1 on"
        run = ("run", "--graph", "biogo", "--mode", "files")
        mistake(run_cli(*run, env=env), message, str(tmp_path / "config.toml"))
        mistake(run_cli(*run, env={"HARNESS_RUN_WORKERS": "many"}), message, "HARNESS_RUN_WORKERS")

    def test_a_variable_that_no_flag_has(self) -> None:
        wrong = run_cli("run", "--graph", "biogo", "--mode", "files", env={"HARNESS_RUN_LIMT": "3"})
        mistake(wrong, "no flag has the variable HARNESS_RUN_LIMT", "did you mean 'HARNESS_RUN_LIMIT'?")
        within = run_cli("export", "tables", "n.csv", "e.csv", env={"HARNESS_EXPORT_TABLES_NAMEE": "x"})
        mistake(within, "HARNESS_EXPORT_TABLES_NAMEE", "did you mean 'HARNESS_EXPORT_TABLES_NAME'?")

    def test_variables_of_other_programs_are_their_own(self) -> None:
        others = {"HARNESS_SANDBOX_BASE": "image", "HARNESS_BUILD_ID": "7", "HARNESS_RUN_LIMIT": "3"}
        assert run_cli("modes", env=others).code == 0

    def test_tables_of_model_profiles_are_no_flags(self, tmp_path: Path) -> None:
        env = self.write(tmp_path, "[models.mine]\nendpoint = 'http://localhost:1/v1'\n")
        assert run_cli("modes", env=env).code == 0
