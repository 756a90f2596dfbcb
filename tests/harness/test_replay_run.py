"""Saved runs replayed in a real sandbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest

from exporter import Export
from exporter.index import Index
from harness.errors import UserError
from harness.events import trajectory_path
from harness.ledger import AttemptRecord, Ledger
from harness.modes import load_mode
from harness.replay_run import REPLAYS, RunReplay, plan_replay, replay_run
from harness.tools.graph import Graph
from harness.tools.listing import search_results
from sandbox import Backend, Sandbox, SandboxLost, ShellEnd, Spec
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.runs import make_export


class Counting:
    """A backend that counts the sandboxes it opens, or has none to give."""

    def __init__(self, backend: Backend, *, lost: bool = False) -> None:
        self.kind, self._backend, self._lost, self.opened = backend.kind, backend, lost, 0

    def open(self, spec: Spec) -> Sandbox:
        self.opened += 1
        if self._lost:
            raise SandboxLost("it is gone")
        return self._backend.open(spec)

    def describe(self) -> dict[str, object]:
        return self._backend.describe()

    def shell(self, spec: Spec) -> ShellEnd:
        return self._backend.shell(spec)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("graph"))


def replayed(run: Path, backend: Backend, *queries: str, **options: int) -> RunReplay:
    return replay_run(plan_replay(run, backend.kind, queries), backend, **options)


def demo_run(folder: Path, export: Export) -> Path:
    """The demo's recordings as a run."""
    run = make_audited_run(folder / "run", export, {})
    for source in sorted((resources.files("harness") / "demo").iterdir(), key=lambda item: item.name):
        query = source.name.removesuffix(".jsonl")
        path = trajectory_path(query, 0, 0)
        (run / path).parent.mkdir(parents=True)
        (run / path).write_bytes(source.read_bytes())
        Ledger(run).append(AttemptRecord(query, 0, 0, "answered", trajectory=str(path)))
    return run


def check_demo(run: Path, backend: Backend) -> None:
    replay = replayed(run, backend)
    assert replay.commands >= 30
    assert replay.matched / replay.commands >= 0.95
    assert (replay.matched + replay.explained) / replay.commands >= 0.99
    assert all(attempt.error is None for attempt in replay.attempts)


def test_the_demo_matches_in_bwrap(tmp_path: Path, biogo: Export, bwrap: Backend) -> None:
    check_demo(demo_run(tmp_path, biogo), bwrap)


@pytest.mark.docker
def test_the_demo_matches_in_docker(tmp_path: Path, biogo: Export, docker: Backend) -> None:
    check_demo(demo_run(tmp_path, biogo), docker)


def run_of(folder: Path, export: Export, *attempts: Sequence[Step]) -> Path:
    return make_audited_run(folder / "run", export, {f"q{n}": [Attempt(steps)] for n, steps in enumerate(attempts, 1)})


