"""An export appears complete or not at all, made by one process at a time."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from exporter import Export, ExportError, check, export_tables
from tests.support.graphs import small_export, write_tables
from tests.support.stark_files import graph_files, write_archive

ROOT = Path(__file__).resolve().parents[2]
EXPORT = "import sys; from pathlib import Path; from exporter import *\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """Another Python process that runs `code` with this repository's packages."""
    return subprocess.Popen(
        [sys.executable, "-c", EXPORT + code, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    first = small_export(tmp_path)
    manifest = (first.path / "manifest.json").read_bytes()
    with pytest.raises(ExportError, match="graph exists already"):
        small_export(tmp_path)
    assert (first.path / "manifest.json").read_bytes() == manifest
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(ExportError, match=f"{name} exists already"):
            export_tables(*write_tables(tmp_path), tmp_path / name)
    assert names(tmp_path) == ["dangling", "edges.tsv", "file", "graph", "nodes.jsonl", "queries.jsonl"]


def test_reuse_opens_what_is_there(tmp_path: Path) -> None:
    first = small_export(tmp_path)
    second = export_tables(tmp_path / "none.csv", tmp_path / "none.tsv", first.path, reuse=True)
    assert second.manifest["canary"] == first.manifest["canary"]


def test_what_a_killed_export_left_is_swept_away(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    os.mkfifo(tmp_path / "slow.tsv")
    other = run("export_tables(*map(Path, sys.argv[1:]))", tables[0], tmp_path / "slow.tsv", tmp_path / "graph")
    with (tmp_path / "slow.tsv").open("wb"):  # returns when the other process opens it: the nodes are written
        other.kill()
        other.communicate()
    assert ".graph.partial" in names(tmp_path)
    assert not (tmp_path / "graph").exists()
    export = export_tables(*tables, tmp_path / "graph")
    assert check(export.path) == []
    assert names(tmp_path) == ["edges.tsv", "graph", "nodes.jsonl", "slow.tsv"]


@pytest.mark.parametrize("stage", ["nodes.jsonl", "edges.tsv"])
def test_interrupting_leaves_nothing(tmp_path: Path, stage: str) -> None:
    tables = write_tables(tmp_path)
    before = names(tmp_path)
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test runner in the background ignores it
def progress(stage, done, total):
    if stage == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGINT)
export_tables(*map(Path, sys.argv[1:4]), progress=progress)
"""
    output, _ = run(code, *tables, tmp_path / "new" / "graph", stage).communicate()
    assert output.endswith("KeyboardInterrupt\n")
    assert names(tmp_path) == before


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    """The second waits for the first, then opens what that one made."""
    nodes, edges = write_tables(tmp_path)
    os.mkfifo(tmp_path / "slow.tsv")
    first = run("export_tables(*map(Path, sys.argv[1:]))", nodes, tmp_path / "slow.tsv", tmp_path / "graph")
    waiting = threading.Event()
    found: list[Export | ExportError] = []

    def export_too(reuse: bool) -> None:
        def progress(stage: str, done: int, total: int) -> None:
            if stage.startswith("waiting"):
                waiting.set()

        try:
            found.append(export_tables(nodes, edges, tmp_path / "graph", reuse=reuse, progress=progress))
        except ExportError as error:
            found.append(error)

    with (tmp_path / "slow.tsv").open("wb") as pipe:
        threads = []
        for reuse in (True, False):
            waiting.clear()
            threads.append(threading.Thread(target=export_too, args=(reuse,)))
            threads[-1].start()
            assert waiting.wait(30)
        assert not found
        pipe.write(edges.read_bytes())
    assert first.communicate()[0] == ""
    for thread in threads:
        thread.join()
    made = Export.open(tmp_path / "graph")
    opened = [result for result in found if isinstance(result, Export)]
    refused = [str(result) for result in found if isinstance(result, ExportError)]
    assert [export.manifest["canary"] for export in opened] == [made.manifest["canary"]]
    assert refused == [f"{made.path} exists already"]
    assert names(tmp_path) == ["edges.tsv", "graph", "nodes.jsonl", "slow.tsv"]


def test_many_processes_at_once(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    code = "print(export_tables(*map(Path, sys.argv[1:]), reuse=True).manifest['canary'])"
    processes = [run(code, *tables, tmp_path / "graph") for _ in range(6)]
    canaries = {process.communicate()[0] for process in processes}
    assert canaries == {Export.open(tmp_path / "graph").manifest["canary"] + "\n"}
    assert names(tmp_path) == ["edges.tsv", "graph", "nodes.jsonl"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ExportError, match=r"cannot write .*/file/graph: Not a directory"):
        export_tables(*tables, tmp_path / "file" / "graph")
    with pytest.raises(ExportError, match=r"cannot write .*: File name too long"):
        export_tables(*tables, tmp_path / ("x" * 250))
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o555)
        with pytest.raises(ExportError, match=r"cannot write .*/locked/graph: Permission denied") as caught:
            export_tables(*tables, tmp_path / "locked" / "graph")
        assert "may write" in caught.value.hint
    with pytest.raises(ExportError, match="cannot write /proc/graph"):
        export_tables(*tables, Path("/proc/graph"))


def test_a_file_that_grows_too_large_for_the_place(tmp_path: Path) -> None:
    nodes = ({"id": i, "type": "t", "name": "n" * 100} for i in range(2_000))
    tables = write_tables(tmp_path, nodes, [("0", "to", "1")])
    code = "try: export_tables(*map(Path, sys.argv[1:]))\nexcept ExportError as error: print(error, '|', error.hint)\n"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    output, _ = run(code, *tables, tmp_path / "graph", preexec_fn=limit).communicate()
    assert output == f"cannot write {tmp_path}/graph: File too large | free some space, or choose another place\n"
    assert names(tmp_path) == ["edges.tsv", "nodes.jsonl"]


def test_where_ever_the_place_ends_it_is_said_why(tmp_path: Path) -> None:
    """What is unpacked, nodes, edges, arrays and indexes: each in turn is the first file that is too large."""
    count = 2_000
    nodes = {number: {"title": f"paper {number} of {number * 7}"} for number in range(count)}
    edges = [(number, number // 2, 1) for number in range(count)]
    write_archive(tmp_path / "mag" / "processed.zip", "processed", graph_files(nodes, [3] * count, edges))
    code = """
import resource
from exporter.index import open_baseline
from exporter.stark import DATASETS, export_stark, find
root = Path(sys.argv[1])
place = find(DATASETS["mag"], root)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in [10, 100, 1_000, *range(2_500, 400_000, 9_501)]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        export = export_stark("mag", place, root / f"out{limit}", index=True)
        open_baseline(export)
        said = "made"
    except ExportError as error:
        said = f"{error} | {error.hint}"
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print(said)
"""
    output, _ = run(code, tmp_path).communicate()
    *limited, last = output.splitlines()
    assert last == "made"
    assert {re.sub(r"cannot write \S+:", "cannot write:", line) for line in limited} <= {
        "cannot write: File too large | free some space, or choose another place",
        "made",
    }
    assert sum(line != "made" for line in limited) > 10


def with_a_small_disk(folder: Path) -> list[str]:
    """What to put before a command, for which `folder` is then a disk of 1 MB."""
    mount = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c"]
    mount += ['mount -t tmpfs -o size=1m none "$0" && exec "$@"', str(folder)]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no small file system can be mounted here (needs user namespaces)")
    return mount


def test_arrays_on_a_full_disk(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import numpy as np
from exporter.array_files import new_mapped_array, save_array, write_array
folder = Path(sys.argv[1])
def unbuffered(path, values):
    with path.open("xb", buffering=0) as file:
        write_array(values, file)
values = np.arange(1_000_000)
for number, write in enumerate((save_array, unbuffered, lambda path, _: new_mapped_array(path, np.int64, 1_000_000))):
    path = folder / str(number)
    try:
        write(path, values)
    except OSError as error:
        print(error.strerror)
    path.unlink()
    save_array(path, values[:1_000])
    assert np.array_equal(np.load(path), values[:1_000])
    path.unlink()
"""
    command = [*with_a_small_disk(tmp_path), sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["No space left on device"] * 3


def test_no_space_left(tmp_path: Path) -> None:
    nodes = ({"id": i, "type": "t", "name": "n" * 100} for i in range(20_000))
    tables = write_tables(tmp_path, nodes, [("0", "to", "1")])
    (tmp_path / "small").mkdir()
    code = (
        "try: export_tables(*map(Path, sys.argv[1:]))\n"
        "except ExportError as error: print(error, '|', error.hint)\n"
        "print(sorted(path.name for path in Path(sys.argv[3]).parent.iterdir()))\n"
    )
    command = [*with_a_small_disk(tmp_path / "small"), sys.executable, "-c", EXPORT + code]
    command += [*map(str, tables), str(tmp_path / "small" / "graph")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"cannot write {tmp_path}/small/graph: No space left on device | free some space, or choose another place\n[]\n"
    )


def test_killed_at_any_moment_it_is_complete_or_absent(tmp_path: Path) -> None:
    """SIGKILL at file operations spread over the whole export."""
    nodes = [{"id": i, "type": "t", "name": f"n{i}"} for i in range(10_001)]
    tables = write_tables(tmp_path, nodes, ((str(i), f"r{i % 7}", str(i // 2)) for i in range(10_001)))
    code = """
import os, signal
import exporter.write
operations, last = 0, int(sys.argv[4])
def hook(event, arguments):
    global operations
    if event in ("open", "os.mkdir", "os.rename", "os.chmod", "os.remove"):
        operations += 1
        if operations == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
export_tables(*map(Path, sys.argv[1:4]))
print(operations)
"""

    def outcome(last: int) -> str:
        return run(code, *tables, tmp_path / f"graph{last}", last).communicate()[0]

    outcome(-1)  # writes what Python caches of the modules, which later runs open no more
    total = int(outcome(0))
    assert total > 50
    complete = []
    for last in sorted({*range(1, total, total // 5), total - 1, total}):
        assert outcome(last) == ""
        out = tmp_path / f"graph{last}"
        complete.append(out.exists())
        export = export_tables(*tables, out, reuse=True)
        assert check(export.path) == []
    assert not complete[0]
    assert complete[-1]
