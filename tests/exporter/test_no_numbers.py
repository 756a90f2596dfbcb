"""NaN and infinite numbers are null, in nodes and in edges, wherever they come from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from exporter import check, export_networkx, export_tables
from exporter.plain import as_cell

VALUES = [math.nan, math.inf, -math.inf, 1e308]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((value, None) for value in VALUES[:3]),
        (1e308, "1e+308"),
        ([math.nan, 1.5, "é"], '[null,1.5,"é"]'),
        ({"a": [math.inf]}, '{"a":[null]}'),
        ("NaN", "NaN"),
    ],
)
def test_cells_of_edges(value: object, cell: str | None) -> None:
    assert as_cell(value) == cell


def test_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"id": range(4), "type": ["t"] * 4, "name": ["n"] * 4, "x": VALUES}).write_parquet(
        tmp_path / "n.parquet"
    )
    pl.DataFrame(
        {"source": range(4), "relation": ["r"] * 4, "target": [0] * 4, "x": VALUES, "y": [[value] for value in VALUES]}
    ).write_parquet(tmp_path / "e.parquet")
    export = export_tables(tmp_path / "n.parquet", tmp_path / "e.parquet", tmp_path / "out")
    assert check(export.path) == []
    assert [record["attributes"]["x"] for record in export.nodes()] == [None, None, None, 1e308]
    assert [cells for *_, cells in export.edges(0)] == [(None, "[null]")] * 3 + [("1e+308", "[1e+308]")]


@pytest.mark.parametrize("name", ["g.json", "g.graphml"])
def test_graphs_that_networkx_writes(tmp_path: Path, name: str) -> None:
    if name == "g.json":
        nodes = [{"id": str(number), "x": value} for number, value in enumerate(VALUES)]
        links = [{"source": str(number), "target": "0", "x": value} for number, value in enumerate(VALUES)]
        text = json.dumps({"directed": True, "nodes": nodes, "links": links})
    else:
        key = '<key id="x" for="all" attr.name="x" attr.type="double"/>'
        text = f'<graphml>{key}<graph edgedefault="directed">' + "".join(
            f'<node id="{number}"><data key="x">{value}</data></node>'
            f'<edge source="{number}" target="0"><data key="x">{value}</data></edge>'
            for number, value in enumerate(VALUES)
        )
        text += "</graph></graphml>"
    (tmp_path / name).write_text(text, encoding="utf-8")
    export = export_networkx(tmp_path / name, tmp_path / "out")
    assert check(export.path) == []
    assert [record["attributes"]["x"] for record in export.nodes()] == [None, None, None, 1e308]
    assert [cells for *_, cells in export.edges(0)] == [(None,)] * 3 + [("1e+308",)]
