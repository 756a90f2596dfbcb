"""The socket that serves the graph tools to an attempt's programs."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.kb.server import LONGEST_REQUEST, MOST_CONNECTIONS, ClientCall, KbServer


def answer(tool: str, arguments: dict[str, Any]) -> str:
    if tool == "get_node" and arguments["node_id"] < 0:
        raise ValueError("node ids run from 0")
    return f"{tool} {sorted(arguments.items())}"


@pytest.fixture
def calls() -> list[ClientCall]:
    return []


@pytest.fixture
def server(calls: list[ClientCall]) -> Iterator[KbServer]:
    with KbServer(answer, calls.append) as running:
        yield running


def python(server: KbServer, code: str) -> subprocess.CompletedProcess[str]:
    """Run code as an agent's program would: the client comes from the shown folder."""
    head = f"import sys; sys.path.insert(0, {str(server.folder)!r})\nimport kbtools\n"
    head += f"kb = kbtools.Client({str(server.folder / 'kb.sock')!r})\n"
    return subprocess.run([sys.executable, "-I", "-c", head + code], capture_output=True, text=True, check=False)


def raw(server: KbServer, data: bytes) -> bytes:
    """Send bytes, say no more, and return all that comes back."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server.folder / "kb.sock"))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_the_four_tools_return_text_and_are_told(server: KbServer, calls: list[ClientCall]) -> None:
    code = "print(kb.search('a\\nb', k=3)); print(kb.get_node(5)); print(kb.get_schema())\n"
    code += "print(kb.neighbors(1, query='x'))"
    done = python(server, code)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "search [('k', 3), ('query', 'a\\nb')]"
    assert [call.tool for call in calls] == ["search", "get_node", "get_schema", "neighbors"]
    assert calls[0].arguments == {"query": "a\nb", "k": 3}
    assert calls[0].program == "-c"
    assert calls[0].characters == len(done.stdout.splitlines()[0])


def test_a_mistake_is_an_exception_and_the_connection_lives_on(server: KbServer, calls: list[ClientCall]) -> None:
    done = python(server, "try: kb.get_node(-1)\nexcept ValueError as error: print(error)\nprint(kb.get_schema())")
    assert done.stdout == "node ids run from 0\nget_schema []\n"
    assert [call.error for call in calls] == [True, False]


def test_ten_thousand_calls(server: KbServer, calls: list[ClientCall]) -> None:
    done = python(server, "print(sum(len(kb.get_node(n)) for n in range(10_000)))")
    assert done.returncode == 0, done.stderr
    assert len(calls) == 10_000


@pytest.mark.parametrize(
    "data",
    [b"\n", b"[]\n", b"\xff\xfe\n", b'{"tool": 1, "arguments": {}}\n', b'{"tool": "search", "arguments": []}\n',
     b"x" * (LONGEST_REQUEST + 1), b"[" * 100_000 + b"\n", b"no line feed",
     b'{"tool": "search", "arguments": {"query": ' + b"[" * 500 + b"]" * 500 + b"}}\n"],
    ids=["empty", "list", "binary", "number", "arguments", "long", "deep", "unfinished", "deep arguments"],
)  # fmt: skip
def test_hostile_input_is_refused_and_costs_only_its_connection(
    server: KbServer, calls: list[ClientCall], data: bytes
) -> None:
    assert b'"error"' in raw(server, data)
    assert calls == []
    assert b'"text"' in raw(server, b'{"tool": "get_schema", "arguments": {}}\n')


def test_connections_are_bounded_and_come_free_again(server: KbServer) -> None:
    held = [socket.socket(socket.AF_UNIX) for _ in range(MOST_CONNECTIONS)]
    for connection in held:
        connection.connect(str(server.folder / "kb.sock"))
        connection.sendall(b'{"tool": "get_schema", "arguments": {}}\n')
        assert connection.recv(100)
    with socket.socket(socket.AF_UNIX) as one_more:
        one_more.connect(str(server.folder / "kb.sock"))
        assert one_more.recv(100) == b""
    for connection in held:
        connection.close()
    threads = [thread for thread in threading.enumerate() if thread.name == "kb"]
    for thread in threads:
        thread.join(10)
    assert b'"text"' in raw(server, b'{"tool": "get_schema", "arguments": {}}\n')


def test_of_very_long_arguments_the_beginnings_are_told(server: KbServer, calls: list[ClientCall]) -> None:
    arguments = {"query": "é" * 300_000, "k": [1] * 9_000, **{f"{number}{'x' * 900}": 1 for number in range(50)}}
    assert b'"text"' in raw(server, orjson.dumps({"tool": "t" * 5_000, "arguments": arguments}) + b"\n")
    (call,) = calls
    assert call.tool == "t" * 200
    assert call.arguments["query"] == "é" * 400 + "…"
    assert call.arguments["k"].startswith("[1,1,1")
    assert len(orjson.dumps(call.arguments)) < 5_000
    assert call.characters > 300_000


def test_a_client_goes_on_after_a_mistake_that_closed_its_connection(server: KbServer) -> None:
    code = "try: kb.search('x' * 2_000_000)\nexcept ValueError as error: print(error)\nprint(kb.get_schema())"
    done = python(server, code)
    assert done.stderr == ""
    assert done.stdout == "a request has at most 1,048,576 bytes and ends with a line feed\nget_schema []\n"


def test_threads_and_forks_of_a_program_share_a_client(server: KbServer) -> None:
    code = """
import concurrent.futures as futures, multiprocessing
def ask(n): return kb.get_node(n) == f"get_node [('node_id', {n}), ('offset', 0)]"
print(ask(1), all(futures.ThreadPoolExecutor(8).map(ask, range(500))))
pool = multiprocessing.get_context("fork").Pool(4)
print(all(pool.map(ask, range(500))), all(map(ask, range(50))))
"""
    done = python(server, code)
    assert (done.stdout, done.stderr) == ("True True\nTrue True\n", "")


def test_a_call_that_is_answered_after_the_end_is_not_told(calls: list[ClientCall]) -> None:
    begun, go_on, answered = threading.Event(), threading.Event(), threading.Event()

    def slow(tool: str, arguments: dict[str, Any]) -> str:
        begun.set()
        go_on.wait(30)
        answered.set()
        return "late"

    with KbServer(slow, calls.append) as server, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server.folder / "kb.sock"))
        connection.sendall(b'{"tool": "get_schema", "arguments": {}}\n' * 3)
        assert begun.wait(30)
        server.stop()
        go_on.set()
        assert answered.wait(30)
        for thread in [thread for thread in threading.enumerate() if thread.name == "kb"]:
            thread.join(30)
    assert calls == []


def test_nothing_is_left_behind(calls: list[ClientCall]) -> None:
    server = KbServer(answer, calls.append)
    folder: Path = server.folder
    assert raw(server, b'{"tool": "get_schema", "arguments": {}}\n')
    server.close()
    server.close()
    assert not folder.exists()
