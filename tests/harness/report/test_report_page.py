"""The HTML page: whole in itself, right in its figures, and safe whatever the runs hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.audit import audit_run
from harness.audit.words import alarm_text
from harness.report.data import MISS, make_report
from harness.report.html import Safe, h, join, table
from harness.report.page import Section, html_page
from harness.report.page_audit import audit_section
from harness.report.units import percent
from harness.systems import load_systems
from tests.support.saved import Ask, Try, make_export, make_run

ATTACK = "</td></style><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='x' \x1b]0;t\x07\u202e & {{7*7}}"
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "nav", "section", "h1", "h2", "h3", "p", "a"),
    *("div", "span", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "code"),
    *("pre", "i", "svg", "text", "line", "circle"),
}


class Reader(HTMLParser):
    """What a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "line", "circle"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two modes over two graphs; every text that a run can hold is an attack."""
    folder = tmp_path_factory.mktemp("page")
    for graph in ("a", "b"):
        asks = [Ask(f"q{i}{ATTACK if not i else ''}", (i, i + 1), query=f"Q{i}? {ATTACK}") for i in range(6)]
        export = make_export(folder / graph, graph, asks)
        for mode in ("files", "tools"):
            attempts = {
                ask.id: Try((i,) if (i + len(mode)) % 3 else (), extra={"error": ATTACK}) for i, ask in enumerate(asks)
            }
            attempts[asks[5].id] = Try((), "backbone_error") if mode == "tools" else Try((5,))
            make_run(
                folder / "runs" / f"{graph}-{mode}", export, attempts, mode=mode,
                model=f"m {ATTACK}", command=["harness", "run", ATTACK], versions={"python": ATTACK},
                set_mode={"graph_access": ATTACK, "prompt": f"Do it. {ATTACK} $access", "summary": ATTACK},
                probe=[{"name": ATTACK, "passed": False, "detail": ATTACK}],
            )  # fmt: skip
    return folder / "runs", html_page(make_report(load_systems([folder / "runs"])))


def test_nothing_in_a_run_becomes_markup(page: tuple[Path, str]) -> None:
    reader = Reader(page[1])
    assert set(reader.tags) <= ALLOWED
    names = {name for name, _ in reader.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert reader.tags.count("style") == 1
    shown = "".join(reader.texts)
    assert shown.count("<script>alert(1)</script>") > 20
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page[1])


def test_it_is_one_file_that_asks_for_nothing(page: tuple[Path, str]) -> None:
    reader = Reader(page[1])
    for name, value in reader.attributes:
        assert name not in ("src", "srcset", "action", "data", "background")
        if name == "href":
            assert value is not None
            assert value.startswith("#")
            assert ("id", value[1:]) in reader.attributes
    style = re.search("<style>(.*?)</style>", page[1], re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    policy = next(value for name, value in reader.attributes if name == "content" and value and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_it_shows_the_figures_of_the_report(page: tuple[Path, str]) -> None:
    report = make_report(load_systems([page[0]]))
    reader = Reader(page[1])
    for system in report.systems:
        entry = report.entry(MISS, "overall", system)
        assert entry is not None
        value = entry.metrics["recall@20"]
        assert percent(value.mean) in reader.texts
        assert value.interval is not None
        assert f"[{percent(value.interval[0])}, {percent(value.interval[1])}]" in reader.texts
    hits = report.pairs[0].figures[0].hits
    assert any(f"Hit@1: {hits.only_first} only files, {hits.only_second} only tools" in text for text in reader.texts)
    titles = ["Scores", "Differences to files", "Cost and time", "Questions", "Configuration"]
    assert [title for title in titles if title in reader.texts] == titles
    assert any("failed: " in text for text in reader.texts)  # the isolation probe
    assert reader.tags.count("svg") == 3


def test_worst_and_best_questions_name_what_was_right(page: tuple[Path, str]) -> None:
    worst, best = (part.split("<h2")[0] for part in page[1].split("<h3>Worst</h3>")[1].split("<h3>Best</h3>"))
    assert 'rowspan="2"' in worst
    first = Reader(f"<table>{worst.split('<tbody>')[1].split('</tr>')[0]}</tr></table>").texts
    assert any(re.match(r"right: \d+ \(node \d+\), \d+ \(node \d+\)$", text) for text in first)
    assert worst.count("<tr>") == best.count("<tr>") == 1 + 12 * 2  # the header, then twelve questions in two modes


def test_one_run_has_a_page_without_differences(page: tuple[Path, str]) -> None:
    text = html_page(make_report(load_systems([page[0] / "a-files"])))
    assert "Differences" not in text
    assert "<svg" not in text
    assert "Cost and time" in text


def test_more_sections_have_their_place_and_their_link(page: tuple[Path, str]) -> None:
    report = make_report(load_systems([page[0] / "a-files"]))
    text = html_page(report, [Section("audit", "Audit", [h("p", "<fine>")])])
    assert text.index('id="questions"') < text.index('id="audit"') < text.index('id="setup"')
    assert '<a href="#audit">Audit</a>' in text
    assert "<p>&lt;fine&gt;</p>" in text


def test_the_audit_has_the_figures_of_the_audit(page: tuple[Path, str]) -> None:
    report = make_report(load_systems([page[0]]))
    audits = [
        (f"{s.label} {graph} {ATTACK}", audit_run(run.path)) for s in report.systems for graph, run in s.runs.items()
    ]
    section = audit_section(audits)
    reader = Reader(html_page(report, [section]))
    assert set(reader.tags) <= ALLOWED
    assert any(text.endswith("Worth a look before the run is trusted:") for text in reader.texts)  # the probe failed
    shown = "".join(reader.texts)
    for _, audit in audits:
        for title, label, tally in audit.alarms():
            assert alarm_text(title, label, tally) in shown
    missing = sum(row.count for row in audits[2][1].rows("infrastructure").values())
    assert missing == 1
    assert any(text.startswith("1 of 6 [") for text in reader.texts)


def test_a_run_of_which_nothing_is_done_yet(tmp_path: Path) -> None:
    export = make_export(tmp_path / "graph", "g", [Ask("q1", (1,))])
    run = make_run(tmp_path / "run", export, {})
    assert "No question has been asked to its end." in html_page(make_report(load_systems([run])))


def test_only_what_was_made_here_is_markup() -> None:
    assert h("p", "<b>", Safe("<b>"), ["&", None, ("'",)], class_='"', hidden=True, title=None, id="a\x00") == (
        '<p class="&quot;" hidden id="a\\x00">&lt;b&gt;<b>&amp;&#x27;</p>'
    )
    assert h("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert join(["<", h("i")], ", ") == "&lt;, <i></i>"
    cells = table(["a", "b"], [["<", "1"]])
    assert '<td>&lt;</td><td class="figure">1</td>' in cells
