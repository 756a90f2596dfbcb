"""The knowledge graph's tools, called from Python. All methods return text.

    import sys; sys.path.insert(0, "/attempt")
    import kbtools
    kb = kbtools.Client("/attempt/kb.sock")
    print(kb.search("mismatch repair", k=10))

This file is shown to the agent; it uses the standard library alone.
"""

import contextlib
import io
import json
import os
import socket
import sys
import threading
from typing import BinaryIO


class Client:
    """One connection for each process, opened at its first call. Threads may share a client; they take turns."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: socket.socket | None = None
        self._replies: BinaryIO = io.BytesIO()
        self._process = 0  # whose connection it is: one that was forked needs its own
        self._lock = threading.Lock()

    def search(self, query: str, k: int = 5) -> str:
        """Nodes that match the query best, by BM25 over names and texts; k is 30 at most."""
        return self._call("search", query=query, k=k)

    def get_node(self, node_id: int, offset: int = 0) -> str:
        """A node's whole record as JSON; a long one comes in parts, with a note on the `offset` of the next."""
        return self._call("get_node", node_id=node_id, offset=offset)

    def get_schema(self) -> str:
        """Node types and relations, with counts."""
        return self._call("get_schema")

    def neighbors(self, node_id: int, relation: str = "", node_type: str = "", query: str = "", k: int = 20) -> str:
        """Nodes one step away in either direction; the filters are optional, k is 20 at most."""
        return self._call("neighbors", node_id=node_id, relation=relation, node_type=node_type, query=query, k=k)

    def _call(self, tool: str, **arguments: object) -> str:
        program = sys.argv[0].rpartition("/")[2] or "-"
        request = json.dumps({"tool": tool, "arguments": arguments, "program": program}).encode() + b"\n"
        with self._lock:
            line = self._ask(request) or self._ask(request)  # again where a mistake had closed the connection
        if not line:
            raise ConnectionError("the knowledge graph closed the connection")
        reply = json.loads(line)
        if "error" in reply:
            raise ValueError(reply["error"])
        return str(reply["text"])

    def _ask(self, request: bytes) -> bytes:
        """The reply to a request; nothing where the connection turns out to be closed."""
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), os.getpid()
            self._connection.connect(self._path)
            self._replies = self._connection.makefile("rb")
        line = b""
        with contextlib.suppress(OSError):
            self._connection.sendall(request)
        with contextlib.suppress(OSError):  # a request that is refused while it is sent is answered, too
            line = self._replies.readline()
        if not line.endswith(b"\n"):
            self._connection, line = None, b""
        return line
