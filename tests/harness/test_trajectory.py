"""Trajectories: appended as things happen, readable after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import folder_name, read_events, trajectory_path
from harness.files import write_atomic
from harness.trajectory import TrajectoryWriter


def test_events_are_on_disk_before_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "t" / "0-0.jsonl"
    with TrajectoryWriter(path, tmp_path / "blobs") as log:
        log.write("notice", turn=1, text="tab\t newline\n \N{SNOWMAN}")
        (event,) = read_events(path)
        assert event["text"] == "tab\t newline\n \N{SNOWMAN}"
        log.write("notice", turn=2, text="")
    assert [event["seq"] for event in read_events(path)] == [0, 1]


def test_a_trajectory_is_written_once(tmp_path: Path) -> None:
    TrajectoryWriter(tmp_path / "t.jsonl", tmp_path).close()
    with pytest.raises(FileExistsError):
        TrajectoryWriter(tmp_path / "t.jsonl", tmp_path)


def test_a_torn_last_line_does_not_hide_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path, tmp_path) as log:
        log.write("notice", turn=1, text="whole")
        log.write("notice", turn=2, text="torn")
    path.write_bytes(path.read_bytes()[:-5])
    assert [event["text"] for event in read_events(path)] == ["whole"]


def test_a_bad_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path, tmp_path) as log:
        log.write("notice", turn=1, text="whole")
    path.write_bytes(path.read_bytes() + b"nonsense\n" + path.read_bytes())
    with pytest.raises(ValueError, match=r"t\.jsonl:2"):
        list(read_events(path))


def test_blobs_are_kept_once_by_content(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path / "t.jsonl", tmp_path / "blobs") as log:
        first, again, other = log.blob(b"a"), log.blob(b"a"), log.blob(b"b")
    assert first == again != other
    assert sorted(path.name for path in (tmp_path / "blobs").iterdir()) == sorted([first, other])


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_query_id_is_one_harmless_folder(query_id: str) -> None:
    name = folder_name(query_id)
    assert name not in ("", ".", "..")
    assert "/" not in name
    assert "\0" not in name
    assert len(name.encode()) <= 200
    assert len(trajectory_path(query_id, 0, 0).parts) == 3


@given(st.lists(st.text(max_size=300, alphabet=st.characters(exclude_categories=["Cs"])), unique=True, max_size=30))
def test_different_ids_get_different_folders(ids: list[str]) -> None:
    assert len({folder_name(one) for one in ids}) == len(ids)


def test_a_failed_write_leaves_the_old_content(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")
    with pytest.raises(TypeError):
        write_atomic(target, "text, not bytes")  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
