"""Files that networkx and tools like it write: what is no GraphML, what is called how, what names are for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import ExportError, check, export_networkx
from exporter.edge_blocks import count_triples

GEXF = """<?xml version='1.0' encoding='utf-8'?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="undirected">
<nodes><node id="0" label="Zero"/><node id="1" label="One"/></nodes><edges><edge source="0" target="1" id="0"/></edges>
</graph></gexf>
"""


def refused(folder: Path, content: str | bytes, name: str = "g.graphml", **more: dict[str, str]) -> ExportError:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ExportError) as caught:
        export_networkx(path, folder / "out", names=more.get("names"))
    assert not (folder / "out").exists()
    return caught.value


class TestWhatIsNoGraphML:
    @pytest.mark.parametrize(
        ("name", "content", "root"),
        [
            ("g.gexf", GEXF, "gexf"),
            ("h.xml", '<html><node id="x"/><edge source="x" target="x"/></html>', "html"),
            ("x.graphml", '<Graph xmlns="http://graphml.graphdrawing.org/xmlns"><node id="x"/></Graph>', "Graph"),
        ],
    )
    def test_another_root_is_named(self, tmp_path: Path, name: str, content: str, root: str) -> None:
        error = refused(tmp_path, content, name)
        assert f"{name}: line " in str(error)
        assert f"its root is <{root}>, not <graphml>" in str(error)
        assert "networkx.write_graphml" in error.hint

    def test_nodes_outside_of_a_graph(self, tmp_path: Path) -> None:
        assert "no <graph> in it" in str(refused(tmp_path, '<graphml><node id="x"/></graphml>'))

    @pytest.mark.parametrize("encoding", ["utf-9", "shift_jis", "rot13", "utf-16", "\\x00", "idna"])
    def test_encodings(self, tmp_path: Path, encoding: str) -> None:
        text = f"<?xml version='1.0' encoding='{encoding}'?><graphml><graph><node id='a'/></graph></graphml>"
        assert any(what in str(refused(tmp_path, text)) for what in ("encoding", "not valid GraphML"))


def attributes_of(*records: dict[str, str]) -> str:
    """GraphML whose nodes n0, n1, ... have these attributes, each with an edge to itself."""
    keys = dict.fromkeys(name for record in records for name in record)
    lines = [f'<key id="{name}" for="node" attr.name="{name}" attr.type="string"/>' for name in keys]
    lines.append('<graph edgedefault="directed">')
    for number, record in enumerate(records):
        data = "".join(f'<data key="{name}">{value}</data>' for name, value in record.items())
        lines.append(f'<node id="n{number}">{data}</node><edge source="n{number}" target="n{number}"/>')
    return "<graphml>" + "\n".join(lines) + "</graph></graphml>"


def types_and_names(folder: Path, text: str, **names: str) -> list[tuple[str, str]]:
    (folder / "g.graphml").write_text(text, encoding="utf-8")
    export = export_networkx(folder / "g.graphml", folder / "out", names=names)
    assert check(export.path) == []
    return [(record["node_type"], record["name"]) for record in export.nodes()]


class TestLabels:
    def test_a_label_is_the_name_where_there_is_no_other(self, tmp_path: Path) -> None:
        text = attributes_of({"label": "Zero"}, {"label": "One", "type": "number"}, {})
        assert types_and_names(tmp_path, text) == [("node", "Zero"), ("number", "One"), ("node", "n2")]

    def test_a_label_beside_a_name_is_the_type(self, tmp_path: Path) -> None:
        text = attributes_of({"label": "Person", "name": "Ann"}, {"label": "Person", "title": "Bob", "kind": "x"})
        assert types_and_names(tmp_path, text) == [("Person", "Ann"), ("x", "Bob")]

    def test_a_label_that_is_named_for_one_of_them(self, tmp_path: Path) -> None:
        text = attributes_of({"label": "Person"}, {"label": "City"})
        assert types_and_names(tmp_path, text, type="label") == [("Person", "Person"), ("City", "City")]

    def test_as_many_types_as_nodes_are_told(self, tmp_path: Path) -> None:
        records = [{"type": f"t{number}"} for number in range(300)]
        (tmp_path / "g.graphml").write_text(attributes_of(*records), encoding="utf-8")
        export = export_networkx(tmp_path / "g.graphml", tmp_path / "many")
        (warning,) = export.manifest["source"]["warnings"]
        assert warning.startswith("300 node types for 300 nodes; --names type=")
        (tmp_path / "g.graphml").write_text(attributes_of(*records, *records, *records), encoding="utf-8")
        assert export_networkx(tmp_path / "g.graphml", tmp_path / "few").manifest["source"]["warnings"] == []


@pytest.mark.parametrize("count", [255, 257, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("kind", [np.int32, np.uint32, None])
def test_pairs_of_any_number_of_types_are_counted(count: int, kind: type[np.integer[Any]] | None) -> None:
    ids = np.arange(count)
    sources, targets = np.array([0, count - 1, count - 1, 1]), np.array([count - 1, count - 1, count - 1, 0])
    counts = count_triples(ids.astype(kind or np.min_scalar_type(count)), sources, targets)
    assert counts == {(0, count - 1): 1, (count - 1, count - 1): 2, (1, 0): 1}


def node_link(**more: object) -> str:
    return json.dumps({"directed": True, "nodes": [{"id": 1, "class": "x"}, {"id": 2, "kind": "y"}], **more})


class TestNames:
    @pytest.mark.parametrize("make", [lambda: attributes_of({"class": "x", "kind": "y"}), node_link])
    @pytest.mark.parametrize(
        ("names", "message", "hint"),
        [
            ({"kind": "class"}, "there is no 'kind' to name an attribute for", "known: type, name, relation"),
            ({"type": "nope"}, "no node has the attribute 'nope' that is named for its type", "nodes: class, kind"),
            ({"name": "Class"}, "no node has the attribute 'Class' that is named for its name", "nodes: class, kind"),
            ({"type": "class", "relation": "x"}, "no edge has the attribute 'x' that is named for its relation", "of"),
        ],
    )
    def test_what_is_nowhere(
        self, tmp_path: Path, make: Callable[..., str], names: dict[str, str], message: str, hint: str
    ) -> None:
        text = make() if make is not node_link else make(links=[{"source": 1, "target": 2, "verb": "v"}])
        name = "g.json" if make is node_link else "g.graphml"
        error = refused(tmp_path, text, name, names=names)
        assert message in str(error)
        assert hint in error.hint

    def test_one_that_some_have(self, tmp_path: Path) -> None:
        text = attributes_of({"class": "x"}, {})
        assert types_and_names(tmp_path, text, type="class") == [("x", "n0"), ("node", "n1")]

    def test_no_edge_lacks_a_relation_where_there_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "g.json").write_text(node_link(edges=[]), encoding="utf-8")
        export = export_networkx(tmp_path / "g.json", tmp_path / "out", names={"relation": "verb"})
        assert export.schema["edges"] == 0


class TestListOfEdges:
    @pytest.mark.parametrize("key", [None, "Links", "relationships"])
    def test_one_that_is_called_otherwise_is_no_graph_without_edges(self, tmp_path: Path, key: str | None) -> None:
        error = refused(tmp_path, node_link(**({key: [{"source": 1, "target": 2}]} if key else {})), "g.json")
        assert "no list of edges: neither 'links' nor 'edges'; found: 'directed', 'nodes'" in str(error)
        assert key is None or str(error).endswith(f"'{key}'")

    @pytest.mark.parametrize("key", ["links", "edges"])
    def test_an_empty_one_is(self, tmp_path: Path, key: str) -> None:
        (tmp_path / "g.json").write_text(node_link(**{key: []}), encoding="utf-8")
        assert export_networkx(tmp_path / "g.json", tmp_path / "out").schema["edges"] == 0
