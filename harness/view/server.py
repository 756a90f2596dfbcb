"""The server of `harness view`: on this machine's loopback address only, and for those who know the URL's secret.

Every route only reads. A request must name the address it is meant for (a page elsewhere that has its name resolve to
127.0.0.1 doesn't) and carry the token, which is new for each server. The policy sent with the page allows the page's
own script and style files, and no markup made from strings.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from exporter import ExportError
from harness.errors import UserError
from harness.view.api import Api, Parameters
from harness.view.runs import ViewedRun

_Answer = tuple[HTTPStatus, str, bytes]  # with the kind of content

_HOST = "127.0.0.1"
_LOCAL = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?")
_FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("main", "dom", "list", "attempt", "items", "node")
    },
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(ThreadingHTTPServer):
    """Serves runs until it is closed."""

    daemon_threads = True  # a request that is being answered doesn't keep the command from ending

    def __init__(self, runs: Sequence[Path], port: int = 0, data: Path | None = None) -> None:
        """Port 0: any that is free. `data` is as in `recorded_export`.

        Raises UserError for a folder that is no run and for a port that can't be had.
        """
        api = Api([ViewedRun(number, path, data) for number, path in enumerate(runs)])
        self._token = secrets.token_urlsafe(16)
        try:
            super().__init__((_HOST, port), partial(_Handler, api, self._token))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"port {port} can't be used: {reason}", "leave --port out for one that is free") from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{_HOST}:{self.server_port}/{self._token}/"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "kgshell", ""
    timeout = 30  # seconds for a request to arrive

    def __init__(self, api: Api, token: str, *arguments: Any) -> None:
        self._api, self._token = api, token
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer a request for a file of the page or for JSON."""
        status, kind, body = self._answer()
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal keeps the URL in sight."""

    def _answer(self) -> _Answer:
        url = urlsplit(self.path)
        token, _, name = url.path.lstrip("/").partition("/")
        if not self._is_meant_for_us():
            return _refusal(HTTPStatus.FORBIDDEN, "this server answers to its own page only")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return _refusal(HTTPStatus.FORBIDDEN, "the token in the URL is wrong: take the URL that was printed")
        if name in _FILES:
            file, kind = _FILES[name]
            return HTTPStatus.OK, kind, (resources.files("harness.view") / "static" / file).read_bytes()
        if name.removeprefix("api/") in self._api.routes and name.startswith("api/"):
            return self._json(name.removeprefix("api/"), url.query)
        return _refusal(HTTPStatus.NOT_FOUND, "there is no such page")

    def _json(self, route: str, query: str) -> _Answer:
        try:
            given = Parameters(dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20)))
            return HTTPStatus.OK, "application/json", orjson.dumps(self._api.routes[route](given))
        except UserError as error:
            return _refusal(HTTPStatus.NOT_FOUND, str(error))
        except (OSError, ValueError, LookupError, TypeError, ExportError) as error:  # damaged files, odd parameters
            return _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, f"{type(error).__name__}: {error}")

    def _is_meant_for_us(self) -> bool:
        """Whether the request names this machine, by whatever port it is forwarded, and no other page sent it."""
        hosts = self.headers.get_all("Host", [])
        site, kind = self.headers.get("Sec-Fetch-Site", "none"), self.headers.get("Sec-Fetch-Mode")
        ours = len(hosts) == 1 and _LOCAL.fullmatch(hosts[0]) is not None
        return ours and (site in ("none", "same-origin") or kind == "navigate")


def _refusal(status: HTTPStatus, text: str) -> _Answer:
    return status, "application/json", orjson.dumps({"error": text})
