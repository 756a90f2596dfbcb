"""Relations whose source stores each edge in both directions, but for rows that were left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Options, check, export_primekg

HEADER = "relation,display_relation," + ",".join(
    f"{side}_{name}" for side in "xy" for name in ("index", "id", "type", "name", "source")
)
HEADER += "\n"


@pytest.mark.parametrize("bad", ["relation,ppi,0", 'relation,"ppi" x,0,0', '"open', None])
@pytest.mark.parametrize("where", [[1], [600, 601], [3, 80, 81, 299, 1_500]])
def test_rows_left_out_of_a_relation_in_both_directions(tmp_path: Path, bad: str | None, where: list[int]) -> None:
    """None: the row itself, with another name of one of its nodes than rows before it have."""

    def end(node: int, name: str = "N") -> str:
        return f"{node},id{node},{'drug' if node % 3 else 'gene'},{name},S"

    def row(kind: str, relation: str, ends: tuple[int, int], name: str = "N") -> str:
        return f"{kind},{relation},{end(ends[0])},{end(ends[1], name)}"

    pairs = [(n % 97, 97 + n % 89) for n in range(1_000)]
    rows = [row(f"kind{n % 2}", "both", ends) for n, pair in enumerate(pairs) for ends in (pair, pair[::-1])]
    for place in where:
        ends = pairs[place // 2] if place % 2 == 0 else pairs[place // 2][::-1]
        rows[place] = bad or row(f"kind{place // 2 % 2}", "both", ends, "other")
    # Nearly as many the one way as the other, but other ones; and too few to be told from such.
    rows += [row("k", "one way", (n % 31, (n + 1) % 31)) for n in range(310)]
    rows += [row("k", "few", ends) for ends in ((1, 2), (2, 1), (4, 5))]
    order = sorted(range(len(rows)), key=lambda n: n * 7919 % len(rows))
    order.insert(0, order.pop(order.index(len(rows) - 1)))
    kg = tmp_path / "kg.csv"
    kg.write_text(HEADER + "".join(rows[n] + "\n" for n in order), encoding="utf-8")
    export = export_primekg(kg, [], tmp_path / "out", Options(on_bad_row="skip"))
    found = {item["name"]: item for item in export.schema["relations"]}
    assert sum(export.manifest["source"]["skipped"].values()) == len(where)
    lost = sum({place ^ 1, place} <= set(where) for place in where) // 2
    both = found["both"]
    assert (both["symmetric"], both["rows"]) == (True, 1_000 - lost)
    assert both["source_rows"] == 2_000 - len(where)
    told = {(a, b, cells) for a, b, cells in export.edges(both["id"])}
    known = {node["attributes"]["source_id"]: number for number, node in enumerate(export.nodes())}
    ends = [(known[a], known[b], f"kind{n % 2}") for n, (a, b) in enumerate(pairs)]
    gone = {place // 2 for place in where if place ^ 1 in where}
    expected = [{(a, b, (kind,)), (b, a, (kind,))} for n, (a, b, kind) in enumerate(ends) if n not in gone]
    assert all(told & either for either in expected)
    assert (found["one way"]["symmetric"], found["one way"]["rows"]) == (False, 310)
    assert (found["few"]["symmetric"], found["few"]["rows"]) == (False, 3)
    odd = len(where) - 2 * lost
    assert [text for text in export.manifest["source"].get("warnings", ())] == (
        [
            f"relation 'both' is stored in both directions but for {odd} of {2_000 - len(where)} rows, since rows"
            " were left out; each edge is written once"
        ]
        if odd
        else []
    )
    assert check(export.path) == []
