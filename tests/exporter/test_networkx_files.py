"""Files that networkx and tools like it write: what is no GraphML, what is called how, what names are for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import ExportError, Options, check, export_networkx
from exporter.edge_blocks import count_triples
from tests.support.exported import edges, nodes, sound, write

GRAPHML = """\
<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="type" attr.type="string"><default>thing</default></key>
  <key id="d1" for="node" attr.name="size" attr.type="long"/>
  <key id="d2" for="edge" attr.name="relation" attr.type="string"/>
  <key id="d3" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="{default}">
    <node id="b"><data key="d0">word</data><data key="d1">7</data></node>
    <node id="a &lt; &#252;"/>
    <edge source="b" target="a &lt; &#252;"><data key="d2">likes</data><data key="d3">0.5</data></edge>
    <edge id="e2" source="b" target="b"/>
  </graph>
</graphml>
"""
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


class TestNetworkx:
    def test_graphml(self, tmp_path: Path) -> None:
        export = sound(
            export_networkx(write(tmp_path / "g.graphml", GRAPHML.format(default="directed")), tmp_path / "out")
        )
        assert nodes(export) == {"b": ("word", "b", {"type": "word", "size": 7}),
                                 "a < ü": ("thing", "a < ü", {"type": "thing"})}  # fmt: skip
        assert edges(export) == [
            ("b", "edge", "b", {"id": "e2"}),
            ("b", "likes", "a < ü", {"relation": "likes", "weight": "0.5"}),
        ]
        assert not any(item["symmetric"] for item in export.schema["relations"])

    def test_undirected_edges_have_no_direction(self, tmp_path: Path) -> None:
        path = write(tmp_path / "g.graphml", GRAPHML.format(default="undirected"))
        export = sound(export_networkx(path, tmp_path / "out"))
        likes = next(item for item in export.schema["relations"] if item["name"] == "likes")
        assert (likes["symmetric"], likes["source_rows"], likes["rows"]) == (True, 1, 1)

    def test_many_nodes_are_forgotten_as_they_are_read(self, tmp_path: Path) -> None:
        many = "".join(f"<node id='{n}'/><edge source='{n}' target='{n}'/>" for n in range(20_000))
        path = write(tmp_path / "g.graphml", f"<graphml><graph edgedefault='directed'>{many}</graph></graphml>")
        assert export_networkx(path, tmp_path / "out").schema["edges"] == 20_000

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("<graphml><graph><node id='a'/>", "not valid GraphML"),
            ("not xml", "not valid GraphML"),
            ("<graphml><graph edgedefault='directed'/></graphml>", "no nodes"),
            ("<graphml><graph><node id='a'/><hyperedge/></graph></graphml>", "a hyperedge"),
            ("<graphml><key id='k' attr.name='n' attr.type='int'/><graph><node id='a'><data key='k'>x</data></node>"
             "</graph></graphml>", r"g\.graphml: line 1: attribute 'n': 'x' is not of type int"),
            ('<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">' + "".join(
                f'<!ENTITY {chr(99 + n)} "{f"&{chr(98 + n)};" * 10}">' for n in range(12))
             + "]><graphml><graph><node id='a'><data key='k'>&n;</data></node></graph></graphml>", "not valid GraphML"),
            ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml><graph><node id="a"><data key="k">&e;'
             "</data></node></graph></graphml>", "not valid GraphML"),
        ],
        ids=range(7),
    )  # fmt: skip
    def test_bad_and_hostile_xml(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(ExportError, match=message):
            export_networkx(write(tmp_path / "g.graphml", text), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_bad_elements_have_their_line_and_can_be_left_out(self, tmp_path: Path) -> None:
        text = """<graphml><key id="k" for="all" attr.name="size" attr.type="int"/>
<graph edgedefault="directed">
<node id="a"/>
<node id="b"><data key="k">many</data></node>
<edge source="a" target="a"><data key="k">1</data></edge>
<edge source="a" target="a"><data key="k">one</data></edge>
<edge source="a"
 target="b"/>
