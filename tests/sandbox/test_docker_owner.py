"""Labels that tell whether the process that opened a container is gone, with real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sandbox.owner import is_orphan, labels

OWNER = """
import json, sys
from sandbox.owner import labels
print(json.dumps(labels({"run": "r1"})), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Another process that lives until its input ends, and the labels it would give."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
        process.kill()


def edited(found: dict[str, str], part: int, value: str) -> dict[str, str]:
    parts = found["kgshell.owner"].split("/")
    parts[part] = value
    return {**found, "kgshell.owner": "/".join(parts)}


def test_labels_name_the_run() -> None:
    found = labels({"run": "r1", "attempt": "q7/0-0"})
    assert found["kgshell"] == "1"
    assert found["kgshell.run"] == "r1"
    assert found["kgshell.attempt"] == "q7/0-0"


def test_a_living_process_owns_its_containers(other: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    assert not is_orphan(labels({}))
    assert not is_orphan(other[1])


def test_what_a_killed_process_opened_is_an_orphan(other: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    process, found = other
    process.kill()
    process.wait()
    assert is_orphan(found)


def test_a_later_process_with_the_same_pid_is_another(other: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    assert is_orphan(edited(other[1], -1, "1"))


def test_what_was_opened_before_the_last_boot_is_an_orphan() -> None:
    assert is_orphan(edited(labels({}), 1, "11111111-2222-3333-4444-555555555555"))


@pytest.mark.parametrize(("part", "value"), [(0, "another-host"), (2, "pid:[1]")])
def test_a_process_that_cannot_be_seen_from_here_is_left_alone(part: int, value: str) -> None:
    assert not is_orphan(edited(edited(labels({}), -1, "1"), part, value))


@pytest.mark.parametrize("owner", ["", "a/b", "x/y/z/u/not-a-pid/1/7"])
def test_labels_that_are_not_ours_are_left_alone(owner: str) -> None:
    assert not is_orphan({"kgshell": "1", "kgshell.owner": owner})
    assert not is_orphan({})
