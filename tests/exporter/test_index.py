"""The whole index of an export: where it is built, when it is built anew, and what it says of nodes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exporter import Export, ExportError, check, export_tables
from exporter.index import Index
from tests.support.graphs import small_export, write_tables

ROOT = Path(__file__).resolve().parents[2]
OPEN = """
import sys
from pathlib import Path
from exporter import Export
from exporter.index import Index
told = []
index = Index.open(Export.open(Path(sys.argv[1])), Path(sys.argv[2]), lambda *step: told.append(step[0]))
print(index.labels.name(1), index.text.search("shells", 5)[0].node, index.adjacency.neighbors(0).tolist(), *told)
"""


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_what_it_says_of_nodes(biogo: Export, tmp_path: Path) -> None:
    index = Index.open(biogo, tmp_path)
    types = [item["name"] for item in biogo.schema["node_types"]]
    for record in biogo.nodes():
        node = record["node_id"]
        assert index.labels.name(node) == record["name"]
        assert types[index.labels.types[node]] == record["node_type"]
    best = index.text.search("mitochondrial transport", 3)
    assert index.labels.name(best[0].node) == "mitochondrial transport"


def test_documents_and_names_of_any_kind(tmp_path: Path) -> None:
    nodes = [
        {"id": "n1", "type": "t", "name": "Näme\n2", "year": 1999, "none": None, "list": ["a", {"deep": ["b", 7]}]},
        {"id": 7, "type": "t", "name": ""},
    ]
    export = export_tables(*write_tables(tmp_path, nodes, [("n1", "r", "7")]), tmp_path / "graph")
    index = Index.open(export)
    assert list(index.documents([0, 1])) == [
        "Näme\n2\nn1\nyear: 1999\nlist: a deep b 7\n",
        "",
    ]
    assert index.labels.name(0) == "Näme\n2"
    assert index.labels.name(1) == ""
    assert [hit.node for hit in index.text.search("DEEP", 5)] == [0]
    assert [hit.node for hit in index.text.search("näme", 5)] == [0]


def test_it_is_built_once_inside_the_export(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    told: list[str] = []
    Index.open(export, tmp_path / "cache", lambda stage, *_: told.append(stage))
    assert set(told) == {"adjacency", "text index"}
    made = parts(export.path / "index")
    assert [name.partition("-")[0] for name in made] == ["adjacency", "text"]
    told.clear()
    Index.open(export, tmp_path / "cache", lambda stage, *_: told.append(stage))
    assert told == []
    assert parts(export.path / "index") == made
    assert not (tmp_path / "cache").exists()
    assert check(export.path) == []


def test_it_is_built_with_the_export(tmp_path: Path) -> None:
    told: list[str] = []
    export = export_tables(
        *write_tables(tmp_path), tmp_path / "graph", index=True, progress=lambda stage, *_: told.append(stage)
    )
    assert told[-3:] == ["adjacency", "text index", "text index"]
    made = parts(export.path / "index")
    assert [name.partition("-")[0] for name in made] == ["adjacency", "text"]
    assert [path.name for path in (export.path / "index").glob(".*")] == []
    assert check(export.path) == []
    told.clear()
    index = Index.open(export, tmp_path / "cache", lambda stage, *_: told.append(stage))
    assert told == []
    assert index.adjacency.neighbors(0).tolist() == [2, 3]


@pytest.mark.parametrize("stage", ["adjacency", "text index"])
def test_an_export_that_is_stopped_at_its_index_leaves_nothing(tmp_path: Path, stage: str) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == stage:
            raise KeyboardInterrupt

    tables = write_tables(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        export_tables(*tables, tmp_path / "graph", index=True, progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.tsv", "nodes.jsonl"]


def test_an_export_that_was_changed_gets_another(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    Index.open(export)
    before = parts(export.path / "index")
    manifest = json.loads((export.path / "manifest.json").read_text("utf-8"))
    manifest["files"]["files/nodes/0000.jsonl"]["sha256"] = "0" * 64
    (export.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    Index.open(Export.open(export.path))
    after = parts(export.path / "index")
    assert len(after) == 2
    assert not set(after) & set(before)


def test_a_part_that_was_removed_is_made_again(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    Index.open(export)
    before = parts(export.path / "index")
    shutil.rmtree(export.path / "index" / before[1])
    Index.open(export)
    assert parts(export.path / "index") == before


def test_two_processes_build_it_once(tmp_path: Path) -> None:
    """The second waits for the first, then opens what that one made."""
    export = small_export(tmp_path)
    hold = """
