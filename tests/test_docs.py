"""The documents speak of things that exist: commands and options in their console blocks, files they link to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.root import root

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def console_lines(text: str) -> Iterator[str]:
    """What a person types in the console blocks of a page, continued lines joined."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        joined = block.replace("\\\n", " ")
        yield from (line[2:] for line in joined.splitlines() if line.startswith("$ "))


def harness_calls(text: str) -> Iterator[list[str]]:
    """The arguments of each call of the command in these lines, as in `a && .venv/bin/harness run --limit 3 | less`."""
    for line in console_lines(text):
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word in {"&&", "||", "|", ";", ">", ">>"}:
                if words and words[0].rpartition("/")[2] in {"harness", "kgshell"}:
                    yield words[1:]
                words = []
            elif not words and re.fullmatch(r"[A-Z_]+=.*", word):
                continue  # a variable before the command
            else:
                words.append(word)


def unknown(arguments: list[str]) -> list[str]:
    """Commands and options among the arguments that don't exist."""
    command: click.Command = root
    context = click.Context(root, help_option_names=["-h", "--help"])  # as the command itself has it
    wrong = []
    for word in arguments:
        known = {option for parameter in command.get_params(context) for option in parameter.opts}
        known |= {option for parameter in command.get_params(context) for option in parameter.secondary_opts}
        if word.startswith("-"):
            if word.partition("=")[0] not in known:
                wrong.append(word)
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return [*wrong, word]
            command = found
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_in_console_blocks_exist(page: Path) -> None:
    calls = list(harness_calls(page.read_text("utf-8")))
    assert [(call, unknown(call)) for call in calls if unknown(call)] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_layout_in_the_readme_is_that_of_the_repository() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Layout of the repository")[2].partition("\n## ")[0]
    folders: list[tuple[int, Path]] = []  # (indent, folder) from the outermost to the one that a line is in
    found = []
    for indent, name in re.findall(r"^( {4,})(\S+/)  ", section, re.MULTILINE):
        folders = [(outer, folder) for outer, folder in folders if outer < len(indent)]
        path = (folders[-1][1] if folders else ROOT) / name
        folders.append((len(indent), path))
        found.append(path)
    assert {path.name for path in found} >= {"harness", "exporter", "sandbox", "prompts", "tests", "bench", "docs"}
    assert [path for path in found if not path.is_dir()] == []


def test_the_checks_see_what_they_look_for() -> None:
    text = (
        "```console\n$ python3 -m venv .venv && .venv/bin/harness run --graph biogo \\\n    --bogus 3 | less\n3 hits\n"
        "$ A=1 harness frobnicate\n$ harness score RUN --json  # --not-an-option\n```\n"
    )
    calls = list(harness_calls(text))
    assert calls == [["run", "--graph", "biogo", "--bogus", "3"], ["frobnicate"], ["score", "RUN", "--json"]]
    assert [unknown(call) for call in calls] == [["--bogus"], ["frobnicate"], []]
