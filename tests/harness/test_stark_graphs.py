"""STaRK's graphs by name: found on the machine, or downloaded with the real client from a loopback server."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.stark import REPOSITORY, REVISION
from tests.support.cli import HARNESS, HARNESS_ENV, SMALL, mistake, run_cli
from tests.support.hub import Hub, serve
from tests.support.stark_files import write_tree

CHUNK = 10 * 1024 * 1024  # the client writes to disk in pieces of this size
CUT = CHUNK + 1000
NOWHERE = "http://127.0.0.1:9"  # nothing listens there


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Amazon's archive is too large for one piece of a download."""
    tree = write_tree(tmp_path_factory.mktemp("stark"))
    with zipfile.ZipFile(tree / "skb" / "amazon" / "processed.zip", "a") as archive:
        archive.writestr("processed/notes.txt", bytes(CUT + CHUNK))
    return tree


@pytest.fixture
def hub(tree: Path) -> Iterator[Hub]:
    with serve(tree, REPOSITORY, REVISION) as server:
        yield server


@dataclass
class Machine:
    """A user's machine: a data directory, a home with huggingface_hub's cache, an endpoint."""

    folder: Path
    endpoint: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def harness(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HARNESS, *words], capture_output=True, text=True, cwd=self.folder, env=self._env(env or {}), check=False
        )

    def python(self, code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=self.folder, env=self._env({}))

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*HARNESS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env=self._env({}),
        )  # fmt: skip

    def _env(self, more: Mapping[str, str]) -> dict[str, str]:
        inherited = {key: value for key, value in HARNESS_ENV.items() if not key.startswith(("HF_", "HARNESS_"))}
        own = {"HARNESS_DATA": str(self.data), "HF_HOME": str(self.folder / "hf"), "HF_ENDPOINT": self.endpoint}
        return {**inherited, **own, **more}

    def states(self, **env: str) -> dict[str, dict[str, Any]]:
        listed = self.harness("graphs", "--json", env=env)
        assert listed.returncode == 0, listed
        return {each["name"]: each for each in json.loads(listed.stdout)}

    def script(self) -> str:
        path = self.folder / "script.jsonl"
        path.write_text('{"role": "assistant", "content": "ANSWER: [2]"}\n', encoding="utf-8")
        return f"scripted:{path}"

    def export(self, graph: str, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return self.harness("export", "stark", graph, *words, "--out", str(self.folder / graph), env=env)

    def run(self, graph: str, *flags: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        usual = ("--mode", "files", "--model", self.script(), "--sandbox", "bwrap", "--out", str(self.folder / "run"))
        return self.harness("run", "--graph", graph, *usual, *SMALL, *flags, env=env)


@pytest.fixture
def machine(tmp_path: Path, hub: Hub) -> Machine:
    return Machine(tmp_path, hub.url)


def said_by(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """What each said on standard error, once all have ended well."""
    said = []
    for process in processes:
        output, errors = process.communicate()
        assert process.returncode == 0, (output, errors)
        said.append(errors)
    return said


def test_a_graph_is_downloaded_exported_and_asked(machine: Machine, hub: Hub) -> None:
    before = machine.states()
    assert [before[name]["state"] for name in ("prime", "mag", "amazon")] == ["downloadable"] * 3
    assert "484 MB" in before["mag"]["note"]
    assert hub.asked == []
    done = machine.run("prime")
    assert done.returncode == 0, done
    assert "downloading prime" in done.stderr
    assert "prime: 4 nodes, but the published data has 129,375" in done.stderr
    source = json.loads((machine.folder / "run" / "manifest.json").read_text(encoding="utf-8"))["export"]["source"]
    assert {entry["file"] for entry in source["inputs"]} >= {"processed.zip", "stark_qa/stark_qa.csv"}
    attempts = (machine.folder / "run" / "attempts.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["query_id"] for line in attempts} == {"0", "3"}
    listing = machine.states()["prime"]
    assert (listing["state"], listing["nodes"], listing["edges"]) == ("exported", 4, 6)
    assert listing["questions"] == {"train": 1, "val": 1, "test": 2, "test-0.1": 1, "human": 1}
    assert listing["bytes"] > 0
    assert listing["created"].startswith("20")
    assert listing["path"] == str(machine.data / "exports" / "prime")


def test_check_tells_both_counts_of_edges_that_were_stored_twice(tree: Path, tmp_path: Path) -> None:
    made = run_cli("export", "stark", "prime", str(tree), "--out", str(tmp_path / "out"))
    assert made.code == 0, made
    assert made.stdout == f"{tmp_path / 'out'}: 4 nodes, 6 edges\n"
    checked = run_cli("check", str(tmp_path / "out"))
    assert checked.code == 0, checked
    told = [line for line in checked.stderr.splitlines() if line.startswith("relation")]
    assert told[-1] == (
        "relation 10 (parent-child) is symmetric: the source stores each edge in both directions, 7 rows;"
        " here are 4 edges"
    )
    assert len(told) == 3


def test_a_folder_without_the_graph(tmp_path: Path) -> None:
    mistake(
        run_cli("export", "stark", "mag", str(tmp_path), "--out", str(tmp_path / "out")),
        f"there is no graph 'mag' in {tmp_path}",
        "put skb/mag/processed.zip and qa/mag of the dataset repository there",
    )


def test_a_dry_run_downloads_nothing(machine: Machine, hub: Hub) -> None:
    assert machine.run("mag", "--dry-run").returncode == 2  # a dry run downloads nothing
    assert hub.asked == []
    assert machine.export("mag").returncode == 0
    asked = len(hub.asked)
    assert machine.run("mag", "--dry-run", "--out", str(machine.folder / "again")).returncode == 0
    assert len(hub.asked) == asked


def test_a_download_that_broke_off_goes_on_where_it_stopped(machine: Machine, hub: Hub) -> None:
    hub.cut, hub.times = CUT, 1
    done = machine.export("amazon")
    assert done.returncode == 0, done
    assert hub.downloads("processed.zip") == [None, f"bytes={CHUNK}-"]
    assert Export.open(machine.folder / "amazon").node_count == 5


def test_a_download_that_was_killed_goes_on_where_it_stopped(machine: Machine, hub: Hub) -> None:
    hub.cut, hub.times = CUT, 1000
    killed = machine.start("export", "stark", "amazon", "--out", str(machine.folder / "amazon"))
    assert killed.stderr is not None
    for line in killed.stderr:  # the client says so once the first answer has been cut
        if "resume" in line:
            break
    killed.kill()
    killed.communicate()
    hub.times = 0
    hub.asked.clear()
    assert machine.export("amazon").returncode == 0
    assert hub.downloads("processed.zip") == [f"bytes={CHUNK}-"]


def test_offline(machine: Machine, hub: Hub) -> None:
    done = machine.export("prime", env={"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 2, done
    assert "error: graph 'prime' is not on this machine, and HF_HUB_OFFLINE forbids to download it" in done.stderr
    assert "put skb/prime and qa/prime" in done.stderr
    assert machine.states(HF_HUB_OFFLINE="1")["prime"]["state"] == "not here"
    assert hub.asked == []


def test_huggingface_hubs_cache_is_used_offline(machine: Machine, hub: Hub) -> None:
    code = f"from huggingface_hub import snapshot_download as get; get({REPOSITORY!r}, repo_type='dataset', revision="
    files = "allow_patterns=['*/prime/*']"
    machine.python(f"{code}{REVISION!r}, {files})")
    offline = {"HF_HUB_OFFLINE": "1"}
    assert machine.states(**offline)["prime"]["state"] == "downloaded"
    asked = len(hub.asked)
    done = machine.run("prime", "--dry-run", env=offline)
    assert done.returncode == 0, done
    assert len(hub.asked) == asked
    assert machine.states(**offline)["prime"]["state"] == "exported"


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    done = Machine(tmp_path, NOWHERE).export("prime")
    assert done.returncode == 3, done
    assert f"error: the download of {REPOSITORY} from {NOWHERE} failed" in done.stderr
    assert "hint: the same command goes on where it stopped" in done.stderr
    assert "Traceback" not in done.stderr


def test_content_that_is_not_what_was_announced(machine: Machine, hub: Hub) -> None:
    hub.wrong = True
    done = machine.export("prime")
    assert done.returncode == 3, done
    assert "has the sha256" in done.stderr
    hub.wrong = False
    assert machine.export("prime").returncode == 0


@pytest.mark.parametrize("status", [500, 403])
def test_a_server_that_fails(machine: Machine, hub: Hub, status: int) -> None:
    hub.status = status
    done = machine.export("prime")
    assert done.returncode == 3, done
    assert f"the download of {REPOSITORY} from {hub.url} failed" in done.stderr
    assert str(status) in done.stderr


@pytest.mark.parametrize(("revision", "repository"), [("0" * 40, REPOSITORY), (REVISION, "someone/else")])
def test_a_mirror_without_the_revision(tree: Path, tmp_path: Path, revision: str, repository: str) -> None:
    with serve(tree, repository, revision) as hub:
        done = Machine(tmp_path, hub.url).export("prime")
    assert done.returncode == 2, done
    assert f"does not have the dataset {REPOSITORY} at revision {REVISION}" in done.stderr
    assert "HF_ENDPOINT" in done.stderr


def test_a_repository_without_the_optional_files(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    (tree / "qa/prime/split/test-0.1.index").unlink()
    (tree / "qa/prime/stark_qa/stark_qa_human_generated_eval.csv").unlink()
    with serve(tree, REPOSITORY, REVISION) as hub:
        assert Machine(tmp_path, hub.url).export("prime").returncode == 0
    splits = Export.open(tmp_path / "prime").manifest["queries"]["splits"]
    assert splits == {"train": 1, "val": 1, "test": 2}


def test_two_that_want_the_same_download(machine: Machine, hub: Hub) -> None:
    both = [machine.start("export", "stark", "amazon", "--no-index", "--out", f"out{n}") for n in range(2)]
    said = said_by(both)
    assert sum("downloading amazon (" in errors for errors in said) == 1
    assert hub.downloads("processed.zip") == [None]


def test_the_one_that_waits_says_so(tmp_path: Path) -> None:
    """Another process is a lock that is held here."""
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    (machine.data / "exports").mkdir()
    with (machine.data / "exports" / ".mag.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = machine.start("run", "--graph", "mag", "--mode", "files", "--model", machine.script(), "--dry-run")
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for another process that exports to {machine.data}/exports/mag\n"
        (machine.data / "exports" / ".mag.lock").unlink()
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors.startswith("exporting mag from ")


@pytest.mark.parametrize("where", [".", "stark"])
def test_data_in_the_data_directory_is_used_without_any_network(tmp_path: Path, where: str) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data / where)
    assert {each["state"] for name, each in machine.states().items() if name != "biogo"} == {"downloaded"}
    done = machine.run("mag", "--split", "test-0.1,human", "--dry-run")
    assert done.returncode == 0, done
    assert "downloading" not in done.stderr
    assert "exporting mag from" in done.stderr


def test_an_export_of_other_data_than_is_here_is_stale(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    assert machine.run("mag", "--dry-run").returncode == 0
    assert machine.states()["mag"]["state"] == "exported"
    with (machine.data / "qa/mag/stark_qa/stark_qa.csv").open("a", encoding="utf-8") as file:
        file.write('9,Another?,"[3]"\n')
    listing = machine.states()["mag"]
    assert listing["state"] == "stale"
    assert "stark_qa.csv is another file" in listing["note"]
    done = machine.run("mag", "--dry-run")
    assert done.returncode == 0, done  # it is still what runs before were made with
    assert "mag: the export is stale" in done.stderr
    assert f"remove {machine.data / 'exports' / 'mag'}" in done.stderr


def unpack(data: Path, name: str) -> None:
    archive = data / "skb" / name / "processed.zip"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(archive.parent)
    archive.unlink()


def swap(path: Path, old: bytes, new: bytes) -> None:
    """Other content of the same size, and the same times."""
    times, data = path.stat(), path.read_bytes()
    assert old in data
    assert len(old) == len(new)
    path.write_bytes(data.replace(old, new, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


QA, SKB = "qa/mag", "skb/mag/processed"
CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a split of equal size": (lambda data: swap(data / QA / "split/test.index", b"3", b"2"), "test.index is another"),
    "a question of equal size": (
        lambda data: swap(data / QA / "stark_qa/stark_qa.csv", b"The last?", b"The next?"),
        "stark_qa.csv is another",
    ),
    "a split that has come": (
        lambda data: (data / QA / "split/test-0.1.index").write_text("3\n", encoding="ascii"),
        "test-0.1.index was not there",
    ),
    "a split that is gone": (lambda data: (data / QA / "split/val.index").unlink(), "val.index, which it was made of"),
    "numbers of equal size": (
        lambda data: swap(data / SKB / "edge_types.pt", b"\3", b"\2"),
        "edge_types.pt is another",
    ),
    "names that have come": (
        lambda data: (data / SKB / "node_type_dict.pkl").write_bytes(b""),
        "node_type_dict.pkl was not there",
    ),
    "a file that isn't read": (lambda data: (data / SKB / "edges.pkl").write_bytes(b""), ""),
    "the graph packed again": (lambda data: pack(data / SKB), ""),
    "questions that are gone": (lambda data: shutil.rmtree(data / QA), ""),
}


def pack(folder: Path) -> None:
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"processed/{path.name}")
    shutil.rmtree(folder)


@pytest.mark.parametrize("change", CHANGES)
def test_what_makes_an_export_stale(tmp_path: Path, change: str) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    (machine.data / QA / "split/test-0.1.index").unlink()
    unpack(machine.data, "mag")
    place = machine.data / "exports" / "mag"
    assert run_cli("export", "stark", "mag", str(machine.data), "--out", str(place), "--no-index").code == 0
    assert machine.states()["mag"]["state"] == "exported"
    alter, note = CHANGES[change]
    alter(machine.data)
    listing = machine.states()["mag"]
    assert listing["state"] == ("stale" if note else "exported"), listing
    assert note in listing["note"]


def test_an_archive_of_equal_size_that_is_too_large_to_be_hashed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    archive = write_tree(machine.data) / "skb/mag/processed.zip"
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("processed/notes.txt", bytes(17 * 1024 * 1024))
        packed.writestr("processed/last.txt", b"a")
    place = machine.data / "exports" / "mag"
    assert run_cli("export", "stark", "mag", str(machine.data), "--out", str(place), "--no-index").code == 0
    assert machine.states()["mag"]["state"] == "exported"
    entries = zipfile.ZipFile(archive)
    with entries, zipfile.ZipFile(archive.with_suffix(".new"), "w", zipfile.ZIP_DEFLATED) as other:
        for entry in entries.infolist():
            other.writestr(entry, b"b" if entry.filename.endswith("last.txt") else entries.read(entry))
    assert archive.with_suffix(".new").stat().st_size == archive.stat().st_size
    archive.with_suffix(".new").replace(archive)
    assert "processed.zip is another" in machine.states()["mag"]["note"]


def test_questions_that_come_after_the_graph_was_exported_without(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    shutil.move(machine.data / "qa/mag", tmp_path / "later")
    assert machine.run("mag", "--dry-run").returncode == 2  # no questions
    assert machine.states()["mag"]["state"] == "exported"
    shutil.move(tmp_path / "later", machine.data / "qa/mag")
    done = machine.run("mag", "--dry-run")
    assert f"remove {machine.data / 'exports' / 'mag'}" in done.stderr
    assert "was not there when it was made" in machine.states()["mag"]["note"]


def test_questions_of_ones_own_are_no_reason(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    (tmp_path / "mine.csv").write_text('id,query,answer_ids\nq,What?,"[4]"\n', encoding="utf-8")
    words = ("stark", "mag", str(machine.data), "--queries", str(tmp_path / "mine.csv"))
    assert run_cli("export", *words, "--out", str(machine.data / "exports" / "mag"), "--no-index").code == 0
    assert machine.states()["mag"]["state"] == "exported"


def test_two_that_want_the_same_export_make_it_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    flags = ("--mode", "files", "--model", machine.script(), "--dry-run")
    both = [machine.start("run", "--graph", "amazon", *flags) for _ in range(2)]
    said = said_by(both)
    assert sum("exporting amazon from" in errors for errors in said) == 1
    assert [path.name for path in (machine.data / "exports").iterdir()] == ["amazon"]


def test_data_that_the_export_can_not_be_put_beside(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "my machine", NOWHERE)
    write_tree(machine.data)
    (machine.data / "exports").write_bytes(b"")  # no folder can be made there, not by root either
    done = machine.run("mag", "--dry-run")
    assert done.returncode == 2, done
    error, hint = done.stderr.splitlines()[-2:]
    assert error == f"error: cannot write {machine.data}/exports/mag: Not a directory"
    command = hint.split("`")[1]
    assert hint.endswith("; then give --graph ./mag")
    words = shlex.split(command)
    assert words[0] == "harness"
    assert machine.harness(*words[1:]).returncode == 0
    done = machine.run("./mag", "--dry-run")
    assert done.returncode == 0, done


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_shared_data_directory_without_the_export_that_can_not_be_written(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NOWHERE)
    write_tree(machine.data)
    machine.data.chmod(0o555)
    try:
        done = machine.run("mag", "--dry-run")
        assert done.returncode == 2
        assert "cannot write" in done.stderr
        assert "`harness export stark mag --data-dir" in done.stderr
    finally:
        machine.data.chmod(0o755)
