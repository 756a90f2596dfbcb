"""Servers of `harness view` for tests, and a run whose every text is an attack on the page."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from exporter import Export, export_tables
from harness.modes import load_mode
from harness.view.server import ViewServer
from tests.support.audited import Attempt, Step, make_audited_run

ATTACK = (
    "</pre></script><script>window.pwned=1</script><img src=x onerror=window.pwned=2><svg onload=window.pwned=3>"
    '<iframe srcdoc=\'<script>top.pwned=4</script>\'></iframe>" onmouseover="window.pwned=5" javascript:window.pwned=6 '
    "{{7*7}} ${window.pwned=7} \x1b]0;owned\x07\x1b[2J\x1b[31m\u202edesrever\u2028"
)
HUGE = "x" * 300_000


@contextmanager
def viewing(*runs: Path) -> Iterator[ViewServer]:
    """A server for these runs."""
    with ViewServer(runs) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def fetch(url: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> tuple[int, Message, bytes]:
    """Status, headers and body of an answer, whatever the status."""
    request = urllib.request.Request(url, headers=dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def ask(server: ViewServer, route: str, **parameters: Any) -> Any:
    """A route's JSON."""
    status, _, body = fetch(f"{server.url}api/{route}?{urlencode(parameters)}")
    assert status == 200, body
    return json.loads(body)


def hostile_run(folder: Path) -> Path:
    """A run in which the question, its id, the graph's names, the model's words, tools and outputs are attacks."""
    folder.mkdir(parents=True)
    export = _hostile_export(folder)
    steps = [
        Step(f"echo '{ATTACK}'", output=f"{ATTACK}\n{ATTACK}\nids: 1, 2 and 3", says=ATTACK, hidden=ATTACK * 3,
             spill=ATTACK),
        Step(tool=ATTACK, arguments={ATTACK: ATTACK, "n": {ATTACK: [ATTACK]}}, output=HUGE),
        Step(f"python3 - <<'PY'\n{ATTACK}\n# {HUGE[:20_000]}\nPY", output=f"{ATTACK}\n" * 400, clear=(1,), exit_code=3),
        Step(tool="read", arguments={"path": ATTACK}, output=ATTACK, error="file_error"),
    ]  # fmt: skip
    attempt = Attempt(
        steps, ids=(2, 1), prompt=ATTACK.replace("{", "{{").replace("}", "}}") + "{query}", tools=(ATTACK,),
        extra={"error": ATTACK, "answer": {"repairs": [ATTACK], "rejected": [{"value": ATTACK, "why": "unknown"}]}},
    )  # fmt: skip
    return make_audited_run(
        folder / "run", export, {ATTACK: [attempt], "calm": [Attempt([Step("true")], ids=(3,))]},
        model={"name": ATTACK}, graph=ATTACK, mode={**load_mode("files").as_dict(), "name": ATTACK},
    )  # fmt: skip


def _hostile_export(folder: Path) -> Export:
    nodes = [
        {"id": f"n{number}", "type": ATTACK if number == 1 else "thing", "name": f"{number} {ATTACK}", ATTACK: ATTACK,
         "long": HUGE} for number in range(5)
    ]  # fmt: skip
    queries = [
        {"id": ATTACK, "query": f"{ATTACK} {'y' * 2_000}", "split": "test", "answer_ids": ["n1", "n3"]},
        {"id": "calm", "query": "a calm question", "split": "test", "answer_ids": ["n3"]},
    ]
    for name, rows in (("nodes.jsonl", nodes), ("queries.jsonl", queries)):
        (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "edges.tsv").write_text("source\trelation\ttarget\nn1\tnext\tn2\n", encoding="utf-8")
    return export_tables(
        folder / "nodes.jsonl",
        folder / "edges.tsv",
        folder / "export",
        queries=folder / "queries.jsonl",
        name="hostile",
    )
