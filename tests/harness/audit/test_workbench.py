"""Which programs an agent's bash calls run."""

from __future__ import annotations

import pytest

from harness.audit.workbench import GRAPH, SCRATCH, Run, Source, Workbench
from sandbox import contract


def test_the_folders_are_those_of_the_sandbox() -> None:
    assert (GRAPH, SCRATCH) == (contract.GRAPH, contract.SCRATCH)


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'print(1)' a 12",
        "python -u -B -c 'print(1)' a 12",
        "timeout -k 5 60 env A=1 nice -n 5 python3.12 -Wignore -c 'print(1)' a 12",
        "python3 - a 12 <<'E' | head\nprint(1)\nE",
        "python3 <<< 'print(1)'",
        "cat <<E | python3 - a 12\nprint(1)\nE",
        "echo 'print(1)' | tee x.py | python3 - a 12",
        "printf 'print(%s)\\n' 1 | python3 /dev/stdin a 12",
        "cat > x.py <<'E'\nprint(1)\nE\npython3 x.py a 12",
        "cat > x.py << 'E' && python3 x.py a 12\nprint(1)\nE",
        "mkdir -p d; tee d/x.py > /dev/null <<'E'\nprint(1)\nE\ncd d && python3 x.py a 12",
        "echo 'print(1)' > $SCRATCH/x.py; cp x.py y.py; python3 ./y.py a 12",
        "X=x.py; echo 'print(1)' > $X; for f in 1; do python3 < x.py; done",
        "python3 <(echo 'print(1)') a 12",
        "python3 -c \"$(cat <<'E'\nprint(1)\nE\n)\" a 12",
        "bash -c \"python3 -c 'print(1)' a 12\"",
        "eval \"python3 -c 'print(1)'\"",
        "cat > r.sh <<'E'\npython3 -c 'print(1)' \"$@\"\nE\nbash -e r.sh a 12",
        "cat > r.sh <<'E'\nfor i in \"$@\"; do python3 -c 'print(1)' \"$i\"; done\nE\nchmod +x r.sh; ./r.sh a 12",
        "ls | xargs -n 1 -I {} python3 -c 'print(1)' {}",
        "(if true; then python3 -c 'print(1)'; fi) 2>&1 > out.txt",
    ],
)
def test_a_program_is_found(command: str) -> None:
    (run,) = Workbench().read(command).runs
    assert run.source.text.strip() == "print(1)"
    assert run.arguments in ((), ("a", "12"), ("{}",))


def test_arguments_are_known_where_they_are_written() -> None:
    bench = Workbench()
    bench.read("cat > x.py <<'E'\nprint(1)\nE")
    (run,) = bench.read('for i in 18 44; do python3 x.py "$i" -v; done').runs
    assert run == Run(Source("print(1)\n"), "/scratch/x.py", ("18", "44", "-v"))


def test_files_last_from_call_to_call_and_can_change() -> None:
    bench = Workbench()
    bench.read("echo 'a = 1' > x.py; echo 'print(a)' >> x.py")
    (first,) = bench.read("python3 x.py").runs
    (edited,) = bench.read("sed -i 's/1/2/' x.py; python3 x.py").runs
    (unclear,) = bench.read("sed -i 's/a.*/b/' x.py; python3 x.py").runs
    assert first.source.text == "a = 1\nprint(a)\n"
    assert edited.source.text == "a = 2\nprint(a)\n"
    assert unclear.source == Source("a = 2\nprint(a)\n", edits=1)


def test_files_that_a_program_writes() -> None:
    def examine(run: Run) -> list[tuple[str, str]]:
        return [("y.py", "print(2)")] if run.source.text == "write" else []

    writer, written = Workbench(examine).read("python3 -c write; python3 y.py").runs
    assert (writer.path, written.path, written.source.text) == (None, "/scratch/y.py", "print(2)")


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("python3 -m json.tool /graph/schema.json", 1),
        ("rg x /graph | python3", 1),
        ("python3 unknown.py", 1),
        ("cat x > y.py; python3 y.py", 1),
        ("rg python3 /graph", 0),
        ("echo python3 -c 'print(1)'", 0),
    ],
)
def test_what_is_no_program(command: str, calls: int) -> None:
    reading = Workbench().read(command)
    assert (reading.runs, reading.python) == ([], calls)


def test_commands_without_their_wrappers() -> None:
    (command,) = Workbench().read("timeout 5 env -u A B=1 rg -c x $GRAPH/nodes $UNKNOWN < in > out 2>&1").commands
    assert (command.name, command.wrapped_by) == ("rg", ("timeout", "env"))
    assert command.arguments == ("-c", "x", "/graph/nodes", None)
    assert (command.writes, command.reads) == (("/scratch/out",), ("/scratch/in",))


def test_scripts_that_call_themselves_end() -> None:
    bench = Workbench()
    reading = bench.read("echo 'bash r.sh; bash r.sh' > r.sh; bash r.sh")
    assert len(reading.commands) < 200
