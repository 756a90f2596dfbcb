"""An output that the scratch directory has no room for: the agent sees its ends, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.modes import Output
from harness.observe import Observation, observe, status_of
from harness.spill import Spills
from sandbox import Backend, Limits, Sandbox, Spec
from sandbox.contract import MiB

ENDED = "[ended: its output filled the scratch directory]"


@pytest.fixture
def small(bwrap: Backend) -> Iterator[Sandbox]:
    with bwrap.open(Spec(graph=None, limits=replace(Limits(), scratch=16 * MiB))) as sandbox:
        yield sandbox


def seen(sandbox: Sandbox, command: str, output: Output) -> Observation:
    result = sandbox.exec(command, 60, output.cap)
    return observe(sandbox, Spills(sandbox), result, output, output.cap, status_of(result, 60))


@pytest.mark.parametrize("keep", ["ends", "tail"])
@pytest.mark.parametrize("room", [0, 4])
def test_what_is_left_of_an_output_that_did_not_fit(small: Sandbox, keep: str, room: int) -> None:
    small.exec(f"head -c {(16 - room) * MiB} /dev/zero > a", 60, 1000)
    told = seen(small, "echo first; yes middle | head -c 30M", Output(keep=keep))  # type: ignore[arg-type]
    rows = told.text.split("\n")
    assert rows[0] == ENDED
    assert ("first" in rows) == (keep == "ends")
    assert rows.count("middle") > 1000
    assert (
        sum(
            row.startswith("[... ") and row.endswith(f"left out {'here' if keep == 'ends' else 'above'} ...]")
            for row in rows
        )
        == 1
    )
    assert rows[-1].startswith("[cut: ")
    assert told.cut is not None
    assert (told.spill, told.whole) == (None, None)  # nowhere is the whole of it
    if room:
        beginning = f"its beginning ({told.cut['spilled_bytes']:,} bytes) is in {told.cut['spill']}, the rest is lost]"
        assert rows[-1].endswith(beginning)
        assert small.read(told.cut["spill"], 0, 6).data == b"first\n"
    else:
        assert rows[-1].endswith("the rest is lost: the scratch directory is full]")
        assert told.cut["spill"] is None


def test_a_scratch_directory_that_the_agent_closed_keeps_outputs(small: Sandbox) -> None:
    told = seen(small, "echo first; chmod 000 /scratch; seq 100000", Output())
    assert told.text.startswith("[exit code 0]\nfirst\n")
    assert told.text.endswith("the whole output is in outputs/001.txt]")
