"""STaRK-Amazon: products with reviews and questions, brands, categories and colours. Missing values are NaN (null in an
export); products are answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exporter.stark.dataset import Dataset, Expected, Record

_PRODUCT = "product"
_ENTRIES = 25  # reviews, and questions, that a document shows


def document(record: Record) -> str:
    """A product's title, brand, size, description, features, best-voted reviews and questions; else a name."""
    node_type, info = record["node_type"], record["attributes"]
    if node_type != _PRODUCT:
        return f"{node_type} name: {info.get(f'{node_type}_name')}"
    lines = [f"- product: {info.get('title')}"]
    if info.get("brand") is not None:
        lines.append(f"- brand: {info['brand']}")
    lines += _size(info.get("details"))
    description = " ".join(map(str, _list(info.get("description")))).strip(" ")
    if description:
        lines.append(f"- description: {description}")
    lines += _features(_list(info.get("feature")))
    lines += _reviews(_list(info.get("review")))
    lines += _questions(_list(info.get("qa")))
    return "".join(f"{line}\n" for line in lines)


def _size(details: Any) -> list[str]:
    size = details.get("product_dimensions") if isinstance(details, dict) else None
    parts = size.split(" ; ") if isinstance(size, str) else []
    return [f"- dimensions: {parts[0]}", f"- weight: {parts[1]}"] if len(parts) == 2 else []


def _features(features: list[Any]) -> list[str]:
    if not features:
        return []
    shown = [(n, text) for n, text in enumerate(features, 1) if text and "asin" not in str(text).lower()]
    return ["- features: ", *(f"#{number}: {text}" for number, text in shown)]


def _reviews(reviews: list[Any]) -> list[str]:
    if not reviews:
        return []
    lines = ["- reviews: "]
    for number, review in sorted(enumerate(reviews, 1), key=lambda item: -_votes(item[1]))[:_ENTRIES]:
        lines += [f"#{number}:", f"summary: {_shown(review, 'summary')}", f'text: "{_shown(review, "reviewText")}"']
    return lines


def _votes(review: Mapping[str, Any]) -> int:
    """Votes are texts like "1,024"; none is 0."""
    try:
        return int(str(review.get("vote")).replace(",", ""))
    except ValueError:
        return 0


def _questions(questions: list[Any]) -> list[str]:
    if not questions:
        return []
    lines = ["- Q&A: "]
    for number, asked in enumerate(questions[:_ENTRIES], 1):
        lines += [f"#{number}:", f'question: "{_shown(asked, "question")}"', f'answer: "{_shown(asked, "answer")}"']
    return lines


def _shown(entry: Mapping[str, Any], key: str) -> Any:
    """STaRK shows a missing text as the NaN that it is there."""
    value = entry.get(key)
    return "nan" if value is None else value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(node_type: str, info: Mapping[Any, Any]) -> Any:
    return info.get("title" if node_type == _PRODUCT else f"{node_type}_name")


AMAZON = Dataset(
    name="amazon",
    node_types=(_PRODUCT, "brand", "category", "color"),
    relations=("also_buy", "also_view", "has_brand", "has_category", "has_color"),
    candidates=(_PRODUCT,),
    folders=("cache/brand-category-color", ""),
    name_of=_name,
    document=document,
    expected=Expected(
        nodes=1_035_542,
        edges=9_443_802,
        undirected=True,
        questions=9_100,
        splits={"train": 5910, "val": 1548, "test": 1642, "test-0.1": 164, "human": 81},
    ),
    archive_bytes=3_500_000_000,
    archive_sha256=None,
    untyped="",  # products only
)
