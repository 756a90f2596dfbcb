"""What a call returns: exit codes, output and its cuts, the whole output spilled."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox import Sandbox, SandboxFileError
from tests.support.sandboxes import run, still_works, text


def test_exit_code_and_merged_streams(shared: Sandbox) -> None:
    result = run(shared, "echo one; echo two >&2; echo three; exit 3")
    assert (result.termination, result.exit_code) == ("exit", 3)
    assert (result.head, result.tail, result.spill) == (b"one\ntwo\nthree\n", b"", None)
    assert (result.total_bytes, result.lines, result.spilled_bytes) == (14, 3, 0)


@pytest.mark.parametrize(
    ("command", "lines"), [("true", 0), ("printf a", 1), ("printf 'a\\n'", 1), ("printf '\\n\\nb'", 3)]
)
def test_an_unfinished_last_line_counts(shared: Sandbox, command: str, lines: int) -> None:
    assert run(shared, command).lines == lines


def test_each_call_is_a_fresh_shell_in_scratch(shared: Sandbox) -> None:
    run(shared, "cd /tmp; X=1; export Y=2; f() { :; }; echo kept > kept.txt; echo scratch > ~/in-scratch.txt; umask 0")
    assert text(shared, "pwd; echo [$X$Y]; umask; cat in-scratch.txt; cat /tmp/kept.txt") == (
        "/scratch\n[]\n0022\nscratch\nkept\n"
    )
    assert run(shared, "f").exit_code == 127


def test_errors_of_the_shell_name_the_command(shared: Sandbox) -> None:
    assert run(shared, "true\nnosuch").head == b"/sandbox/command: line 2: nosuch: command not found\n"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat <<'E'\n$HOME `x` \"'\nE\necho $((1+1))", "$HOME `x` \"'\n2\n"),
        ("cat <<E\n$SCRATCH\nE", "/scratch\n"),
        ("printf '%s|' \"a b\" 'c\"d' $'e\\tf' g\\ h '\\'", 'a b|c"d|e\tf|g h|\\|'),
        ("echo 'æ 中 🧬'", "æ 中 🧬\n"),
        ("echo a \\\n  b", "a b\n"),
        ("echo x # comment", "x\n"),
        pytest.param("python3 - <<'E'\nprint('''a\"b'c''')\nE", "a\"b'c\n", marks=pytest.mark.all_programs),
        ("", ""),
        ("\n\n", ""),
        ("echo a\r", "a\r\n"),
        ("! false && echo yes; [[ a == a* ]] && echo glob; echo {1..3}", "yes\nglob\n1 2 3\n"),
        ("mapfile -t x < <(echo 1; echo 2); echo ${#x[@]}", "2\n"),
    ],
)
def test_a_command_arrives_as_it_was_written(shared: Sandbox, command: str, output: str) -> None:
    assert text(shared, command) == output


def test_a_syntax_error_is_the_commands_own(shared: Sandbox) -> None:
    result = run(shared, "echo before\nif then")
    assert result.exit_code == 2
    assert result.head.startswith(b"before\n")
    assert b"syntax error" in result.head


def test_a_command_of_300_kilobytes(shared: Sandbox) -> None:
    body = "x" * 300_000
    assert text(shared, f"cat > big.txt <<'E'\n{body}\nE\nwc -c < big.txt") == "300001\n"


def test_a_nul_byte_is_refused(shared: Sandbox) -> None:
    with pytest.raises(ValueError, match="NUL"):
        run(shared, "echo a\0b")
    assert still_works(shared)


def test_text_that_is_not_unicode_is_refused(shared: Sandbox) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        run(shared, "echo \ud800")
    assert still_works(shared)


@pytest.mark.parametrize("command", ["cat", "read x; echo $?", "python3", "sort", "bash", "cat /dev/stdin", "rg x -"])
def test_nothing_waits_for_input(shared: Sandbox, command: str) -> None:
    assert run(shared, command, timeout=30).termination == "exit"


def test_reopening_stdout_cuts_nothing(shared: Sandbox) -> None:
    assert text(shared, "echo a; echo b > /dev/stdout; echo c >> /dev/stderr; echo d | tee /dev/stderr; echo e") == (
        "a\nb\nc\nd\nd\ne\n"
    )


def test_binary_output_is_kept_byte_for_byte(shared: Sandbox) -> None:
    data = bytes(range(256)) * 40 + b"\xff\xfe\xc3(\x00"
    shared.write("binary", data)
    result = run(shared, "cat binary")
    assert (result.head, result.tail) == (data, b"")


def test_killed_by_its_own_signal(shared: Sandbox) -> None:
    killed = run(shared, "echo x; kill -9 $$; echo never")
    assert (killed.termination, killed.exit_code, killed.head) == ("killed", 137, b"x\n")
    assert run(shared, "kill -TERM $$").exit_code == 143
    only_a_child = run(shared, "bash -c 'kill -9 $$'; exit $?")
    assert (only_a_child.termination, only_a_child.exit_code) == ("exit", 137)


def test_one_line_of_50_megabytes(shared: Sandbox) -> None:
    result = run(shared, "head -c 50000000 /dev/zero | tr '\\0' x; echo -n END", cap=2000)
    assert (result.total_bytes, result.lines, result.spilled_bytes) == (50_000_003, 1, 50_000_003)
    assert (result.head, result.tail) == (b"x" * 1000, b"x" * 997 + b"END")
    assert result.spill is not None
    assert text(shared, f"wc -c < {result.spill}; tail -c 4 {result.spill}; rm {result.spill}") == "50000003\nxEND"


def test_spills_get_names_one_after_the_other(sandbox: Sandbox) -> None:
    assert [run(sandbox, "seq 1000", cap=10).spill for _ in range(3)] == [
        "outputs/001.txt",
        "outputs/002.txt",
        "outputs/003.txt",
    ]
    assert run(sandbox, "seq 3", cap=10).spill is None
    sandbox.write("outputs/004.txt", b"the harness's own")
    assert run(sandbox, "seq 1000", cap=10).spill == "outputs/005.txt"
    assert sandbox.read("outputs/004.txt", 0, 100).data == b"the harness's own"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    piece=st.binary(min_size=1, max_size=300),
    size=st.integers(0, 5000),
    cap=st.one_of(st.integers(0, 50), st.integers(0, 6000)),
)
def test_head_tail_and_spill_are_the_output(shared: Sandbox, piece: bytes, size: int, cap: int) -> None:
    data = (piece * (size // len(piece) + 1))[:size]
    shared.write("data", data)
    result = run(shared, "cat data", cap=cap)
    assert (result.termination, result.exit_code, result.total_bytes) == ("exit", 0, size)
    assert result.lines == data.count(b"\n") + (not data.endswith(b"\n") and size > 0)
    if size <= cap:
        assert (result.head, result.tail, result.spill) == (data, b"", None)
        return
    assert len(result.head) == cap // 2
    assert len(result.head) + len(result.tail) == cap
    assert data.startswith(result.head)
    assert data.endswith(result.tail)
    assert result.spill is not None
    assert result.spilled_bytes == size
    whole = shared.read(result.spill, 0, size + 1)
    assert (whole.data, whole.size) == (data, size)


@pytest.fixture(scope="module")
def numbers() -> bytes:
    """The lines that `seq 3000000` prints."""
    return b"".join(b"%d\n" % number for number in range(1, 3_000_001))


@pytest.mark.parametrize("cap", [1000, 20_000, 99_999, 3_000_001])
def test_a_large_output_is_whole_in_its_spill(shared: Sandbox, numbers: bytes, cap: int) -> None:
    result = run(shared, "seq 1000000; sleep 0.01; seq 1000001 3000000", cap=cap)
    assert (result.total_bytes, result.lines) == (len(numbers), 3_000_000)
    assert result.head == numbers[: cap // 2]
    assert result.tail == numbers[-(cap - cap // 2) :]
    digest = text(shared, f"sha256sum {result.spill}; rm {result.spill}").split()[0]
    assert digest == hashlib.sha256(numbers).hexdigest()


def test_writers_that_share_the_output_lose_nothing(shared: Sandbox) -> None:
    result = run(shared, "for i in 1 2 3 4 5 6 7 8; do seq 20000 & done; wait", cap=100)
    assert result.lines == 160_000


@pytest.mark.all_programs
def test_time_and_memory_are_told(shared: Sandbox) -> None:
    result = run(shared, "python3 -c 'x = bytearray(300_000_000); sum(range(3_000_000))'")
    assert result.memory >= 300_000_000
    assert 0 < result.cpu < 60
    assert result.wall > 0


def test_a_cap_out_of_bounds_is_refused(shared: Sandbox) -> None:
    for cap in (-1, 2**40):
        with pytest.raises(ValueError, match="cap"):
            run(shared, "true", cap=cap)
    for timeout in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            run(shared, "true", timeout=timeout)
    assert still_works(shared)


def test_a_timeout_without_end_is_a_long_one(shared: Sandbox) -> None:
    assert run(shared, "echo x", timeout=float("inf")).head == b"x\n"


def test_a_file_error_leaves_the_sandbox_alive(shared: Sandbox) -> None:
    with pytest.raises(SandboxFileError):
        shared.read("nosuchfile", 0, 10)
    assert still_works(shared)
