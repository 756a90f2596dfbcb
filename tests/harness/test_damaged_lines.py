"""A damaged line in the middle of a trajectory costs that line alone, in every command that reads trajectories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from exporter import Export
from harness.backbones.replay import ReplayBackbone
from harness.errors import BackboneError
from harness.events import Reading, trajectory_path
from harness.ledger import read_ledger
from harness.messages import AttemptKey, Request
from harness.results import read_results
from harness.rundir import open_run
from harness.runfiles import read_manifest
from sandbox import Backend
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import mistake, run_cli
from tests.support.runs import QUESTIONS, make_export
from tests.support.saved import tree_digest
from tests.support.viewing import ask, viewing

Q1 = "trajectories/q1/0-0.jsonl"
# What a line can become; each is given the line with its end.
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit": lambda line: bytes([line[0] ^ 1]) + line[1:],
    "cut off": lambda line: line[: len(line) // 2] + b"\n",
    "empty": lambda _: b"\n",
    "NULs": lambda line: b"\0" * (len(line) - 1) + b"\n",
    "not UTF-8": lambda line: line.replace(b"schema", b"sch\xffma"),
    "nested without end": lambda _: b"[" * 100_000 + b"\n",
    "a list": lambda _: b"[1]\n",
    "a number": lambda _: b"7\n",
    "an object": lambda _: b"{}\n",
    "no fields": lambda line: orjson.dumps({"type": orjson.loads(line)["type"]}) + b"\n",
    "an unknown type": lambda line: line.replace(b'"type":"', b'"type":"x', 1),
    "a field of another shape": lambda line: line.replace(b'"time":', b'"time":[1],"was":', 1),
    "a later version": lambda line: line.replace(b'"schema_version":1', b'"schema_version":9', 1),
}
# Lines of `run`'s first attempt: start, reply, result, reply, result, reply, answer, end.
PLACES = {"start": 1, "reply": 2, "result": 3, "last reply": 6, "answer": 7, "end": 8}


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return make_export(tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, export: Export) -> Path:
    """q1 (gold 0 and 2) answers 30, q2 answers 4, its gold; nothing right was shown for q1."""
    attempts = {
        "q1": [Attempt([Step("echo one", "one"), Step("echo two", "two")], (30,))],
        "q2": [Attempt([Step("echo four", "four")], (4,))],
    }
    return make_audited_run(tmp_path_factory.mktemp("sound") / "run", export, attempts)


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


def spoil(run: Path, *numbers: int, by: str = "NULs", file: str = Q1) -> None:
    lines = (run / file).read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = DAMAGES[by](lines[number - 1])
    (run / file).write_bytes(b"".join(lines))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", PLACES)
def test_every_damage_costs_its_line_alone(run: Path, damage: str, place: str) -> None:
    reading = Reading(run / Q1)
    whole = list(reading)
    assert reading.damaged == []
    spoil(run, PLACES[place], by=damage)
    assert list(reading) == [each for each in whole if each[0] != PLACES[place]]
    assert [each.line for each in reading.damaged] == [PLACES[place]]
    assert len(reading.damaged[0].why) < 600


def test_a_lost_line_break_costs_the_two_lines_it_parted(run: Path) -> None:
    lines = (run / Q1).read_bytes().splitlines(keepends=True)
    (run / Q1).write_bytes(b"".join([*lines[:3], lines[3][:-1] + b"\x0b", *lines[4:]]))
    reading = Reading(run / Q1)
    assert [event["type"] for _, event in reading] == ["start", "reply", "result", "reply", "answer", "end"]
    assert [each.line for each in reading.damaged] == [4]
    checked = run_cli("check", str(run))
    assert (checked.code, checked.stdout.count("\n")) == (1, 1)


def test_a_torn_last_line_behind_a_damaged_one_is_no_damage(run: Path) -> None:
    spoil(run, 3)
    (run / Q1).write_bytes((run / Q1).read_bytes()[:-4])
    reading = Reading(run / Q1)
    assert len(list(reading)) == 6
    assert [each.line for each in reading.damaged] == [3]


def test_a_trajectory_of_a_later_version_is_refused_whole(run: Path) -> None:
    spoil(run, *range(1, 9), by="a later version")
    mistake(run_cli("show", str(run), "q1"), "written by a later version of kgshell", "harness check")


@pytest.mark.parametrize("damage", DAMAGES)
def test_show_marks_what_is_missing_and_shows_the_rest(run: Path, damage: str) -> None:
    spoil(run, 3, by=damage)
    done = run_cli("show", str(run), "q1")
    assert done.code == 0, done
    rows = done.stdout.splitlines()
    (mark,) = [at for at, row in enumerate(rows) if row.startswith("line 3 of the trajectory can't be read: ")]
    assert any("│ two" in row for row in rows[mark:])
    assert not any("│ one" in row for row in rows)
    assert "0  node 0  [not shown in what can be read]" in done.stdout
    assert "never shown" not in done.stdout
    assert f"{run}: 1 line of trajectories can't be read and is left out: {Q1}:3\n" in done.stderr
    assert run_cli("show", str(run), "q2").stderr == ""


def test_show_does_so_for_any_line(run: Path, sound: Path) -> None:
    for number in range(1, 9):
        shutil.copy(sound / Q1, run / Q1)
        spoil(run, number)
        done = run_cli("show", str(run), "q1")
        assert done.code == 0, (number, done)
        assert f"line {number} of the trajectory can't be read" in done.stdout
        assert ("two" in done.stdout) or number == 5


def test_the_list_counts_the_lines_that_it_could_not_read(run: Path) -> None:
    spoil(run, 3, 5)
    listed = run_cli("show", str(run))
    assert f"{run}: 2 lines of trajectories can't be read and are left out: {Q1}:3, {Q1}:5\n" in listed.stderr
    assert "can't be read" not in run_cli("show", str(run), "--no-classes").stderr  # reads none


def test_audit_counts_them_and_leaves_out_what_they_may_have_settled(run: Path) -> None:
    before = orjson.loads(run_cli("audit", str(run), "--json").stdout)
    spoil(run, 3)
    done = run_cli("audit", str(run), "--json")
    assert f"1 line of trajectories can't be read and is left out: {Q1}:3\n" in done.stderr
    after = orjson.loads(done.stdout)

    def rows(audit: dict, name: str) -> dict:
        checks = [check for section in audit["sections"].values() for check in section["checks"]]
        (check,) = [check for check in checks if check["name"] == name]
        return {row["label"]: row for row in check["rows"]}

    (damaged,) = rows(after, "damaged_lines").values()
    assert (damaged["count"], damaged["of"]) == (1, 8 + 6)
    (where,) = damaged["examples"]
    assert (where["file"], where["line"]) == (Q1, 3)
    assert rows(after, "faults")[""]["count"] == 0  # a line is lost, nothing else is wrong
    classes = [{line["query_id"]: line["error_class"] for line in audit["list"]} for audit in (before, after)]
    assert classes == [{"q1": "search", "q2": "hit"}, {"q1": "unreadable", "q2": "hit"}]
    calls = [{line["query_id"]: line["calls"] for line in audit["list"]} for audit in (before, after)]
    assert calls == [{"q1": 2, "q2": 1}, {"q1": 1, "q2": 1}]
    assert [rows(audit, "gold_classes")["never seen"]["of"] for audit in (before, after)] == [3, 1]
    assert "lines of trajectories that can't be read" in run_cli("audit", str(run)).stdout


@pytest.mark.parametrize(("lost", "said"), [(5, "selection"), (4, "selection"), (3, "unreadable")])
def test_what_a_readable_line_shows_was_shown(tmp_path: Path, export: Export, lost: int, said: str) -> None:
    """Gold 0 was shown in line 3: losing another line doesn't take that back, losing that one leaves it open."""
    attempts = {"q1": [Attempt([Step("rg x", "0\tnode 0"), Step("ls", "x")], (30,))]}
    run = make_audited_run(tmp_path / "run", export, attempts)
    spoil(run, lost)
    (line,) = orjson.loads(run_cli("audit", str(run), "--json").stdout)["list"]
    assert line["error_class"] == said


