"""The knowledge graph's tools, called from Python. All methods return text.

    import sys; sys.path.insert(0, "/attempt")
    import kbtools
    kb = kbtools.Client("/attempt/kb.sock")
    print(kb.search("mismatch repair", k=10))

This file is shown to the agent; it uses the standard library alone.
"""

import json
import socket
import sys
from typing import BinaryIO, cast


class Client:
    """One connection, opened at the first call. Not for use from several threads at once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def search(self, query: str, k: int = 5) -> str:
        """Nodes that match the query best, by BM25 over names and texts; k is 30 at most."""
        return self._call("search", query=query, k=k)

    def get_node(self, node_id: int, offset: int = 0) -> str:
        """A node's whole record as JSON; a long one goes on at `offset`."""
        return self._call("get_node", node_id=node_id, offset=offset)

    def get_schema(self) -> str:
        """Node types and relations, with counts."""
        return self._call("get_schema")

    def neighbors(self, node_id: int, relation: str = "", node_type: str = "", query: str = "", k: int = 20) -> str:
        """Nodes one step away in either direction; the filters are optional, k is 20 at most."""
        return self._call("neighbors", node_id=node_id, relation=relation, node_type=node_type, query=query, k=k)

    def _call(self, tool: str, **arguments: object) -> str:
        file = self._connection()
        program = sys.argv[0].rpartition("/")[2] or "-"
        request = {"tool": tool, "arguments": arguments, "program": program}
        file.write(json.dumps(request).encode() + b"\n")
        file.flush()
        line = file.readline()
        if not line:
            raise ConnectionError("the knowledge graph closed the connection")
        reply = json.loads(line)
        if "error" in reply:
            raise ValueError(reply["error"])
        return str(reply["text"])

    def _connection(self) -> BinaryIO:
        if self._file is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(self._path)
            self._file = cast("BinaryIO", connection.makefile("rwb"))
        return self._file
