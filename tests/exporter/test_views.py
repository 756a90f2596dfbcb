"""Views of an export: what an agent is shown where it isn't everything."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from exporter import Export
from exporter.shown import shown_files
from exporter.view import WHOLE, View


def test_the_whole_is_the_exports_own_files(biogo: Export, tmp_path: Path) -> None:
    shown = shown_files(biogo, WHOLE, tmp_path)
    assert set(shown) == {"DATA_FORMAT.txt", "schema.json", "nodes", "edges"}
    assert all(path.parent == biogo.files for path in shown.values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["shell", "plain"])
def test_no_word_of_python_where_it_is_not_meant(biogo: Export, tmp_path: Path, words: str) -> None:
    shown = shown_files(biogo, View(words=words), tmp_path)  # type: ignore[arg-type]
    text = shown["DATA_FORMAT.txt"].read_text()
    assert not re.search(r"python|csv|json module", text, re.IGNORECASE)
    last = text.splitlines()[-1]
    assert (last == "Use shell tools and rg to search and read them.") is (words == "shell")
    whole = (biogo.files / "DATA_FORMAT.txt").read_text()
    assert "Python" in whole, "the test looks for something that is there otherwise"
    assert set(text.split()) - set(whole.split()) <= {
        "tabs.",
        *["Use", "shell", "tools", "and", "rg", "to", "search", "and", "read", "them."],
    }


def test_without_edges_there_is_no_word_of_them(biogo: Export, tmp_path: Path) -> None:
    shown = shown_files(biogo, View(edges=False), tmp_path)
    assert set(shown) == {"DATA_FORMAT.txt", "schema.json", "nodes"}
    text = shown["DATA_FORMAT.txt"].read_text()
    assert not re.search(r"\bedge|relation|source\b|target", text, re.IGNORECASE)
    assert text.splitlines()[-1] == "Use shell tools or Python's json/csv modules to read these files."
    schema = orjson.loads(shown["schema.json"].read_bytes())
    assert set(schema) == {"format", "nodes", "node_types"}
    assert schema["node_types"] == biogo.schema["node_types"]


def test_a_view_is_made_once_and_can_be_read_by_everyone(biogo: Export, tmp_path: Path) -> None:
    first = shown_files(biogo, View(edges=False), tmp_path)["schema.json"]
    made = first.stat()
    again = shown_files(biogo, View(edges=False), tmp_path)["schema.json"].stat()
    assert (made.st_ino, made.st_mtime_ns) == (again.st_ino, again.st_mtime_ns)
    assert made.st_mode & 0o777 == 0o644