def test_scores_and_reports_rest_on_the_ledger(run: Path) -> None:
    scored, reported = (run_cli(*command, str(run)).stdout for command in (("score",), ("report",)))
    spoil(run, *range(1, 9))
    assert run_cli("score", str(run)).stdout == scored
    assert run_cli("report", str(run)).stdout == reported
    assert run_cli("report", str(run), "--format", "html").code == 0
    assert "lines of trajectories that can" in (run / "report.html").read_text(encoding="utf-8")


def test_a_condition_on_calls_counts_what_can_be_read_and_says_so(run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))
    spoil(run, 3)
    assert read_results(run).field("calls.bash", "q1") == 1
    done = run_cli("compare", str(run), str(other), "--where", "calls.bash >= 1")
    assert done.code == 0, done
    assert f"{run}: 1 line of trajectories can't be read" in done.stderr
    assert f"{other}: 1 line" not in done.stderr


def test_convert_leaves_out_or_marks_and_says_so(run: Path, tmp_path: Path) -> None:
    spoil(run, 3)
    told = f"{run}: 1 line of trajectories can't be read and is left out: {Q1}:3\n"
    atif = run_cli("convert", str(run), "--to", "atif", "--out", str(tmp_path / "atif"))
    assert (atif.code, told in atif.stderr) == (0, True)
    assert json.loads((tmp_path / "atif/q1/0-0.json").read_bytes())["extra"]["damaged_lines"] == [3]
    assert "damaged_lines" not in json.loads((tmp_path / "atif/q2/0-0.json").read_bytes())["extra"]
    log = run_cli("convert", str(run), "--to", "inspect", "--out", str(tmp_path / "log.json"))
    assert (log.code, told in log.stderr) == (0, True)
    samples = {each["id"]: each for each in json.loads((tmp_path / "log.json").read_bytes())["samples"]}
    assert samples["q1"]["metadata"]["damaged_lines"] == [3]
    chat = run_cli("convert", str(run), "--to", "messages", "--out", str(tmp_path / "chat.jsonl"))
    assert (chat.code, told in chat.stderr) == (0, True)
    assert "1 attempt not written, for lines that can't be read" in chat.stderr
    kept = [json.loads(row)["metadata"]["query_id"] for row in (tmp_path / "chat.jsonl").read_bytes().splitlines()]
    assert kept == ["q2"]