</graph></graphml>
"""
        path = write(tmp_path / "g.graphml", text)
        with pytest.raises(ExportError, match=r"g\.graphml: line 4: attribute 'size': 'many' is not of type int"):
            export_networkx(path, tmp_path / "out")
        typed = text.replace("many", "2").replace("one", "2").replace('target="b"/', 'target="c"/')
        with pytest.raises(ExportError, match=r"h\.graphml: line 8: unknown target node 'c'"):
            export_networkx(write(tmp_path / "h.graphml", typed), tmp_path / "out")
        export = sound(export_networkx(path, tmp_path / "out", Options(on_bad_row="skip")))
        assert nodes(export) == {"a": ("node", "a", {})}
        assert edges(export) == [("a", "edge", "a", {"size": "1"})]
        assert export.manifest["source"]["skipped"] == {"g.graphml": 3}

    @pytest.mark.parametrize("links", ["links", "edges"])
    def test_node_link(self, tmp_path: Path, links: str) -> None:
        graph = {
            "directed": True, "multigraph": True, "graph": {},
            "nodes": [{"id": 1, "class": "x", "label": "One"}, {"id": "two", "class": ["y", "z"], "v": float("nan")}],
            links: [
                {"source": 1, "target": "two", "key": 0, "verb": "sees"},
                {"source": "two", "target": 1, "verb": "hears"},
            ],
        }  # fmt: skip
        path = write(tmp_path / "g.json", json.dumps(graph))
        export = sound(export_networkx(path, tmp_path / "out", names={"type": "class", "relation": "verb"}))
        assert nodes(export) == {"1": ("x", "One", {"class": "x", "label": "One"}),
                                 "two": ("y", "two", {"class": ["y", "z"], "v": None})}  # fmt: skip
        assert export.node(0)["attributes"]["source_id"] == 1
        assert edges(export) == [("1", "sees", "two", {"key": "0", "verb": "sees"}),
                                 ("two", "hears", "1", {"verb": "hears"})]  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "not valid JSON"),
            ("[]", "no list of nodes"),
            ('{"nodes": [{"name": "x"}], "links": []}', r"line 1: this node .* has no 'id'"),
            ('{"nodes": [{"id": 1}], "links": [{"source": 1}]}', r"line 1: this edge .* has no ends"),
            ('{"nodes": [{"id": 1}], "links": [], "edges": [{"source": 1}]}', r"line 1: this edge .* has no ends"),
            ('{"nodes": [{"id": 1}], "links": [{}], "edges": [{}]}', "two lists of edges: 'links' and 'edges'"),
            ('{"nodes": [{"id": 1}], "links": 1}', "'links' is not a list"),
        ],
    )
    def test_bad_node_link(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(ExportError, match=message):
            export_networkx(write(tmp_path / "g.json", text), tmp_path / "out")


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


class TestKeysOfParallelEdges:
    """networkx writes a multigraph's keys as `key` into JSON, and as ids of edges, which GraphML wants unique."""

    @pytest.mark.parametrize(
        ("keys", "relations"),
        [
            (["knows", "likes", "knows"], ["knows", "likes", "knows"]),
            (["0", "1", "0"], ["edge"] * 3),
            (["knows", "0", "knows"], ["knows", "edge", "knows"]),
        ],
    )
    def test_json_and_graphml_say_the_same(self, tmp_path: Path, keys: list[str], relations: list[str]) -> None:
        ends = [("a", "b"), ("a", "b"), ("b", "b")]
        rows = list(zip(ends, keys, strict=True))
        links = [{"source": source, "target": target, "key": key} for (source, target), key in rows]
        graph = {"directed": True, "multigraph": True, "nodes": [{"id": "a"}, {"id": "b"}], "links": links}
        write(tmp_path / "g.json", json.dumps(graph))
        lines = [f'<edge source="{link["source"]}" target="{link["target"]}" id="{link["key"]}"/>' for link in links]
        text = '<graph edgedefault="directed"><node id="a"/><node id="b"/>' + "\n".join(lines) + "</graph>"
        write(tmp_path / "g.graphml", f"<graphml>{text}</graphml>")
        found = [
            edges(sound(export_networkx(tmp_path / name, tmp_path / f"{name}-out"))) for name in ("g.json", "g.graphml")
        ]
        expected = [
            (source, relation, target, {"key": key})
            for (source, target), relation, key in zip(ends, relations, keys, strict=True)
        ]
        assert found[0] == found[1] == sorted(expected, key=repr)

    def test_numbers_as_keys_in_json(self, tmp_path: Path) -> None:
        links = [{"source": 1, "target": 2, "key": key} for key in (0, 1)]
        write(tmp_path / "g.json", node_link(multigraph=True, links=links))
        found = edges(export_networkx(tmp_path / "g.json", tmp_path / "out"))
        assert found == [("1", "edge", "2", {"key": "0"}), ("1", "edge", "2", {"key": "1"})]

    def test_ids_that_differ_are_ids(self, tmp_path: Path) -> None:
        lines = "".join(f'<edge source="a" target="a" id="e{number}"/>' for number in range(9))
        write(tmp_path / "g.graphml", f'<graphml><graph edgedefault="directed"><node id="a"/>{lines}</graph></graphml>')
        found = edges(export_networkx(tmp_path / "g.graphml", tmp_path / "out"))
        assert found == [("a", "edge", "a", {"id": f"e{number}"}) for number in range(9)]
