"""Records of some nodes of an export."""

from __future__ import annotations

import pytest

from exporter import Export, export_tables
from tests.support.graphs import write_tables


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Three shards."""
    folder = tmp_path_factory.mktemp("records")
    nodes = ({"id": f"i{number}", "type": "t", "name": f"n{number}"} for number in range(20_003))
    return export_tables(*write_tables(folder, nodes, []), folder / "graph")


def test_in_any_order(export: Export) -> None:
    wanted = [0, 1, 9_999, 10_000, 10_000, 20_002, 5, 19_999, 20_000]
    assert [record["name"] for record in export.records(wanted)] == [f"n{number}" for number in wanted]
    assert list(export.records([])) == []


def test_lines_are_those_of_the_files(export: Export) -> None:
    for number, shard in ((3, "0000"), (10_002, "0001"), (20_002, "0002")):
        lines = (export.files / "nodes" / f"{shard}.jsonl").read_bytes().splitlines(keepends=True)
        assert list(export.lines([number])) == [(number, lines[number % 10_000])]


@pytest.mark.parametrize("unknown", [-1, 20_003, 10**20])
def test_unknown_ids(export: Export, unknown: int) -> None:
    for several in (export.lines, export.records):
        with pytest.raises(KeyError):
            list(several([0, unknown]))
    with pytest.raises(KeyError):
        export.node(unknown)
