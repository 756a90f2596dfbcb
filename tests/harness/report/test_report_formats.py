"""Reports of saved ablations: the figures, the formats, the plot."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from harness.compare import compare
from harness.intervals import interval
from harness.report.data import AGENTS, FIRST, LEFT_OUT, MISS, Report, make_report
from harness.report.formats import csv_table, json_document, latex, markdown
from harness.report.grid import grids
from harness.report.plot import difference_plot
from harness.results import read_results
from harness.systems import load_systems
from tests.support.saved import Ask, Try, make_export, make_run

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "m_1 & <b>|50%</b>\\input{x}\x1b[31m"


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two graphs and three modes: one with a failure and a retry, one with three agents."""
    folder = tmp_path_factory.mktemp("ablation")
    started = 0.0
    exports = {}
    for graph, size in (("a", 12), ("b", 8)):
        exports[graph] = make_export(folder / graph, graph, [Ask(f"{graph}{i}", (i, i + 20)) for i in range(size)])
    for mode, right in (("files", 9), ("tools", 5), ("ark", 6)):
        for graph, size in (("a", 12), ("b", 8)):
            attempts: dict[str, list[Try]] = {}
            for i in range(size):
                ids = (i, 40) if i < right else (40, i + 20)
                count = 3 if mode == "ark" else 1
                attempts[f"{graph}{i}"] = [Try(ids[:: 1 if agent else -1], agent=agent) for agent in range(count)]
            if mode == "tools":
                attempts["a0" if graph == "a" else "b0"] = [Try((), "backbone_error"), Try((), "backbone_error")]
                attempts.pop("b7", None)
            started += 1
            agents = {"agents": {"count": 3 if mode == "ark" else 1, "fuse": "vote", "seed": 0}}
            python = {
                "graph_access": "files" if mode == "files" else "tools",
                "python": "yes" if mode == "files" else "no",
            }
            make_run(
                folder / "runs" / f"{graph}-{mode}", exports[graph], attempts, mode=mode, created=started,
                set_mode={**agents, **python},
            )  # fmt: skip
    return folder / "runs"


@pytest.fixture(scope="module")
def report(parent: Path) -> Report:
    return make_report(load_systems([parent]))


def test_the_figures_are_those_of_the_runs_and_of_compare(parent: Path, report: Report) -> None:
    assert [system.label for system in report.systems] == ["files", "tools", "ark"]
    assert report.scopes == ("a", "b", "overall")
    assert report.readings == [MISS, LEFT_OUT, FIRST, AGENTS]
    for system in report.systems:
        for scope in ("a", "b"):
            own = read_results(system.runs[scope].path).questions.values()
            values = [result.scores.recall20 for result in own if result.state in ("scored", "failed")]
            entry = report.entry(MISS, scope, system)
            assert entry is not None
            assert entry.metrics["recall@20"].mean == pytest.approx(sum(values) / len(values))
            assert entry.metrics["recall@20"].interval == interval(values)
    pairs = compare(load_systems([parent]))
    for system, pair in zip(report.systems[1:], pairs, strict=True):
        for scope, level in (("overall", "overall"), ("a", "graph")):
            for reading, failures in ((MISS, "miss"), (LEFT_OUT, "left_out")):
                entry = report.entry(reading, scope, system)
                assert entry is not None
                assert entry.difference == pair.at(failures, level, scope)  # type: ignore[arg-type]


def test_readings_by_hand(report: Report) -> None:
    files, tools, ark = report.systems
    missed, left_out, first = (report.entry(reading, "a", tools) for reading in (MISS, LEFT_OUT, FIRST))
    assert missed and left_out and first
    # The first agent's list is turned round: the right node (i + 20) comes first from i = 5 on. a0 failed.
    assert (missed.n, missed.metrics["hit@1"].mean) == (12, pytest.approx(7 / 12))
    assert (left_out.n, left_out.metrics["hit@1"].mean) == (11, pytest.approx(7 / 11))
    assert (first.n, first.metrics["recall@20"].mean) == (12, pytest.approx(11 / 24))
    single = report.entry(AGENTS, "a", ark)
    assert single is not None
    # Of each question's agents, two have the right node first if i < 6, and one has (i + 20) first otherwise.
    assert single.metrics["hit@1"].mean == pytest.approx((6 * 2 / 3 + 6 * 1 / 3) / 12)
    assert report.entry(AGENTS, "a", files) is None
    assert report.notes() == [
        "tools: 2 of 20 questions failed for infrastructure reasons",
        "tools: 1 of 20 questions not asked to the end, and in no figure",
        "tools against files: 1 not finished in both",
    ]
    effort = report.effort("overall", ark)
    assert effort.resources["turns"].mean == 9
    assert effort.totals["cost"] == pytest.approx(20 * 3 * 0.01)
    assert effort.difference is not None
    assert effort.difference.resources["turns"].difference == 6


def test_csv_and_json_hold_the_same_rows_unrounded(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(report))))
    document = json.loads(json_document(report))
    assert len(rows) == len(document["rows"])
    for text, row in zip(rows, document["rows"], strict=True):
        assert {key: value for key, value in text.items() if value} == {
            key: str(value) for key, value in row.items() if value is not None
        }
    found = next(
        row
        for row in document["rows"]
        if (row["system"], row["scope"], row["reading"], row["quantity"]) == ("tools", "overall", MISS, "hit@1")
    )
    assert found["n"] == 19
    assert found["compared_with"] == "files"
    assert {"difference_low", "resolvable", "only_first", "p_holm"} <= found.keys()
    assert (found["graph_access"], found["python"]) == ("tools", "no")
    assert document["systems"][0]["runs"].keys() == {"a", "b"}


