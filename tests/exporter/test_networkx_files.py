"""Files that networkx and tools like it write: what is no GraphML, what is called how, what names are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import ExportError, export_networkx

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
