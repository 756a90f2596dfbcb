"""Programs of an attempt, and how well their classes agree with labels given by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.audit.programs import CLASSES, History
from tests.support.labelled import RERUN, as_table, classified, measure, sessions

SHOW = """import json
for l in open('/graph/nodes/0000.jsonl'):
    r = json.loads(l)
    if r['node_id'] == 55: print(r)
"""


def history(*seen: int) -> History:
    return History(set(seen).__contains__)


def test_labels_and_classifier_agree() -> None:
    figures, programs, faults = measure()
    print(as_table(figures), *faults, sep="\n")
    assert programs >= 60
    for name, figure in figures.items():
        assert figure.precision is not None, name
        assert figure.recall is not None, name
        assert figure.precision >= 0.8, (name, faults)
        assert figure.recall >= 0.8, (name, faults)


def test_every_label_is_a_class() -> None:
    labels = {label for calls in sessions().values() for call in calls for line in call.labels for label in line}
    assert labels == {*CLASSES, *RERUN}


def test_the_measure_sees_disagreement(tmp_path: Path) -> None:
    (tmp_path / "a.session").write_text(f"#### command\npython3 - <<'E'\n{SHOW}E\n#### programs\nranking, id_check\n")
    figures, programs, faults = measure(tmp_path)
    assert programs == 1
    assert (figures["ranking"].recall, figures["id_check"].precision, figures["node_scan"].precision) == (0, 1, 0)
    assert faults == ["a, call 1: found ['node_scan'] too much, ['ranking'] missed"]
    (tmp_path / "a.session").write_text("#### command\nls\n#### programs\n-\n")
    assert measure(tmp_path)[2] == ["a, call 1: 1 runs labelled, 0 found"]


def test_earlier_ids_are_those_that_were_seen() -> None:
    command = f"python3 - <<'E'\n{SHOW}E"
    (unseen,), (seen,) = history().bash(command).programs, history(55).bash(command).programs
    assert unseen is not None
    assert seen is not None
    assert seen.classes - unseen.classes == {"earlier_id"}


@pytest.mark.parametrize(("failed", "expected"), [(True, "revises_failure"), (False, "revises_success")])
def test_a_revision_is_told_from_a_rerun(failed: bool, expected: str) -> None:
    attempt = history()
    attempt.bash(f"cat > x.py <<'E'\n{SHOW}E\npython3 x.py")
    attempt.ended(failed=failed)
    assert attempt.bash("python3 x.py").programs == (None,)
    attempt.ended(failed=False)
    (revised,) = attempt.bash(f"cat > y.py <<'E'\n{SHOW}print(5)\nE\npython3 y.py").programs
    (other,) = attempt.bash("python3 -c 'import os; os.listdir()'").programs
    assert revised is not None
    assert other is not None
    assert expected in revised.classes
    assert not other.classes


def test_a_program_given_to_an_interpreter() -> None:
    (program,) = history().python(SHOW).programs
    assert program is not None
    assert program.classes == {"node_scan", "id_check"}
    assert (program.lines, program.python) == (4, True)


def test_an_interpreter_knows_what_earlier_calls_defined() -> None:
    load = "around = {}\nfor line in open('/graph/edges/00.tsv'):\n    a, b = line.split()\n"
    load += "    around.setdefault(int(a), []).append(int(b))"
    attempt = history()
    calls = [load, "near = around[12]", "far = {m for n in near for m in around[n]}", "sorted(far)"]
    found = [program for code in calls for program in attempt.python(code).programs]
    assert [program.classes & {"one_hop", "multi_hop"} for program in found if program] == [
        set(),
        {"one_hop"},
        {"multi_hop"},
        set(),
    ]
    (fresh,) = attempt.bash("python3 -c 'print(around[12])'").programs
    assert fresh is not None
    assert not fresh.classes, "another interpreter"


def test_sessions_are_read_in_order() -> None:
    calls = sessions()["05-failing-first"]
    assert [call.exit_code for call in calls] == [1, 0, 0]
    assert len(classified(calls)) == 3
