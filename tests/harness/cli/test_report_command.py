"""`harness report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import mistake, run_cli
from tests.support.saved import Ask, Try, make_export, make_run


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("r")
    export = make_export(folder / "g", "g", [Ask(f"q{i}", (i,)) for i in range(10)])
    make_run(folder / "runs" / "g-files", export, {f"q{i}": Try((i,)) for i in range(10)}, created=1.0)
    tools = {f"q{i}": Try((i,) if i < 4 else (), cost=None) for i in range(10)}
    make_run(folder / "runs" / "g-a-tools", export, tools, mode="tools", created=2.0)
    return folder / "runs"


def test_text(parent: Path) -> None:
    done = run_cli("report", str(parent))
    lines = [line.split() for line in done.stdout.splitlines()]
    assert (done.code, done.stderr) == (0, "")
    files, tools, *_ = (line for line in lines if line[:1] in (["files"], ["tools"]))
    assert files[:6] == ["files", "files", "yes", "100.0", "[72.2,", "100.0]"]
    assert tools[3] == "40.0"
    assert tools[-4:] == ["-60.0", "[-90.0,", "-30.0]", "0.031"]  # six to none: 2 / 2**6
    effort = [line for line in lines if line[:1] == ["tools"]][-1]
    assert effort[3:5] == ["10", "-"]  # ten questions, cost unknown


@pytest.mark.parametrize(
    ("form", "start"), [("md", "**Scores"), ("latex", "% needs"), ("csv", "system,"), ("json", "{")]
)
def test_other_formats_go_to_stdout(parent: Path, form: str, start: str) -> None:
    done = run_cli("report", str(parent), "--format", form)
    assert done.stdout.startswith(start)
    assert done.stdout.endswith("\n")
    if form == "json":
        assert [system["system"] for system in json.loads(done.stdout)["systems"]] == ["files", "tools"]


def test_plot(parent: Path, tmp_path: Path) -> None:
    drawing = tmp_path / "deep" / "p.svg"
    assert run_cli("report", str(parent), "--plot", str(drawing)).code == 0
    assert drawing.read_text().startswith("<svg ")


def test_the_page_goes_into_the_folder_or_where_it_is_told_to(parent: Path, tmp_path: Path) -> None:
    done = run_cli("report", str(parent), "--format", "html")
    assert done.stdout == f"{parent / 'report.html'}\n"
    first = (parent / "report.html").read_bytes()
    assert first.startswith(b"<!doctype html>")
    done = run_cli("report", str(parent), "--format", "html", "--out", str(tmp_path / "x.html"))
    assert (tmp_path / "x.html").read_bytes() == first
    runs = [str(parent / "g-files"), str(parent / "g-a-tools")]
    mistake(run_cli("report", *runs, "--format", "html"), "where is the page to be written?", "--out")
    mistake(run_cli("report", *runs, "--out", "x.html"), "--format text makes none", "--format html")


def test_a_price_list_prices_what_had_no_price(parent: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[m]\ninput = 1000.0\noutput = 0.0\n")
    done = run_cli("report", str(parent), "--prices", str(prices))
    assert done.stdout.rstrip().splitlines()[-1].split()[-1] == "$10.00"


def test_mistakes(parent: Path, tmp_path: Path) -> None:
    one = str(parent / "g-files")
    mistake(run_cli("report"), "needs RUN|PARENT...")
    mistake(run_cli("report", str(tmp_path)), "holds no runs")
    mistake(run_cli("report", str(parent), "--plot", str(tmp_path / "p.png")), "--plot writes SVG, not .png", ".svg")
    mistake(run_cli("report", one, "--plot", str(tmp_path / "p.svg")), "no differences to draw", "two modes")
    assert list(tmp_path.iterdir()) == []
    mistake(run_cli("report", one, "--format", "word"), "--format", "")


@pytest.mark.parametrize("form", ["text", "md", "latex", "csv", "json", "html"])
def test_a_run_that_answered_nothing_yet(tmp_path: Path, form: str) -> None:
    export = make_export(tmp_path / "g", "g", [Ask("q", (1,))])
    run = make_run(tmp_path / "run", export, {"q": Try((1,))})
    (run / "attempts.jsonl").write_bytes(b"")
    done = run_cli("report", str(run), "--format", form)
    assert done.code == 0
    assert "1 of 1 question not asked to the end" in done.stdout + done.stderr or form in ("html", "csv")
    if form == "html":
        assert "No question has been asked to its end." in (run / "report.html").read_text(encoding="utf-8")
