"""Known causes of a difference told apart, and what must stay unexplained."""

from __future__ import annotations

import pytest

from harness.replay_causes import CAUSES, explain


@pytest.mark.parametrize(
    ("command", "recorded", "replayed", "cause"),
    [
        ("date", "Mon Nov 30 01:20:11 UTC 2026", "Tue Dec 1 09:00:00 UTC 2026", "time"),
        ("python3 -c 'import time; print(time.time())'", "1795999057.06", "1796000000.9", "time"),
        ("time rg x /graph", "real\t0m0.012s", "real\t0m1.900s", "time"),
        ("ls -l", "-rw-r--r-- 1 u u 5 Nov 30 01:20 a", "-rw-r--r-- 1 u u 5 Dec  1 09:00 a", "time"),
        ("echo pid $$", "pid 14", "pid 2201", "process"),
        ("sleep 9 &", "[1] 33", "[1] 35", "process"),
        ("python3 -c 'print(object())'", "<object at 0x7f1212121212>", "<object at 0x7fabcdef0000>", "address"),
        ("mktemp", "/tmp/tmp.a1B2", "/tmp/tmp.Zz99", "temporary"),
        ("df -h .", "tmpfs  1.0G  20K  1.0G  1% /scratch", "tmpfs  1.0G  4.0M  1.0G  1% /scratch", "disk"),
        ("cat /etc/passwd", "agent:x:1606143919:1606143919::/:/bin/sh", "agent:x:5128:5128::/:/bin/sh", "user"),
        ("id", "uid=7(agent) gid=7(agent)", "uid=90(agent) gid=90(agent)", "user"),
        ("python3 -c 'import os; print(os.getuid())'", "160614", "7112233", "user"),
        ("curl -s x", "curl: no host", "  % Total    % Received x\n     Dload  Upload\n\r  0     0 --:--curl: no host",
         "progress"),
        ("rg x /graph/edges", "a:1\nb:2\nc:3", "c:3\na:1\nb:2", "order"),
        ("python3 -c 'print(set(\"abc\"))'", "{'a', 'b', 'c'}", "{'c', 'a', 'b'}", "order"),
        ("rg x /graph/edges | head -2", "a:1\nb:2", "c:3\na:1", "order, then cut"),
        ("shuf -n 1 x", "a", "b", "random"),
        ("date; rg x /graph", "01:20\na\nb", "09:00\nb\na", "time + order"),
        # Not to be explained away.
        ("cat x", "a\nb", "b\na", None),
        ("cat x", "12:30", "12:31", None),
        ("date", "01:20 four", "09:00 five", None),
        ("rg x /graph", "a\nb", "a\nc", None),
        ("wc -l x", "5 x", "6 x", None),
        ("cat x", "160614", "7112233", None),
        ("rg id x", "id: 5", "id: 6", None),
        ("python3 x.py", "[15, 20]", "[15, 21]", None),
    ],
)  # fmt: skip
def test_causes(command: str, recorded: str, replayed: str, cause: str | None) -> None:
    assert explain(command, (recorded, replayed)) == cause
    assert cause is None or set(cause.split(" + ")) <= set(CAUSES)


def test_tracebacks_of_another_python() -> None:
    head, tail = "x\nTraceback (most recent call last):\n", "KeyError: 'a'"
    old = f'{head}  File "a.py", line 1, in <module>\n    f(x["a"])\n{tail}'
    new = f'{head}  File "a.py", line 1, in <module>\n    f(x["a"])\n      ~^^^^^\n{tail}'
    assert explain("python3 a.py", (old, new)) == "traceback"
    assert explain("python3 a.py", (old, new.replace("'a'", "'b'"))) is None


def test_how_a_call_ended_comes_first() -> None:
    assert explain("cat x", ("a", "b"), terminations=("timeout", "exit")) == "limit"
    assert explain("cat x", ("a", "b"), terminations=("exit", "exit")) is None
    assert explain("cat x", ("a", "b"), terminations=(None, None)) is None


def test_the_whole_output_decides_where_it_is_at_hand() -> None:
    assert explain("cat x", ("a…", "ab…"), (b"abc", b"abc")) == "view"
    assert explain("rg x", ("a…", "b…"), (b"a\nb\nc", b"c\nb\na")) == "order"
    assert explain("cat x", ("a…", "b…"), (b"a\nb\nc", b"c\nb\na")) is None
    assert explain("cat x", ("a…", "ab…"), (b"abc", None)) is None