def test_markdown_has_a_table_for_each_scope_and_as_many_cells_everywhere(report: Report) -> None:
    tables = [part for part in markdown(report).split("\n\n") if part.startswith("|")]
    assert len(tables) == sum(len(grid.groups) for grid in grids(report))
    for table in tables:
        lines = table.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert [line.split("|")[1].strip() for line in tables[0].splitlines()[2:]] == ["files", "tools", "ark"]
    assert "- tools: 1 of 20 questions not asked to the end, and in no figure" in markdown(report)


def test_latex_rows_have_as_many_cells_as_the_table_has_columns(report: Report) -> None:
    text = latex(report)
    for table in text.split(r"\begin{table*}")[1:]:
        spec = re.search(r"\\begin{tabular}{([lr]+)}", table)
        assert spec is not None
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        for row in rows:
            spanned = re.match(r"\\multicolumn{(\d+)}", row)
            cells = int(spanned[1]) if spanned else len(re.findall(r"(?<!\\)&", row)) + 1
            assert cells == len(spec[1])
        assert table.count("{") == table.count("}")
    assert "%" not in re.sub(r"\\%|^%.*$", "", text, flags=re.MULTILINE)


def test_names_cannot_break_a_format(tmp_path: Path) -> None:
    export = make_export(tmp_path / "g", "g", [Ask("q", (1,))])
    make_run(tmp_path / "one", export, {"q": Try((1,))}, model=HOSTILE)
    make_run(tmp_path / "two", export, {"q": Try(())}, model="other")
    report = make_report(load_systems([tmp_path / "one", tmp_path / "two"]))
    assert r"m\_1 & \<b\>\|50%\</b\>\\input{x}\\x1b[31m" in markdown(report)
    assert r"m\_1 \& \textless{}b\textgreater{}|50\%" in latex(report)
    assert r"\textbackslash{}input\{x\}\textbackslash{}x1b[31m" in latex(report)
    assert "$-$100.0 &" in latex(report)
    assert HOSTILE in json.loads(json_document(report))["rows"][0]["model"]
    for text in (markdown(report), latex(report), difference_plot(report)):
        assert "\x1b" not in text
    drawing = ET.fromstring(difference_plot(make_report(load_systems([tmp_path / "two", tmp_path / "one"]))))
    labels = [element.text or "" for element in drawing.iter(f"{SVG}text")]
    assert any("<b>|50%" in label for label in labels)


def test_one_run_has_a_table_without_differences(parent: Path) -> None:
    report = make_report(load_systems([parent / "a-files"]))
    assert report.scopes == ("overall",)
    assert grids(report)[0].groups[0].columns == ("Hit@1", "Recall@20", "MRR")
    assert difference_plot(report) == ""


def test_runs_without_a_question_in_common_stand_side_by_side(parent: Path) -> None:
    report = make_report(load_systems([parent / "a-files", parent / "b-tools"]))
    cells = grids(report)[0].groups[0].rows
    assert report.scopes == ("a", "b", "overall")
    assert [[cell.text for cell in row][:2] for row in cells] == [["12", "25.0"], ["0", "-"]]  # of graph a
    assert "12 asked in the first alone" in " ".join(report.notes())
    assert difference_plot(report) == ""


def test_a_pair_that_shares_one_graph_has_its_differences_there(parent: Path) -> None:
    report = make_report(load_systems([parent / "a-files", parent / "b-files", parent / "b-tools"]))
    entry = report.entry(MISS, "b", report.systems[1])
    assert entry is not None
    assert entry.difference is not None
    assert entry.difference.n == 7
    assert report.entry(MISS, "a", report.systems[1]) is None


def test_the_plot_shows_every_difference_where_it_belongs(report: Report) -> None:
    drawing = ET.fromstring(difference_plot(report))
    points = list(drawing.iter(f"{SVG}circle"))
    assert len(points) == 3 * 2 * 3  # metrics, compared systems, scopes
    texts = [element.text or "" for element in drawing.iter(f"{SVG}text")]
    entry = report.entry(MISS, "overall", report.systems[1])
    assert entry is not None
    assert entry.difference is not None
    value = entry.difference.metrics["hit@1"]
    assert value.difference is not None
    assert any(text.startswith(f"{100 * value.difference:+.1f} [") and "n = 19" in text for text in texts)
    zero = next(line for line in drawing.iter(f"{SVG}line") if line.get("class") == "zero")
    assert (float(points[0].get("cx", "")) < float(zero.get("x1", ""))) == (value.difference < 0)
    low, high = value.interval or (0, 0)
    assert (points[0].get("class") == "unclear") == (low <= 0 <= high)
    box = [float(number) for number in drawing.get("viewBox", "").split()]
    for circle in points:
        assert box[0] <= float(circle.get("cx", "")) <= box[0] + box[2]
        assert box[1] <= float(circle.get("cy", "")) <= box[1] + box[3]