@pytest.mark.parametrize("form", ["atif", "inspect", "messages"])
def test_an_attempt_whose_task_is_lost_is_not_converted(run: Path, tmp_path: Path, form: str) -> None:
    spoil(run, 1)
    done = run_cli("convert", str(run), "--to", form, "--out", str(tmp_path / "out"))
    assert (done.code, done.stdout) == (0, f"{tmp_path / 'out'}: 1 attempt\n")
    assert f"{Q1}:1" in done.stderr
    assert "1 attempt not written" in done.stderr


def test_view_shows_the_lines_around(run: Path) -> None:
    spoil(run, 3, by="cut off")
    with viewing(run) as server:
        types = [item["type"] for item in ask(server, "items", run=0, q="q1")["items"]]
        assert types == ["start", "reply", "damaged", "reply", "result", "reply", "answer", "end"]
        attempt = ask(server, "attempt", run=0, q="q1")
        assert attempt["fault"].startswith("line 3: not JSON")
        assert attempt["lines"] == 8


def test_replay_runs_what_is_left(run: Path, bwrap: Backend) -> None:
    spoil(run, 3)
    done = run_cli("replay", str(run), "--sandbox", "bwrap", "--json")
    assert done.code == 1, done
    replay = orjson.loads(done.stdout)
    assert replay["damaged"] == [f"{Q1}:3"]
    assert (replay["commands"], replay["errors"]) == (2, [])
    assert f"{Q1}:3" in done.stderr
    again = orjson.loads(run_cli("replay", str(run), "--sandbox", "bwrap", "--json").stdout)
    assert again == replay  # kept in the run folder with what is damaged


