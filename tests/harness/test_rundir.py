"""The run folder: made once, locked, compared on resume, mended after a crash."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.errors import UserError
from harness.events import trajectory_path
from harness.ledger import LEDGER, AttemptRecord, Ledger, read_ledger
from harness.messages import Entry, Reply, Usage
from harness.rundir import is_in_use, open_run, versions
from harness.schemas import check_run
from harness.trajectory import TrajectoryWriter
from tests.support.cli import HARNESS_ENV

IN_FLIGHT = "is not in the ledger: in flight at a crash (resume the run)"


def manifest(**changes: Any) -> dict[str, Any]:
    table = {
        "graph": "g",
        "export": {"digest": "d1", "path": "/anywhere"},
        "mode": {"name": "files", "limits": {"turns": 300}},
        "model": {"name": "m"},
        "questions": {"sha256": "q1", "ids": ["a"]},
    }
    return {**table, **changes}


def test_a_run_folder_is_made_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False) as folder:
        assert folder.manifest["graph"] == "g"
    with pytest.raises(UserError, match="exists") as caught, open_run(run, manifest(), resume=False):
        pass
    assert "--resume" in caught.value.hint


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="not empty"), open_run(tmp_path, manifest(), resume=False):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_can_not_be_filled_is_not_left_half_made(tmp_path: Path) -> None:
    """In a process that may write no byte to a file, as on a full disk."""
    script = (
        "import resource, sys; from pathlib import Path; from harness.rundir import open_run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with open_run(Path(sys.argv[1]), {}, resume=False): pass\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, env=HARNESS_ENV, check=False)
    assert "UserError: can't write the run folder" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_start_that_died_before_its_manifest_can_be_started_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    with open_run(tmp_path, manifest(), resume=False) as folder:
        assert folder.manifest["schema_version"] == 1


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to resume"), open_run(tmp_path / "run", manifest(), resume=True):
        pass
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"mode": {"name": "tools", "limits": {"turns": 300}}}, 'mode.name was "files", now "tools"'),
        ({"mode": {"name": "files", "limits": {"turns": 20}}}, "mode.limits.turns was 300, now 20"),
        ({"model": {"name": "other"}}, 'model.name was "m", now "other"'),
        ({"graph": "h"}, 'graph was "g", now "h"'),
        ({"export": {"digest": "d2", "path": "/anywhere"}}, 'export.digest was "d1", now "d2"'),
        ({"questions": {"sha256": "q2", "ids": ["a", "b"]}}, "other questions: 1 then, 2 now"),
        (
            {"mode": {"access": "x" * 100, "name": "other", "limits": {"turns": 300}}},
            'settings: mode.name was "files", now "other"; mode.access differs',
        ),
    ],
)
def test_a_resume_with_other_settings_says_which(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False):
        pass
    before = (run / "manifest.json").read_bytes()
    with pytest.raises(UserError) as caught, open_run(run, manifest(**changes), resume=True):
        pass
    assert named in str(caught.value)
    assert (run / "manifest.json").read_bytes() == before


def test_moved_exports_and_other_worker_counts_may_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(workers=1), resume=False):
        pass
    changed = manifest(workers=8, export={"digest": "d1", "path": "/elsewhere"})
    with open_run(run, changed, resume=True) as folder:
        assert folder.path == run


def test_two_processes_do_not_write_one_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with (
        open_run(run, manifest(), resume=False),
        pytest.raises(UserError, match="in use"),
        open_run(run, manifest(), resume=True),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match="can't write the run folder"),
        open_run(tmp_path / "file" / "run", manifest(), resume=False),
    ):
        pass


def test_an_attempt_in_flight_at_a_crash_is_ledgered_with_its_usage(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False) as folder:
        path = run / trajectory_path("a/b", 1, 2)
        log = TrajectoryWriter(path, folder.blobs)
        log.write("start", query_id="a/b", agent=1, attempt=2, query="?", mode="files", prompt="p", tools=[])
        for turn in (1, 2):
            log.reply(turn, Reply(Entry("assistant", "hm"), "stop", Usage(input=100 * turn, output=7)))
        log.close()
        path.write_bytes(path.read_bytes() + b'{"torn')
        empty = run / trajectory_path("c", 0, 0)
        empty.parent.mkdir()
        empty.touch()
        (sentence,) = folder.recover()
        assert "in flight" in sentence
        (record,) = read_ledger(run)
        assert (record.query_id, record.agent, record.attempt) == ("a/b", 1, 2)
        assert (record.stop_reason, record.turns) == ("interrupted", 2)
        assert record.usage == {"input": 300, "cached": None, "output": 14, "reasoning": None}
        assert not empty.exists(), "nothing had happened: the attempt's name is free again"
        assert folder.recover() == [], "recovering twice finds nothing new"


def test_whether_a_folder_is_in_use(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert not is_in_use(run)
    with open_run(run, manifest(), resume=False):
        assert is_in_use(run)
        assert is_in_use(run), "asking takes no lock"
    before = sorted(run.iterdir())
    assert not is_in_use(run)
    assert sorted(run.iterdir()) == before
    with open_run(run, manifest(), resume=True):
        pass


def test_a_finished_attempt_has_its_end_in_the_trajectory(tmp_path: Path) -> None:
    """A file that was cut at the end of a line is otherwise as it should be."""
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False):
        path = begin_attempt(run, "q")
        Ledger(run).append(AttemptRecord("q", 0, 0, "answered", trajectory=str(path.relative_to(run))))
    begun = path.read_bytes()
    name = path.relative_to(run)
    stop = {"stop_reason": "answered", "limit": None, "error": None}
    end = orjson.dumps({"schema_version": 1, "seq": 2, "time": 1.0, "type": "end", **stop})
    path.write_bytes(begun + end + b"\n")
    assert not any("last event" in fault for fault in faults_of(run))
    path.write_bytes(begun)
    assert f"{name}:None: its last event is not the attempt's end but notice" in faults_of(run)
    path.write_bytes(b"")
    assert f"{name}:None: its last event is not the attempt's end but missing" in faults_of(run)


def faults_of(run: Path) -> list[str]:
    """Those of ledger and trajectories: the manifest of these tests is a stub."""
    return [f"{fault.file}:{fault.line}: {fault.message}" for fault in check_run(run) if fault.file != "manifest.json"]


def begin_attempt(run: Path, query_id: str) -> Path:
    path = run / trajectory_path(query_id, 0, 0)
    with TrajectoryWriter(path, run / "blobs") as log:
        log.write("start", query_id=query_id, agent=0, attempt=0, query="?", mode="files", prompt="p", tools=[])
        log.write("notice", turn=1, text="")
    return path


@pytest.mark.parametrize("cut", [1, 5])
def test_what_is_being_written_is_no_fault_and_what_a_crash_left_is_one_until_it_is_known(
    tmp_path: Path, cut: int
) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False):
        path = begin_attempt(run, "q")
        path.write_bytes(path.read_bytes()[:-cut])
        assert faults_of(run) == []
    name = str(trajectory_path("q", 0, 0))
    assert faults_of(run) == [f"{name}:2: torn: its end is missing", f"{name}:None: {IN_FLIGHT}"]
    with open_run(run, manifest(), resume=True) as folder:
        folder.recover()
    assert faults_of(run) == [], "interrupted, and ledgered as that"
    (record,) = read_ledger(run)
    (run / LEDGER).unlink()
    Ledger(run).append(replace(record, stop_reason="answered"))
    assert faults_of(run) == [f"{name}:2: torn: its end is missing"]


@pytest.mark.parametrize("cut", [1, 5])
def test_a_torn_ledger_is_a_fault_once_nobody_writes_it(tmp_path: Path, cut: int) -> None:
    run = tmp_path / "run"
    with open_run(run, manifest(), resume=False) as folder:
        begin_attempt(run, "q")
        folder.recover()
        whole = (run / LEDGER).read_bytes()
        (run / LEDGER).write_bytes(whole + whole[:-cut])
        assert faults_of(run) == []
    assert faults_of(run) == [f"{LEDGER}:2: torn: its end is missing"]


@pytest.mark.parametrize("what", ["ledger", "trajectory"])
def test_a_full_disk_leaves_whole_lines(tmp_path: Path, what: str) -> None:
    """In a process whose files may have only so many bytes; once they may have more it goes on."""
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from harness.ledger import AttemptRecord, Ledger; from harness.trajectory import TrajectoryWriter\n"
        "folder = Path(sys.argv[1]); _, most = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "if sys.argv[2] == 'ledger':\n"
        "    add = lambda text, log=Ledger(folder): log.append(AttemptRecord(text, 0, 0, 'answered'))\n"
        "else:\n"
        "    log = TrajectoryWriter(folder / 'attempts.jsonl', folder)\n"
        "    add = lambda text: log.write('notice', turn=1, text=text)\n"
        "add('first')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, most))\n"
        "try: add('x' * 1_000)\n"
        "except OSError as error: print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))\n"
        "add('last')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), what]
    done = subprocess.run(command, capture_output=True, text=True, env=HARNESS_ENV, check=True)
    assert "File too large" in done.stdout
    lines = [orjson.loads(line) for line in (tmp_path / LEDGER).read_bytes().splitlines()]
    assert [line.get("query_id", line.get("text")) for line in lines] == ["first", "last"]


def test_versions_name_what_took_part() -> None:
    found = versions()
    assert found["python"]
    assert found["orjson"]
