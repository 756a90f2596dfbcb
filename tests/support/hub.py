"""A dataset repository on loopback HTTP, in the form of the Hugging Face API that huggingface_hub downloads from."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_BLOB = "/blobs/"  # where large files are redirected to, as to a content delivery network


@dataclass
class Hub:
    """What is served, and what was asked for: (method, path, Range header or None).

    `cut` closes the connection after so many bytes of a large file, `times` times. `status` answers everything with
    that error. With `wrong`, large files come with a byte changed.
    """

    tree: Path
    repository: str
    revision: str
    url: str = ""
    cut: int = 0
    times: int = 0
    status: int = 0
    wrong: bool = False
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)

    def downloads(self, name: str) -> list[str | None]:
        """Range headers of the requests for the content of a file."""
        return [ranged for method, path, ranged in self.asked if method == "GET" and path.endswith(name)]


@contextmanager
def serve(tree: Path, repository: str, revision: str) -> Iterator[Hub]:
    """Serve `tree` as the dataset `repository` at `revision` until the block ends."""
    hub = Hub(tree, repository, revision)

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def _answer(self) -> None:
        hub, path = self.served, unquote(self.path)
        hub.asked.append((self.command, path, self.headers.get("Range")))
        if hub.status:
            self._error(hub.status, "")
            return
        if path.startswith(_BLOB):
            self._content(hub.tree / path.removeprefix(_BLOB))
            return
        if path.startswith("/api/"):
            self._listing(path)
            return
        found = re.fullmatch(rf"/datasets/{hub.repository}/resolve/([^/]+)/(.+)", path)
        if not found:
            self._error(404, "RepoNotFound")
        elif found[1] != hub.revision:
            self._error(404, "RevisionNotFound")
        elif not (hub.tree / found[2]).is_file():
            self._error(404, "EntryNotFound")
        elif found[2].endswith(".zip"):
            self._redirect(found[2])
        else:
            self._content(hub.tree / found[2])

    def _listing(self, path: str) -> None:
        """What snapshot_download asks first: the repository's files."""
        files = sorted(file for file in self.served.tree.rglob("*") if file.is_file())
        names = [file.relative_to(self.served.tree).as_posix() for file in files]
        if "/tree/" in path:
            listed: Any = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": "0" * 40}
                for name, file in zip(names, files, strict=True)
            ]
        else:
            listed = {"id": self.served.repository, "sha": self.served.revision}
            listed["siblings"] = [{"rfilename": name} for name in names]
        body = json.dumps(listed).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _redirect(self, name: str) -> None:
        data = (self.served.tree / name).read_bytes()
        self.send_response(302)
        elsewhere = self.served.url.replace("127.0.0.1", "localhost")  # another host to the client, as a CDN is
        self.send_header("Location", f"{elsewhere}{_BLOB}{name}")
        self.send_header("X-Repo-Commit", self.served.revision)
        self.send_header("X-Linked-Size", str(len(data)))
        self.send_header("X-Linked-ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _content(self, file: Path) -> None:
        hub, data = self.served, file.read_bytes()
        total, start = len(data), 0
        ranged = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if ranged:
            start = int(ranged[1])
        data = data[start:]
        self.send_response(206 if ranged else 200)
        if ranged:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.send_header("X-Repo-Commit", hub.revision)
        self.send_header("ETag", f'"{hashlib.sha1(file.read_bytes()).hexdigest()}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if file.suffix == ".zip" and hub.times:
            hub.times -= 1
            data = data[: hub.cut]
            self.close_connection = True
        if file.suffix == ".zip" and hub.wrong:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.wfile.write(data)