import sys
from pathlib import Path
from exporter import Export
from exporter.index import Index
def progress(stage, done, total):
    if stage == "text index" and not done:
        print(stage, flush=True)
        sys.stdin.readline()
Index.open(Export.open(Path(sys.argv[1])), Path(sys.argv[2]), progress)
"""
    arguments = [str(export.path), str(tmp_path / "cache")]
    first = subprocess.Popen(
        [sys.executable, "-c", hold, *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "text index\n"
    second = OPEN.replace("told.append(step[0])", "(told.append(step[0]), print(step[0], flush=True))")
    other = subprocess.Popen([sys.executable, "-c", second, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    waiting = f"waiting for another process that makes {export.path}/index/text-"
    assert other.stdout.readline().startswith(waiting)
    first.communicate("\n")
    output, _ = other.communicate()
    assert (first.returncode, other.returncode) == (0, 0)
    assert output.startswith(f"Bo 3 [2, 3] {waiting}")
    assert "text index" not in output
    assert len(parts(export.path / "index")) == 2


@pytest.fixture
def read_only(tmp_path: Path) -> tuple[Export, list[str]]:
    """An export that can't be written, and a command that opens its index and says what it found and did."""
    export = small_export(tmp_path)
    mount = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c"]
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    tried = [*mount, script, str(export.path), "true"]
    if not shutil.which("unshare") or subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here (needs user namespaces)")
    command = [sys.executable, "-c", OPEN, str(export.path), str(tmp_path / "cache")]
    return export, [*mount, script, str(export.path), *command]


BUILT = "Bo 3 [2, 3] adjacency adjacency adjacency adjacency text index text index\n"
OPENED = "Bo 3 [2, 3]\n"


def test_a_read_only_export_has_its_index_in_the_cache(tmp_path: Path, read_only: tuple[Export, list[str]]) -> None:
    export, command = read_only
    for told in (BUILT, OPENED):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == told
    assert parts(export.path / "index") == []
    assert [name.partition("-")[0] for name in parts(tmp_path / "cache")] == ["adjacency", "text"]
    told_now: list[str] = []
    Index.open(export, tmp_path / "cache", lambda stage, *_: told_now.append(stage))
    assert told_now == []


def test_what_was_changed_in_the_cache_is_made_anew(tmp_path: Path, read_only: tuple[Export, list[str]]) -> None:
    _, command = read_only
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    for name in ("adjacency.bin", "names.bin", "sums.json", "*.idx", "*.term", "bm25/new"):
        for part in (tmp_path / "cache").iterdir():
            for file in [*part.rglob(name)] or ([part / name] if (part / name).parent.is_dir() else []):
                file.write_bytes((file.read_bytes() if file.exists() else b"")[:-1] + b"~")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.startswith("Bo 3 [2, 3] ")
        assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == OPENED


def test_nowhere_to_write(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    shutil.rmtree(export.path / "index")
    with pytest.raises(ExportError, match="cannot write"):
        Index.open(export, tmp_path / "file")


def test_others_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    command = [sys.executable, "-c", OPEN, str(export.path), str(tmp_path / "cache")]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, umask=0o077)
    made = list((export.path / "index").glob("*-*/**/*"))
    assert len(made) > 5
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in made)


def test_damaged_labels(tmp_path: Path) -> None:
    export = small_export(tmp_path)
    Index.open(export)
    (text,) = (export.path / "index").glob("text-*")
    (text / "types.npy").write_bytes(b"")
    with pytest.raises(ExportError, match="damaged index") as caught:
        Index.open(export)
    assert "remove that folder" in caught.value.hint
