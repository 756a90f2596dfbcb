"""What an export holds, in the terms of the source that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporter import Export, check

Edge = tuple[str, str, str, dict[str, str | None]]


def write(path: Path, text: str) -> Path:
    """The file with this text."""
    path.write_text(text, encoding="utf-8")
    return path


def nodes(export: Export) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Source id -> type, name, attributes."""
    found = {}
    for record in export.nodes():
        attributes = dict(record["attributes"])
        found[str(attributes.pop("source_id"))] = (record["node_type"], record["name"], attributes)
    return found


def edges(export: Export) -> list[Edge]:
    """Source, relation, target in the source's terms, and attributes; sorted."""
    names = [str(record["attributes"]["source_id"]) for record in export.nodes()]
    found: list[Edge] = []
    for relation in export.schema["relations"]:
        for source, target, values in export.edges(relation["id"]):
            attributes = dict(zip(relation["attributes"], values, strict=True))
            found.append((names[source], relation["name"], names[target], attributes))
    return sorted(found, key=repr)


def sound(export: Export) -> Export:
    """The export, which the check finds nothing wrong with."""
    assert check(export.path) == []
    return export
