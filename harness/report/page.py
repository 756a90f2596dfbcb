"""One HTML page on runs: scores, differences, effort, questions, configuration. It needs nothing but itself.

There is no script in it, and its content policy allows none; `harness.report.html` escapes whatever comes from runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from harness import __version__
from harness.report.data import Report
from harness.report.html import Child, Safe, h, join
from harness.report.page_differences import differences_section
from harness.report.page_effort import effort_section
from harness.report.page_questions import questions_section
from harness.report.page_scores import scores_section
from harness.report.page_setup import setup_section
from harness.report.plot import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    anchor: str
    title: str
    body: Child


def html_page(report: Report, more: Sequence[Section] = ()) -> str:
    """The whole document. `more` stands between the questions and the configuration."""
    sections = [
        Section("scores", "Scores", scores_section(report)),
        *([Section("differences", _against(report), differences_section(report))] if report.pairs else []),
        Section("effort", "Cost and time", effort_section(report)),
        Section("questions", "Questions", questions_section(report)),
        *more,
        Section("setup", "Configuration", setup_section(report)),
    ]
    title = f"{', '.join(s.label for s in report.systems)} on {', '.join(_graphs(report))}"
    style = resources.files("harness.report").joinpath("page.css").read_text("utf-8") + STYLE
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        h("title", title),
        h("style", Safe(style)),
    )
    links = [h("a", section.title, href=f"#{section.anchor}") for section in sections]
    body = h(
        "body",
        h("header", h("h1", title), h("p", f"Made by kgshell {__version__}.", class_="dim"), h("nav", links)),
        h("main", [h("section", h("h2", s.title, id=s.anchor), s.body) for s in sections]),
    )
    return join([Safe("<!doctype html>\n"), h("html", head, body, lang="en"), "\n"])


def _graphs(report: Report) -> list[str]:
    return list(dict.fromkeys(graph for system in report.systems for graph in system.runs))


def _against(report: Report) -> str:
    return f"Differences to {report.systems[0].label}"