def test_what_rests_on_a_lost_command_differs_for_a_known_cause(tmp_path: Path, export: Export, bwrap: Backend) -> None:
    steps = [Step("echo one > note", ""), Step("cat note", "one\n")]
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt(steps, (30,))]})
    spoil(run, 3)
    replay = orjson.loads(run_cli("replay", str(run), "--sandbox", bwrap.kind, "--json").stdout)
    assert [each["cause"] for each in replay["differences"]] == ["damaged"]


@pytest.mark.parametrize(("lost", "said"), [(3, ""), (7, ""), (4, "turn 2 lacks its reply"), (2, "turn 1 lacks")])
def test_a_recording_is_said_again_where_no_reply_is_lost(run: Path, lost: int, said: str) -> None:
    spoil(run, lost)
    query = next(event["query"] for _, event in Reading(run / Q1))
    notes: list[str] = []
    model = ReplayBackbone("replay", [run / Q1], notes.append)
    asked = Request(AttemptKey("q1", 0, 0), 1, query, (), (), "auto")
    if said:
        with pytest.raises(BackboneError, match=f"line {lost}: .*{said}"):
            model.complete(asked)
    else:
        assert model.complete(asked).entry.calls[0].name == "bash"
        assert notes == [f"recording '{run / Q1}': 1 line can't be read"]


def test_a_recording_whose_task_is_lost_is_left_out_of_a_replay(run: Path) -> None:
    spoil(run, 1)
    notes: list[str] = []
    model = ReplayBackbone("replay", sorted(run.glob("trajectories/*/*.jsonl")), notes.append)
    assert [model.knows(question["id"], question["query"]) for question in QUESTIONS[:2]] == [False, True]
    assert [note.startswith(f"recording '{run / Q1}' is left out: line 1: not JSON") for note in notes] == [True]


def test_check_names_every_damaged_line(run: Path) -> None:
    spoil(run, 2, 5)
    spoil(run, 3, by="no fields", file="trajectories/q2/0-0.jsonl")
    done = run_cli("check", str(run))
    assert done.code == 1
    assert [row.split(": ")[0] for row in done.stdout.splitlines()] == [
        f"{Q1}:2",
        f"{Q1}:5",
        "trajectories/q2/0-0.jsonl:3",
    ]


@pytest.mark.parametrize("lost", [1, 2, 3, 4, 5])
def test_an_attempt_in_flight_with_a_damaged_line_is_ledgered_once(tmp_path: Path, export: Export, lost: int) -> None:
    """A crash that left a torn end, and before it a line that can't be read: also the one that names the attempt."""
    run = make_audited_run(tmp_path / "run", export, {"q1": [Attempt([Step("a"), Step("b")], (0,))]}, unledgered=["q1"])
    lines = (run / Q1).read_bytes().splitlines(keepends=True)
    (run / Q1).write_bytes(b"".join([*lines[:5], lines[5][:20]]))
    spoil(run, lost)
    before = (run / Q1).read_bytes()
    for expected in (1, 0):
        with open_run(run, read_manifest(run), resume=True) as folder:
            assert len(folder.recover()) == expected
    (record,) = read_ledger(run)
    assert (record.query_id, record.agent, record.attempt, record.stop_reason) == ("q1", 0, 0, "interrupted")
    assert record.error == "in flight at a crash; 1 line of its trajectory can't be read"
    assert record.trajectory == str(trajectory_path("q1", 0, 0))
    assert (run / Q1).read_bytes() == before


def test_reading_changes_nothing(run: Path) -> None:
    spoil(run, 3, 5)
    before = tree_digest(run)
    for command in (("show", str(run), "q1"), ("show", str(run)), ("audit", str(run)), ("check", str(run))):
        run_cli(*command)
    assert tree_digest(run) == before
