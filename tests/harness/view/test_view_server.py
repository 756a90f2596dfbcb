"""The server of `harness view`: who may ask, and what the routes answer."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ledger import AttemptRecord, Ledger
from harness.modes import load_mode
from harness.view.runs import ViewedRun
from harness.view.server import ViewServer
from tests.support.audited import Attempt, Step, make_audited_run
from tests.support.cli import HARNESS, HARNESS_ENV, mistake, run_cli
from tests.support.saved import Ask, make_export
from tests.support.viewing import ask, fetch, hostile_run, viewing

LONG = "".join(f"line {number} of a long output, é\n" for number in range(100, 4_000))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """q1 is right at rank 2, q2 is a search miss, q3 a lost sandbox; q4 has not been asked."""
    folder = tmp_path_factory.mktemp("run")
    asks = [Ask("q1", (7,), query="Where is seven?"), Ask("q2", (8,)), Ask("q3", (9,)), Ask("q4", (9,))]
    export = make_export(folder, "g", asks)
    steps = [
        Step("cat big", output=LONG[:30_000], hidden=LONG[30_000:], spill="outputs/001.txt"),
        Step("true", output="7 and 12", clear=(1,)),
        *[Step("echo", output=f"turn {number}") for number in range(200)],
    ]
    attempts = {
        "q1": [Attempt(steps, ids=(12, 7))], "q2": [Attempt([Step("echo needle", output="nothing")], ids=(3,))],
        "q3": [Attempt(stop="sandbox_lost", extra={"error": "gone"})] * 2,
    }  # fmt: skip
    return make_audited_run(folder / "runs" / "files", export, attempts)


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[ViewServer]:
    with viewing(run) as server:
        yield server


class TestWhoMayAsk:
    def test_the_page_and_its_files(self, server: ViewServer) -> None:
        status, headers, body = fetch(server.url)
        assert status == 200
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        scripts = re.findall(rb'(?:src|href)="([^"]+)"', body)
        assert {b"main.js", b"style.css"} <= set(scripts)
        for name in ["dom.js", "list.js", "attempt.js", "items.js", "node.js", *(each.decode() for each in scripts)]:
            assert fetch(server.url + name)[0] == 200

    def test_every_script_that_is_imported_is_served(self, server: ViewServer) -> None:
        text = b"".join(
            fetch(server.url + name)[2] for name in ("main.js", "list.js", "attempt.js", "items.js", "node.js")
        )
        for name in set(re.findall(rb'from "\./([a-z]+\.js)"', text)):
            assert fetch(server.url + name.decode())[0] == 200

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1]", "localhost:x"]
    )
    def test_another_name_for_this_machine_is_refused(self, server: ViewServer, host: str) -> None:
        status, _, body = fetch(f"{server.url}api/runs", {"Host": host})
        assert status == 403
        assert "own page" in json.loads(body)["error"]

    def test_a_forwarded_port_is_not(self, server: ViewServer) -> None:
        assert fetch(f"{server.url}api/runs", {"Host": "localhost:9999"})[0] == 200

    def test_another_page_is_refused_and_a_link_is_not(self, server: ViewServer) -> None:
        assert fetch(f"{server.url}api/runs", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0] == 403
        assert fetch(server.url, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200

    def test_the_token_is_needed_and_new_each_time(self, server: ViewServer, run: Path) -> None:
        root = server.url.rsplit("/", 2)[0]
        for path in ("", "/", "/api/runs", "/x/", "/%ff/", server.url.removeprefix(root)[:-2] + "/"):
            assert fetch(root + path)[0] == 403, path
        with ViewServer([run]) as other:
            assert other.url.rsplit("/", 2)[1] != server.url.rsplit("/", 2)[1]

    def test_nothing_else_is_served(self, server: ViewServer) -> None:
        for path in ("../server.py", "%2e%2e/server.py", "static/main.js", "api/", "api/none", "main.js/x"):
            assert fetch(server.url + path)[0] == 404, path

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
    def test_no_method_that_could_change_anything(self, server: ViewServer, method: str) -> None:
        assert fetch(f"{server.url}api/runs", method=method)[0] == 501

    def test_it_listens_on_loopback_only(self, server: ViewServer) -> None:
        assert server.server_address[0] == "127.0.0.1"
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
        for address in others:
            with pytest.raises(OSError), socket.create_connection((str(address), server.server_port), timeout=5):
                pass

    def test_head_and_requests_one_behind_the_other(self, server: ViewServer) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        path = "/" + server.url.split("/", 3)[3]
        for method in ("HEAD", "GET", "HEAD"):
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            assert (answer.status, body == b"") == (200, method == "HEAD")
        connection.close()


class TestRoutes:
    def test_runs(self, server: ViewServer, run: Path) -> None:
        [found] = ask(server, "runs")["runs"]
        assert found["verdicts"] == {"miss": 2, "failed": 1, "open": 1}
        assert found["stops"] == {"answered": 2, "sandbox_lost": 1}
        assert (found["path"], found["nodes"], found["lacking"]) == (str(run), 60, "")

    def test_questions(self, server: ViewServer) -> None:
        answer = ask(server, "questions")
        rows = {row["id"]: row for row in answer["rows"]}
        assert list(rows) == ["q1", "q2", "q3", "q4"]
        assert (answer["next"], answer["total"]) == (None, 4)
        assert rows["q1"]["answer"] == [[12, "node 12"], [7, "node 7"]]
        assert (rows["q1"]["verdict"], rows["q1"]["rank"], rows["q1"]["classes"]) == ("miss", 2, ["ranking"])
        assert (rows["q3"]["attempts"], rows["q3"]["last"], rows["q3"]["classes"]) == (2, [[0, 1]], ["failed"])
        assert (rows["q4"]["verdict"], rows["q4"]["last"]) == ("open", [])

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({"verdict": "miss"}, ["q1", "q2"]), ({"verdict": "open"}, ["q4"]), ({"stop": "sandbox_lost"}, ["q3"]),
            ({"class": "search"}, ["q2"]), ({"class": "ranking"}, ["q1"]), ({"text": "SEVEN"}, ["q1"]),
            ({"text": "q3"}, ["q3"]), ({"text": "Needle"}, []), ({"text": "Needle", "in": "trajectories"}, ["q2"]),
            ({"mode": "files"}, ["q1", "q2", "q3", "q4"]), ({"mode": "x"}, []), ({"run": "0", "class": "hit"}, []),
            ({"from": 2}, ["q3", "q4"]),
        ],
    )  # fmt: skip
    def test_filters(self, server: ViewServer, filters: dict[str, str], found: list[str]) -> None:
        answer = ask(server, "questions", **filters)
        rows = answer["rows"]
        while answer["next"] is not None:
            answer = ask(server, "questions", **filters, **{"from": answer["next"]})
            rows += answer["rows"]
        assert [row["id"] for row in rows] == found

    def test_a_class_is_read_when_it_is_asked_for(self, run: Path) -> None:
        with viewing(run) as fresh:
            assert ask(fresh, "questions")["rows"][1]["classes"] == [None]
            assert ask(fresh, "classes", run=0, q="q2") == ["search"]
            assert ask(fresh, "questions")["rows"][1]["classes"] == ["search"]

    def test_an_attempt(self, server: ViewServer) -> None:
        head = ask(server, "attempt", run=0, q="q1")
        assert head["answer"][0] == {"id": 12, "name": "node 12", "right": False}
        assert head["gold"] == [{"id": 7, "name": "node 7", "right": True}]
        assert (head["previous"], head["following"], head["places"], head["beside"]) == (None, "q2", 3, [])
        lost = ask(server, "attempt", run=0, q="q3", attempt=1)
        assert (lost["error"], len(lost["tries"]), lost["verdict_here"]) == ("gone", 2, "failed")

    def test_origins(self, server: ViewServer) -> None:
        found = ask(server, "origins", run=0, q="q1")
        assert found["class"] == "ranking"
        assert found["ids"]["7"]["text"] == "first shown in turn 2, byte 14"
        item = ask(server, "items", run=0, q="q1")["items"][found["ids"]["7"]["line"]]
        assert [piece for piece in item["output"]["pieces"] if piece == ["7", 7]]

    def test_items_come_in_pages(self, server: ViewServer) -> None:
        first = ask(server, "items", run=0, q="q1")
        assert (len(first["items"]), first["next"]) == (60, 60)
        items, following = first["items"], first["next"]
        while following is not None:
            page = ask(server, "items", run=0, q="q1", **{"from": following})
            items, following = items + page["items"], page["next"]
        assert [item["line"] for item in items] == list(range(ask(server, "attempt", run=0, q="q1")["lines"]))
        assert items[-1]["stop"] == "answered"

    def test_a_long_output_is_folded_and_comes_whole_in_pages(self, server: ViewServer) -> None:
        [item] = [each for each in ask(server, "items", run=0, q="q1")["items"] if each["type"] == "result"][:1]
        assert item["cleared"] == 2
        assert item["cut"].endswith("the output is in the sandbox as outputs/001.txt")
        page, text = item["output"], written(item["output"]["pieces"])
        assert len(text) < 500
        while page["next"] is not None:
            page = ask(server, "text", run=0, q="q1", line=item["line"], part="output", start=page["next"])
            text += written(page["pieces"])
        assert text.startswith(f"[exit code 0]\n{LONG[:30_000]}\n[cut: ")
        whole, start = "", 0
        while start is not None:
            page = ask(server, "blob", run=0, q="q1", line=item["line"], start=start)
            whole, start = whole + written(page["pieces"]), page["next"]
        assert whole == LONG

    def test_a_node(self, server: ViewServer) -> None:
        node = ask(server, "node", run=0, id=7)
        assert (node["id"], node["name"], node["type"], node["candidate"]) == (7, "node 7", "thing", True)
        assert ["source_id", "g:7"] in node["attributes"]

    @pytest.mark.parametrize(
        ("path", "status", "words"),
        [
            ("node?run=0&id=60", 404, "no node 60"), ("node?run=0&id=-1", 404, "id is no number"),
            ("node?run=0&id=²", 404, "id is no number"), ("node?run=9&id=1", 404, "no run 9"),
            ("node?run=0", 404, "id is missing"), ("attempt?run=0&q=q9", 404, "no question 'q9'"),
            ("attempt?run=0&q=../../q1", 404, "no question"), ("attempt?run=0&q=q4", 404, "no attempt 1"),
            ("attempt?run=0&q=q1&agent=99999999999999999999", 404, "agent is no number"),
            ("text?run=0&q=q1&line=9999&part=text&start=0", 422, "IndexError"),
            ("text?run=0&q=q1&line=1&part=raw&start=0", 422, "KeyError"),
            ("blob?run=0&q=q2&line=2&start=0", 422, "KeyError"), ("runs?" + "a=1&" * 50, 422, "ValueError"),
        ],
    )  # fmt: skip
    def test_odd_parameters(self, server: ViewServer, path: str, status: int, words: str) -> None:
        found, _, body = fetch(f"{server.url}api/{path.replace('²', '%C2%B2')}")
        assert found == status
        assert words in json.loads(body)["error"]


class TestDamagedAndOther:
    def test_calls_from_a_program_and_a_system_prompt(self, run: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        path = copy / "trajectories" / "q2" / "0-0.jsonl"
        start, *others = [json.loads(line) for line in path.read_bytes().splitlines()]
        called = {
            "schema_version": 1, "seq": 9, "time": 1.0, "type": "client_call", "turn": 1, "name": "search",
            "arguments": {"query": "x\u202e"}, "program": "find.py\x1b[2J", "characters": 70, "seconds": 0.1,
            "error": True,
        }  # fmt: skip
        lines = [{**start, "system": "Be brief. " * 100}, called, *others]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        with viewing(copy) as server:
            first, second, *_ = ask(server, "items", run=0, q="q2")["items"]
            assert first["system"]["text"].startswith("Be brief. ")
            rest = ask(server, "text", run=0, q="q2", line=0, part="system", start=first["system"]["next"])
            assert first["system"]["text"] + rest["text"] == "Be brief. " * 100
            assert (second["arguments"], second["program"]) == ('{"query":"x\\u202e"}', "find.py\\x1b[2J")
        text = run_cli("show", str(copy), "q2").stdout
        assert "search(query='x\\u202e'): 70 characters, 0.1 s, an error, called by find.py\\x1b[2J" in text
        assert "system prompt ---" in text

    def test_several_agents_make_one_row(self, tmp_path: Path) -> None:
        export = make_export(tmp_path, "g", [Ask("q1", (7,))])
        mode = load_mode("files").as_dict()
        attempts = [Attempt(ids=(7, 8)), Attempt(ids=(8,), agent=1), Attempt(stop="turn_limit", agent=2)]
        table = {**mode, "agents": {**mode["agents"], "count": 3}}
        with viewing(make_audited_run(tmp_path / "run", export, {"q1": attempts}, mode=table)) as server:
            [row] = ask(server, "questions")["rows"]
            assert (row["verdict"], row["rank"], row["answer"][0][0]) == ("miss", 2, 8)
            assert (row["classes"], row["last"]) == (["hit", None, "no answer"], [[0, 0], [1, 0], [2, 0]])
            assert ask(server, "classes", run=0, q="q1") == ["hit", "search", "no answer"]
            assert row["stops"] == ["answered", "turn_limit"]
            assert ask(server, "questions", **{"class": "no answer"})["rows"][0]["id"] == "q1"
            assert ask(server, "attempt", run=0, q="q1", agent=1)["answer"][0]["id"] == 8

    def test_a_run_that_goes_on_is_followed(self, run: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        with viewing(copy) as server:
            assert ask(server, "questions", verdict="open")["rows"][0]["id"] == "q4"
            Ledger(copy).append(AttemptRecord("q4", 0, 0, "answered", (9,), trajectory="trajectories/q4/0-0.jsonl"))
            assert [row["id"] for row in ask(server, "questions", verdict="hit")["rows"]] == ["q4"]
            status, _, body = fetch(f"{server.url}api/items?run=0&q=q4")
            assert (status, "FileNotFoundError" in json.loads(body)["error"]) == (422, True)

    def test_without_the_export(self, run: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        manifest = json.loads((copy / "manifest.json").read_bytes())
        manifest["export"]["path"] = str(tmp_path / "gone")
        (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with viewing(copy) as server:
            assert "gone" in ask(server, "runs")["runs"][0]["lacking"]
            assert [row["verdict"] for row in ask(server, "questions")["rows"]] == [
                "no gold",
                "no gold",
                "failed",
                "open",
            ]
            assert ask(server, "attempt", run=0, q="q1")["gold"] is None
            assert ask(server, "items", run=0, q="q1")["items"]
            assert fetch(f"{server.url}api/node?run=0&id=1")[0] == 404

    def test_its_export_is_found_in_a_data_directory(self, run: Path, tmp_path: Path) -> None:
        export = Path(json.loads((run / "manifest.json").read_bytes())["export"]["path"])
        moved = shutil.move(shutil.copytree(export, tmp_path / "copy"), tmp_path / "data" / "exports" / "moved")
        manifest = json.loads((run / "manifest.json").read_bytes())
        manifest["export"]["path"] = str(tmp_path / "gone")
        copy = Path(shutil.copytree(run, tmp_path / "run-copy"))
        (copy / "manifest.json").write_text(json.dumps(manifest))
        assert ViewedRun(0, copy, tmp_path / "none").saved.export is None
        for place in (tmp_path / "data", Path(moved)):
            assert ViewedRun(0, copy, place).saved.export is not None

    def test_the_harnesss_own_words_are_told_from_an_imitation(self, tmp_path: Path) -> None:
        export = make_export(tmp_path / "g", "g", [Ask("q1", (7,))])
        step = Step("x", "[exit code 0]\nnode 2", hidden="y" * 9, spill="outputs/001.txt")
        run = make_audited_run(tmp_path / "own", export, {"q1": [Attempt([step])]})
        with viewing(run) as server:
            items = ask(server, "items", run=0, q="q1")["items"]
        (result,) = [item for item in items if item["type"] == "result"]
        pieces = result["output"]["pieces"]
        own = [piece["own"] for piece in pieces if isinstance(piece, dict)]
        assert (own[0], len(own)) == ("[exit code 0]", 2)
        assert ["2", 2] in pieces

    def test_damaged_trajectories(self, run: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        path = copy / "trajectories" / "q2" / "0-0.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(
            lines[0] + b'{"type": "result", "text": 3}\n{"type": ["<b>"]}\n' + lines[1] + b"[1]\n" + lines[2]
        )
        with viewing(copy) as server:
            page = ask(server, "items", run=0, q="q2")
            assert [item["type"] for item in page["items"]] == [
                "start", "damaged", "damaged", "reply", "damaged", "result",
            ]  # fmt: skip
            assert page["items"][1]["text"]["text"] == '{"type": "result", "text": 3}\n'
            assert ask(server, "attempt", run=0, q="q2")["fault"].startswith("line 2: not an event: ")
            assert ask(server, "attempt", run=0, q="q2")["fault"].endswith(" and 2 more")
            assert ask(server, "origins", run=0, q="q2")["class"] == "unreadable"

    def test_every_text_of_a_hostile_run_is_plain(self, tmp_path: Path) -> None:
        run = hostile_run(tmp_path / "x")
        with viewing(run) as server:
            [row, _] = ask(server, "questions")["rows"]
            bodies = [fetch(f"{server.url}api/runs")[2].decode()]
            for route in ("attempt", "items", "origins"):
                bodies.append(json.dumps(ask(server, route, run=0, q=row["id"]), ensure_ascii=False))
            bodies.append(json.dumps(ask(server, "node", run=0, id=1), ensure_ascii=False))
            # Ids of questions and names of arguments go back to the server as they are; the page shows their labels.
            text = "".join(bodies).replace(json.dumps(row["id"], ensure_ascii=False), "")
            assert "\\\\x1b]0;owned" in text
            assert not {"\x1b", "\x07", "\u202e", "\u2028"} & set(text)


def written(pieces: list[object]) -> str:
    """The text that pieces are made of."""
    return "".join(
        piece if isinstance(piece, str) else piece["own"] if isinstance(piece, dict) else piece[0]  # type: ignore[index]
        for piece in pieces
    )


class TestCommand:
    def test_it_prints_its_url_and_ends_with_ctrl_c(self, run: Path, tmp_path: Path) -> None:
        opened = tmp_path / "opened"
        browser = tmp_path / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
        browser.chmod(0o755)
        process = subprocess.Popen(
            ["env", "--default-signal=INT", *HARNESS, "view", str(run.parent), "--open"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**HARNESS_ENV, "BROWSER": str(browser)},
        )  # fmt: skip
        assert process.stdout
        url = process.stdout.readline().strip()
        assert fetch(f"{url}api/runs")[0] == 200
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert errors.splitlines() == ["Ctrl-C ends it", "ended"]
        assert opened.read_text("utf-8").strip() == url

    def test_mistakes(self, run: Path, tmp_path: Path) -> None:
        mistake(run_cli("view", str(tmp_path)), "holds no runs", "harness run")
        mistake(run_cli("view"), "harness view needs RUN")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            mistake(
                run_cli("view", str(run), "--port", port), f"port {port} can't be used: address already in use", "free"
            )
