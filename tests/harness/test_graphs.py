"""Graphs by name and by path; the embedded sample; damaged, changed and read-only places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.graphs import data_directory, list_graphs, open_graph, verify
from tests.support.runs import make_export


def quiet(text: str) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the sample in it."""
    folder = tmp_path_factory.mktemp("data")
    open_graph("biogo", folder, quiet)
    return folder


def test_the_sample_is_exported_once(tmp_path: Path) -> None:
    said: list[str] = []
    first = open_graph("biogo", tmp_path, said.append)
    assert (first.name, first.export.node_count) == ("biogo", 2522)
    assert first.export.path == tmp_path / "exports" / "biogo"
    assert len(said) == 1
    assert "exporting the embedded graph biogo" in said[0]
    again = open_graph("biogo", tmp_path, said.append)
    assert again.export.digest == first.export.digest
    assert len(said) == 1


def test_a_path_and_a_name_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = make_export(tmp_path / "exports", name="mine")
    assert open_graph(str(export.path), tmp_path / "elsewhere", quiet).name == "mine"
    assert open_graph("mine", tmp_path, quiet).export.path == export.path
    monkeypatch.chdir(tmp_path / "exports")
    assert open_graph("mine", tmp_path / "elsewhere", quiet).export.path == export.path


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("biogoo", "unknown graph 'biogoo'", "did you mean 'biogo'? graphs: biogo, prime, mag, amazon, or a path"),
        ("./none", "no such folder", "harness export"),
        (".", "unknown graph '.'", "or a path to an export"),
    ],
)
def test_no_such_graph(tmp_path: Path, name: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        open_graph(name, tmp_path, quiet)
    assert message in str(caught.value)
    assert hint in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_name_can_not_leave_the_data_directory(tmp_path: Path) -> None:
    make_export(tmp_path, name="outside")
    with pytest.raises(UserError, match="unknown graph"):
        open_graph("..", tmp_path / "data", quiet)


class TestDamage:
    @pytest.mark.parametrize("file", ["files/schema.json", "files/nodes/0000.jsonl", "queries/queries.jsonl"])
    def test_one_byte_changed(self, tmp_path: Path, file: str) -> None:
        export = make_export(tmp_path)
        verify(export)
        path = export.path / file
        data = bytearray(path.read_bytes())
        data[-3] ^= 1
        path.write_bytes(data)
        with pytest.raises(UserError, match=f"was changed: {file}: the sha256 is not") as caught:
            verify(export)
        assert "harness check" in caught.value.hint

    def test_a_file_is_gone(self, tmp_path: Path) -> None:
        export = make_export(tmp_path)
        (export.files / "edges" / "00.tsv").unlink()
        with pytest.raises(UserError, match=r"edges/00\.tsv"):
            open_graph(str(export.path), tmp_path, quiet)

    def test_a_file_more_than_was_written(self, tmp_path: Path) -> None:
        export = make_export(tmp_path)
        (export.files / "answers.txt").write_text("0", encoding="utf-8")
        with pytest.raises(UserError, match=r"files/answers\.txt: not in the manifest"):
            verify(export)


def test_a_read_only_data_directory_serves_what_is_in_it(data: Path) -> None:
    folders = [path for path in data.rglob("*") if path.is_dir()]
    for folder in (*folders, data):
        folder.chmod(0o555)
    try:
        before = sorted(data.rglob("*"))
        verify(open_graph("biogo", data, quiet).export)
        assert sorted(data.rglob("*")) == before
    finally:
        for folder in (*folders, data):
            folder.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_that_can_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(UserError, match="cannot write"):
            open_graph("biogo", tmp_path, quiet)
    finally:
        tmp_path.chmod(0o755)


def test_a_data_directory_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        open_graph("biogo", tmp_path / "file", quiet)
    assert "--data-dir" in caught.value.hint


def test_the_list(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    assert [(each.name, each.state) for each in list_graphs(tmp_path)] == [
        ("biogo", "embedded"), ("prime", "downloadable"), ("mag", "downloadable"), ("amazon", "downloadable"),
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    (biogo, *_) = list_graphs(data)
    assert (biogo.state, biogo.nodes, biogo.edges) == ("exported", 2522, 8461)
    assert sum((biogo.questions or {}).values()) >= 15
    make_export(tmp_path / "exports", name="mine")
    (tmp_path / "exports" / "mine" / "files" / "schema.json").write_text("x", encoding="utf-8")
    assert [(each.name, each.state) for each in list_graphs(tmp_path)][-1] == ("mine", "damaged")


def test_the_data_directory_is_the_platforms_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_directory(None) == tmp_path / "kgshell"
    assert data_directory(Path("x")) == Path("x")
