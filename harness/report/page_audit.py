"""The page's tables and bars of audits: the same figures as `harness audit` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.audit import Audit
from harness.report.bars import bar, legend
from harness.report.html import Child, h, table
from harness.report.page import Section
from harness.text import number

_FIFTHS = "calls_by_fifth"  # drawn, not tabled
_CLASSES = "error_classes"  # drawn and tabled

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
    found = [
        h("li", f"{name}: {title}{': ' * bool(label)}{label}: {number(tally.count)} of {number(tally.of)}",
          [[", ", h("code", f"{place.file}:{place.line}")] for place in tally.places])
        for name, audit in audits
        for title, label, tally in audit.alarms()
    ]  # fmt: skip
    if not found:
        return h("p", "Nothing was found that speaks against trusting these runs.")
    return [h("p", "Look at this before trusting these runs:", class_="loss"), h("ul", found)]


def _checks(names: Sequence[str], sections: Sequence[Table]) -> Child:
    rows: list[list[Child]] = []
    for position, check in enumerate(sections[0]["checks"]):
        if check["name"] == _FIFTHS:
            continue
        by_label = [_by_label(section["checks"][position]) for section in sections]
        labels = list(dict.fromkeys(label for found in by_label for label in found))
        shown = [label for label in labels if _worth(check, [found.get(label) for found in by_label])]
        for label in shown:
            title = f"{check['title']}{': ' * bool(label)}{label.replace('_', ' ')}"
            rows.append([title, check["unit"], *(_rate(found.get(label)) for found in by_label)])
    return table(("", "of", *names), rows, left=2) if rows else None


def _by_label(check: Table) -> dict[str, Table]:
    return {row["label"]: row for row in check["rows"]}


def _worth(check: Table, rows: Sequence[Table | None]) -> bool:
    """Whether any run has something, or it is a 0 that one wants to see."""
    return any(row and (row["count"] or (check["alarm"] and row["of"])) for row in rows)


def _rate(row: Table | None) -> Child:
    if row is None or row["rate"] is None:
        return "-"
    counts = f"{number(row['count'])} of {number(row['of'])}"
    ends = row["interval"]
    interval = f" [{ends[0] * 100:.1f}, {ends[1] * 100:.1f}]" if ends else ""
    return [f"{row['rate'] * 100:.1f} %", h("span", counts + interval, class_="interval")]


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
        [f"fifth {part}", *(bar([_calls(rows, kind, part) for kind in kinds]) for rows in found)]
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
    rows: list[list[Child]] = []
    for position, measure in enumerate(sections[0]["measures"]):
        found = [section["measures"][position] for section in sections]
        if any(each["n"] for each in found):
            rows.append([f"{measure['title']}, {measure['unit']}", *(_spread(each) for each in found)])
    return table(("median [95 % interval]", *names), rows) if rows else None


def _spread(measure: Table) -> Child:
    if not measure["n"]:
        return "-"
    ends = ", ".join(_short(end) for end in measure["interval"])
    return [_short(measure["median"]), h("span", f"[{ends}], n = {measure['n']:,}", class_="interval")]


def _short(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
