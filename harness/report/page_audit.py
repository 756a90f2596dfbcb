"""The page's tables and bars of audits: the same figures as `harness audit` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.audit import Audit
from harness.audit.run import worth_showing
from harness.audit.words import alarm_text, ends, figure, interval, place_text, rate, verdict
from harness.report.bars import bar, legend
from harness.report.html import Child, h, table
from harness.report.page import Section

_FIFTHS, _CLASSES = "calls_by_fifth", "error_classes"  # drawn, and in the tables

_COLUMNS = ("count", "out of", "rate", "95 % interval", "for example")
_SPREAD_COLUMNS = ("n", "median", "its 95 % interval", "quartiles", "mean", "largest", "where")

Table = Mapping[str, Any]


def audit_section(audits: Sequence[tuple[str, Audit]]) -> Section:
    """What audits of several runs found, a column for each; `audits` are named."""
    names = [name for name, _ in audits]
    contents = [audit.as_dict() for _, audit in audits]
    body: list[Child] = [_alarms(audits)]
    for key, section in contents[0]["sections"].items():
        sections = [content["sections"][key] for content in contents]
        body += [
            h("h3", section["title"]),
            _checks(names, sections),
            _drawings(names, sections),
            _measures(names, sections),
        ]
    return Section("audit", "Audit", body)


def _alarms(audits: Sequence[tuple[str, Audit]]) -> Child:
    several = len(audits) > 1
    return [_verdict(f"{name}: " if several else "", audit) for name, audit in audits]


def _verdict(prefix: str, audit: Audit) -> Child:
    alarms = audit.alarms()
    found = [
        h(
            "li",
            alarm_text(title, label, tally),
            h("ul", [h("li", _pointer(place.as_dict())) for place in tally.places]),
        )
        for title, label, tally in alarms
    ]
    return [h("p", prefix + verdict(alarms), class_="loss" if found else None), h("ul", found) if found else None]


def _checks(names: Sequence[str], sections: Sequence[Table]) -> Child:
    rows: list[list[Child]] = []
    for position, check in enumerate(sections[0]["checks"]):
        by_label = [_by_label(section["checks"][position]) for section in sections]
        labels = list(dict.fromkeys(label for found in by_label for label in found))
        shown = [label for label in labels if any(worth_showing(check, found.get(label)) for found in by_label)]
        for label in shown:
            title = f"{check['title']}{': ' * bool(label)}{label.replace('_', ' ')}"
            cells = _columns(by_label[0][label]) if len(names) == 1 else [_rate(found.get(label)) for found in by_label]
            rows.append([title, check["unit"], *cells])
    header = ("", "of", *(_COLUMNS if len(names) == 1 else names))
    return table(header, rows, left=2) if rows else None


def _by_label(check: Table) -> dict[str, Table]:
    return {row["label"]: row for row in check["rows"]}


def _columns(row: Table) -> list[Child]:
    """A row of the only run, in _COLUMNS."""
    return [figure(row["count"]), figure(row["of"]), rate(row), interval(row), _example(row["examples"])]


def _rate(row: Table | None) -> Child:
    """A row of one of several runs, in one cell."""
    if row is None or row["rate"] is None:
        return "-"
    counts = f"{figure(row['count'])} of {figure(row['of'])} {interval(row)}".rstrip()
    return [rate(row), h("span", counts, class_="interval"), _example(row["examples"])]


def _example(examples: Sequence[Table]) -> Child:
    return _pointer(examples[0]) if examples else None


def _pointer(place: Table) -> Child:
    return h("span", place_text(place), class_="place")


def _drawings(names: Sequence[str], sections: Sequence[Table]) -> Child:
    drawings: list[Child] = []
    for position, check in enumerate(sections[0]["checks"]):
        found = [_by_label(section["checks"][position]) for section in sections]
        if check["name"] == _FIFTHS:
            drawings.append(_fifths(names, found))
        if check["name"] == _CLASSES:
            labels = [label for label in found[0] if any(rows.get(label, {}).get("count") for rows in found)]
            bars = [[name, bar([rows.get(label, {}).get("count", 0) for label in labels])]
                    for name, rows in zip(names, found, strict=True)]  # fmt: skip
            drawings.append([h("p", f"{check['title'].capitalize()}:"), legend(labels), table(("", ""), bars, left=2)])
    return drawings


def _fifths(names: Sequence[str], found: Sequence[Mapping[str, Table]]) -> Child:
    """Kinds of calls from the first to the last fifth of an attempt, one bar for each fifth."""
    kinds = list(dict.fromkeys(label.partition(" in fifth ")[0] for rows in found for label in rows))
    kinds = [kind for kind in kinds if any(_calls(rows, kind, part) for rows in found for part in range(1, 6))]
    if not kinds:
        return None
    bars: list[list[Child]] = [
        [
            h("span", f"fifth {part}", class_="key"),
            *(bar([_calls(rows, kind, part) for kind in kinds]) for rows in found),
        ]
        for part in range(1, 6)
    ]
    shown = legend([kind.replace("_", " ") for kind in kinds])
    return [
        h("p", "Kinds of calls over the fifths of an attempt:"),
        shown,
        table(("", *names), bars, left=1 + len(names)),
    ]


def _calls(rows: Mapping[str, Table], kind: str, part: int) -> float:
    return float(rows.get(f"{kind} in fifth {part}", {}).get("count", 0))


def _measures(names: Sequence[str], sections: Sequence[Table]) -> Child:
    alone = len(names) == 1
    rows: list[list[Child]] = []
    for position, measure in enumerate(sections[0]["measures"]):
        found = [section["measures"][position] for section in sections]
        if any(each["n"] for each in found):
            cells = _spread_columns(found[0]) if alone else [_spread(each) for each in found]
            rows.append([measure["title"], measure["unit"], *cells])
    header = ("", "unit", *_SPREAD_COLUMNS) if alone else ("median [95 % interval]", "unit", *names)
    return table(header, rows, left=2) if rows else None


def _spread_columns(measure: Table) -> list[Child]:
    """A measure of the only run, in _SPREAD_COLUMNS."""
    largest = measure["examples"][0]
    ranges = [figure(measure["median"]), ends(measure["interval"]), ends(measure["quartiles"])]
    return [figure(measure["n"]), *ranges, figure(measure["mean"]), figure(largest["value"]), _pointer(largest)]


def _spread(measure: Table) -> Child:
    """A measure of one of several runs, in one cell."""
    if not measure["n"]:
        return "-"
    told = f"{ends(measure['interval'])}, n = {figure(measure['n'])}"
    more = f"quartiles {ends(measure['quartiles'])}, mean {figure(measure['mean'])}"
    largest = measure["examples"][0]
    return [
        figure(measure["median"]),
        h("span", told, class_="interval"),
        h("span", more, class_="interval"),
        h("span", f"largest {figure(largest['value'])}: {place_text(largest)}", class_="place"),
    ]
