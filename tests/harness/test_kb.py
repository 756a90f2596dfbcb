"""The socket that serves the graph tools to an attempt's programs."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
     b"x" * (LONGEST_REQUEST + 1), b"[" * 100_000 + b"\n", b"no line feed"],
    ids=["empty", "list", "binary", "number", "arguments", "long", "deep", "unfinished"],
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


def test_nothing_is_left_behind(calls: list[ClientCall]) -> None:
    server = KbServer(answer, calls.append)
    folder: Path = server.folder
    assert raw(server, b'{"tool": "get_schema", "arguments": {}}\n')
    server.close()
    server.close()
    assert not folder.exists()