def test_files_last_within_an_attempt_and_no_longer(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    first = [Step("echo a > x; cat x", "a"), Step("cat x; pwd", "a\n/scratch")]
    second = [Step("cat x 2>/dev/null", "[exit code 1] no output", exit_code=1)]
    replay = replayed(run_of(tmp_path, export, first, second), bwrap)
    assert (replay.commands, replay.matched) == (3, 2)
    assert replay.differences[0].recorded.startswith("\n[exit code 1] no output")  # as this recording was typed


def test_differences_are_shown_with_their_causes(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    steps = [
        Step("head -c 11 /graph/DATA_FORMAT.txt", "This is new"),
        Step("date +%H:%M:%S", "01:02:03"),
        Step("printf 'b\\na\\n' > x; rg -N . x x", "x:a\nx:b\nx:a\nx:b"),
        Step("echo same", "same"),
    ]
    replay = replayed(run_of(tmp_path, export, steps), bwrap)
    assert (replay.commands, replay.matched, replay.explained) == (4, 1, 2)
    wrong, clock, order = replay.differences
    assert (wrong.cause, clock.cause, order.cause) == (None, "time", "order")
    assert (wrong.file, wrong.line, wrong.turn) == ("trajectories/q1/0-0.jsonl", 3, 1)
    assert wrong.position == len("[exit code 0]\nThis ")
    assert (wrong.recorded, wrong.replayed) == ("is new", "folder")


def test_outputs_that_were_cut_are_cut_again(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    """The recording is made by the harness itself here: what it shows is what a replay must show."""
    from harness.messages import ToolCall
    from harness.modes import load_mode
    from harness.spill import Spills
    from harness.tools import ToolContext
    from harness.tools.kit import make_toolbox
    from harness.trajectory import TrajectoryWriter

    run = run_of(tmp_path, export, [])
    mode = load_mode("files")
    path = run / "trajectories/q1/0-0.jsonl"
    path.unlink()
    commands = [
        "seq 100000",
        "head -c 5000 /dev/zero | tr '\\0' x",
        "tail -1 outputs/001.txt",
        "echo small",
        "cat outputs/*3.txt",
    ]
    with bwrap.open(Spec(graph=export.files)) as sandbox, TrajectoryWriter(path, run / "blobs") as log:
        spills = Spills(sandbox)
        context = ToolContext(lambda: sandbox, lambda: spills, mode.output, mode.output.cap, 60.0)
        seen = {}
        for turn, command in enumerate(commands, 1):
            call = ToolCall(f"c{turn}", "bash", json.dumps({"command": command}))
            if turn == len(commands):  # an output that had no file gets one as it is cleared
                spills.save(seen["c4"].whole or b"")
                log.write("clear", turn=turn, call_ids=["c1", "c4"], tokens_before=9, tokens_after=1)
            seen[call.id] = make_toolbox(mode.tools).dispatch(call, {"command": command}, context)
            log.result(turn, call, {"command": command}, seen[call.id])
    assert seen["c1"].cut is not None
    assert "small" in seen["c5"].text
    replay = replayed(run, bwrap)
    assert (replay.commands, replay.matched) == (5, 5)


def test_reading_and_the_models_mistakes(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    steps = [
        Step(tool="read", arguments={"path": "/graph/none"}, output="x", error="file_error"),
        Step(tool="nope", arguments={"a": 1}, output="x", error="unknown_tool"),
        Step(tool="bash", arguments={"cmd": "rm"}, output="x", error="invalid_arguments"),
    ]
    replay = replayed(run_of(tmp_path, export, steps), bwrap)
    assert (replay.commands, replay.matched) == (1, 0)
    assert "none" in replay.differences[0].replayed


@pytest.mark.parametrize("query", ["paper", "no such word"])
def test_programs_that_call_the_graph_tools(tmp_path: Path, export: Export, bwrap: Backend, query: str) -> None:
    code = "import sys; sys.path.insert(0, '/attempt'); import kbtools; kb = kbtools.Client('/attempt/kb.sock')"
    command = f"python3 -c \"{code}; print(kb.search('{query}', k=1))\""
    found = Graph(export, Index.open(export)).index.text.search(query, 1)
    expected = search_results(Graph(export, Index.open(export)), query, found, 9_999).text
    run = make_audited_run(
        tmp_path / "run",
        export,
        {"q1": [Attempt([Step(command, f"{expected}")])]},
        mode=load_mode("tools-code").as_dict(),
    )
    replay = replayed(run, bwrap)
    assert (replay.commands, replay.matched, replay.differences) == (1, 1, [])


def test_the_sandboxs_python_is_told(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    sandbox = {"kind": "bwrap", "python": "3.9.1"}
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt([Step("echo a", "a")])]}, sandbox=sandbox)
    replay = replayed(run, bwrap)
    assert replay.as_dict()["python"] == {"recorded": "3.9.1", "replayed": bwrap.describe()["python"]}


def test_recorded_commands_reach_nothing_of_the_host(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    target = tmp_path / "planted"
    steps = [Step(f"echo x > {target}; echo x > /graph/nodes/0000.jsonl; cat {tmp_path}/run/manifest.json", "x")]
    before = (export.files / "nodes/0000.jsonl").read_bytes()
    replay = replayed(run_of(tmp_path, export, steps), bwrap)
    assert not target.exists()
    assert (export.files / "nodes/0000.jsonl").read_bytes() == before
    assert "schema_version" not in replay.differences[0].replayed


def test_a_replay_goes_on_where_it_was(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")], [Step("echo b", "c")], [Step("echo c", "c")])
    whole = replayed(run, bwrap, workers=3)
    store = run / REPLAYS / "bwrap.jsonl"
    lines = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(b"".join(sorted(lines)[:2]) + b'{"torn": ')
    counting = Counting(bwrap)
    again = replayed(run, counting)
    assert counting.opened == 1
    assert again.as_dict() == whole.as_dict()
    assert (again.commands, again.matched) == (3, 2)
    with (run / "trajectories/q3/0-0.jsonl").open("ab") as file:
        file.write(b"\n")  # another trajectory than the one that was replayed
    counting = Counting(bwrap)
    replayed(run, counting)
    assert counting.opened == 1
    counting = Counting(bwrap)
    replay_run(plan_replay(run, "bwrap", again=True), counting)
    assert counting.opened == 3


def test_one_question(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")], [Step("echo b", "b")])
    replay = replayed(run, bwrap, "q2")
    assert [attempt.file for attempt in replay.attempts] == ["trajectories/q2/0-0.jsonl"]
    with pytest.raises(UserError, match="no attempt at question 'q9'"):
        plan_replay(run, "bwrap", ["q9"])


def test_another_export_is_refused_with_both_digests(tmp_path: Path, export: Export) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")])
    manifest = json.loads((run / "manifest.json").read_text())
    recorded = manifest["export"]["digest"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=rf"{export.digest[:12]}, recorded {recorded[:12]}"):
        plan_replay(run, "bwrap")


def test_a_lost_sandbox_is_told_and_tried_again(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")])
    lost = replayed(run, Counting(bwrap, lost=True))
    assert lost.as_dict()["errors"] == [{"file": "trajectories/q1/0-0.jsonl", "error": "SandboxLost: it is gone"}]
    assert replayed(run, bwrap).matched == 1


def test_a_run_folder_that_cant_be_written(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")])
    (run / REPLAYS).write_text("in the way")
    told: list[str] = []
    replay = replay_run(plan_replay(run, "bwrap"), bwrap, notice=told.append)
    assert replay.matched == 1
    assert len(told) == 1
    assert "can't be written" in told[0]


def test_a_missing_trajectory_is_told(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    run = run_of(tmp_path, export, [Step("echo a", "a")], [Step("echo b", "b")])
    shutil.rmtree(run / "trajectories/q1")
    replay = replayed(run, bwrap)
    assert [error["file"] for error in replay.as_dict()["errors"]] == ["trajectories/q1/0-0.jsonl"]
    assert replay.matched == 1
