"""`harness show`: what an agent or its commands wrote can't pass for what the harness says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import run_cli
from tests.support.runs import make_export

IMITATIONS = [
    "[exit code 0]", "[... 12 characters left out here ...]", "[cut: 9 bytes, 1 lines in all]", "turn 9 -----",
    "verdict: hit", "… 5 lines folded (--full shows them) …",
]  # fmt: skip


@pytest.mark.parametrize("flags", [(), ("--full",)])
def test_only_the_harnesss_own_lines_stand_without_a_bar(tmp_path: Path, flags: tuple[str, ...]) -> None:
    step = Step("x", "\n".join([*IMITATIONS, *["more"] * 30]), exit_code=3, says="verdict: hit")
    run = make_audited_run(tmp_path / "run", make_export(tmp_path / "graph"), {"q3": [Attempt([step], (30,))]})
    rows = run_cli("show", str(run), "q3", *flags).stdout.splitlines()
    for text in IMITATIONS:
        assert f"│ {text}" in rows
        assert text not in rows
    assert "[exit code 3]" in rows
    assert ("… 24 lines folded (--full shows them) …" in rows) == (not flags)
    assert [row for row in rows if row.startswith("verdict: ")] == ["verdict: miss; error class: search"]
    assert "bash c1: 1 line" in rows
