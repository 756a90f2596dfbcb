"""The text of a node that searches rank on: STaRK's documents for its graphs, else name and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from exporter.stark.datasets import DATASETS


def document_maker(source: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str]:
    """The function that makes a node's text from its record. `source` is the manifest's entry of that name."""
    dataset = DATASETS.get(str(source.get("dataset"))) if source.get("kind") == "stark" else None
    return dataset.document if dataset else plain_text


def plain_text(record: Mapping[str, Any]) -> str:
    """The name, the source's own id where it is a text, and every text and number of each attribute, a line each."""
    attributes = record["attributes"]
    lines = [text for text in (record["name"], attributes.get("source_id")) if text and isinstance(text, str)]
    for key, value in attributes.items():
        if key != "source_id" and value not in (None, "", [], {}):
            lines.append(f"{key}: {' '.join(_words(value))}")
    return "".join(f"{line}\n" for line in lines)


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    if isinstance(value, dict):
        return [word for key, item in value.items() for word in (key, *_words(item))]
    return [] if value is None else [str(value)]
