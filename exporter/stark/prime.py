"""STaRK-Prime: PrimeKG with texts. Every edge is stored in both directions; every node type may be an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exporter.stark.dataset import Dataset, Expected, Record

_GENE = "gene/protein"
_GENE_KEYS = {
    "name": "gene name",
    "type_of_gene": "gene types",
    "alias": "other gene names",
    "other_names": "extended other gene names",
    "genomic_pos": "genomic position",
    "generif": "PubMed text",
    "interpro": "protein family and classification information",
    "summary": "protein summary text",
}
_GENERIF_WORDS = 50_000


def document(record: Record) -> str:
    """Name, type, source, and the details line by line."""
    info = record["attributes"]
    lines = [f"- name: {info.get('name')}", f"- type: {info.get('type')}", f"- source: {info.get('source')}"]
    details = info.get("details")
    if isinstance(details, dict):
        is_gene = info.get("type") == _GENE
        told = [_detail(key, _cleaned(value), is_gene) for key, value in details.items() if _is_told(key, value)]
        lines += ["- details:", *told] if told else []
    return "\n".join(lines) + "\n"


def _is_told(key: str, value: Any) -> bool:
    return not (_is_missing(value) or key.startswith("_") or "_id" in key)


def _is_missing(value: Any) -> bool:
    """NaN is null in an export, and the text "nan" in some of the data."""
    return value is None or str(value) in ("", "nan")


def _cleaned(value: Any) -> Any:
    """Dicts without their missing values, at any depth (in lists they stay)."""
    if not isinstance(value, dict):
        return value
    return {key: _cleaned(item) for key, item in value.items() if not _is_missing(item)}


def _detail(key: str, value: Any, is_gene: bool) -> str:
    if not is_gene or key not in _GENE_KEYS:
        return f"  - {key}: {value}"
    if key == "interpro":
        value = [item["desc"] for item in _dicts(value) if "desc" in item]
    elif key == "generif":
        words = "; ".join(str(item["text"]) for item in _dicts(value) if "text" in item).split(" ")
        value = " ".join(words[:_GENERIF_WORDS])
    elif key == "genomic_pos" and isinstance(value, list) and value:
        value = value[0]
    return f"  - {key} ({_GENE_KEYS[key]}): {value}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _name(_: str, info: Mapping[Any, Any]) -> Any:
    return info.get("name")


PRIME = Dataset(
    name="prime",
    node_types=(
        "disease", _GENE, "molecular_function", "drug", "pathway", "anatomy", "effect/phenotype",
        "biological_process", "cellular_component", "exposure",
    ),
    relations=(
        "ppi", "carrier", "enzyme", "target", "transporter", "contraindication", "indication", "off-label use",
        "synergistic interaction", "associated with", "parent-child", "phenotype absent", "phenotype present",
        "side effect", "interacts with", "linked to", "expression present", "expression absent",
    ),
    candidates=(
        "disease", _GENE, "molecular_function", "drug", "pathway", "anatomy", "effect/phenotype",
        "biological_process", "cellular_component", "exposure",
    ),
    folders=("",),
    name_of=_name,
    document=document,
    expected=Expected(
        nodes=129_375,
        edges=8_100_498,
        undirected=False,
        questions=11_204,
        splits={"train": 6162, "val": 2241, "test": 2801, "test-0.1": 280, "human": 98},
    ),
    archive_bytes=60_000_000,
    archive_sha256="f6f265f60b761784fb7c2f052359f9cd3bf9ea20c4a307865f62ce173b294dfc",
)  # fmt: skip
