"""A program types what a person would, through a pipe."""

from __future__ import annotations

import json
import os
import threading

import pytest

from harness.backbones.manual import HELP, ManualBackbone
from harness.errors import BackboneError
from harness.messages import ToolSpec
from tests.support.talk import TOOLS, answer_calls, request, user


class Typist:
    """Feeds lines to a manual model and keeps what it shows."""

    def __init__(self) -> None:
        source, self._sink = os.pipe()
        self.shown: list[str] = []
        self.model = ManualBackbone(source, self.shown.append)
        self._source = source

    def turn(self, text: str, *entries, end: bool = False, **values):
        if text:
            os.write(self._sink, text.encode())
        if end:
            os.close(self._sink)
            self._sink = -1
        return self.model.complete(request(*entries, **values))

    @property
    def screen(self) -> str:
        return "".join(self.shown)

    def close(self) -> None:
        os.close(self._source)
        if self._sink >= 0:
            os.close(self._sink)


@pytest.fixture
def typist():
    made = Typist()
    yield made
    made.close()


def only_call(reply):
    (call,) = reply.entry.calls
    return call.name, json.loads(call.arguments)


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        ("ls /graph | head\n", ("bash", {"command": "ls /graph | head"})),
        ("\n\n  echo hi\n", ("bash", {"command": "  echo hi"})),
        ("ls\r\n", ("bash", {"command": "ls"})),
        (
            "<<END\npython3 - <<'EOF'\nprint(1)\nEOF\n\nEND\n",
            ("bash", {"command": "python3 - <<'EOF'\nprint(1)\nEOF\n"}),
        ),
        ("cat <<X\n", ("bash", {"command": "cat <<X"})),
        ("read outputs/001.txt\n", ("read", {"path": "outputs/001.txt"})),
        ("read 'a b' 10 200\n", ("read", {"path": "a b", "offset": 10, "limit": 200})),
        ("!timeout 5\nsleep 9\n", ("bash", {"command": "sleep 9", "timeout": 5.0})),
        ('!call read {"path": "x", "limit": 3}\n', ("read", {"path": "x", "limit": 3})),
        ("echo grüße\n", ("bash", {"command": "echo grüße"})),
    ],
)
def test_ways_to_type_a_call(typist, typed, call):
    reply = typist.turn(typed)
    assert only_call(reply) == call
    assert (reply.finish, reply.notes) == ("tool_calls", ())
    assert reply.entry.raw["tool_calls"][0]["id"] == reply.entry.calls[0].id


def test_a_command_from_a_file(typist, tmp_path):
    path = tmp_path / "find.sh"
    path.write_text("#!/bin/bash\nls\n")
    assert only_call(typist.turn(f"!file {path}\n")) == ("bash", {"command": "#!/bin/bash\nls\n"})


def test_words_go_with_the_call_and_with_the_answer(typist):
    first = typist.turn("# first look\n# at the schema\ncat schema.json\n")
    assert first.entry.text == "first look\nat the schema"
    last = typist.turn("# sure of it\nANSWER: [3, 4]\n", user(), *answer_calls(first), turn=2)
    assert (last.entry.text, last.finish, last.entry.calls) == ("sure of it\nANSWER: [3, 4]", "stop", ())


def test_what_is_new_is_shown_once(typist):
    first = typist.turn("ls\n", user("PROMPT"))
    assert "question q1" in typist.screen and "PROMPT" in typist.screen and "tools: bash, read" in typist.screen
    typist.shown.clear()
    typist.turn("pwd\n", user("PROMPT"), *answer_calls(first, ["RESULT"]), user("NOTE"), turn=2)
    assert "RESULT" in typist.screen and "NOTE" in typist.screen and "turn 2>" in typist.screen
    assert "PROMPT" not in typist.screen


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("!fiel x\n", "no such entry: !fiel"),
        ("!file /nowhere/at/all\n", "can't read '/nowhere/at/all'"),
        ("!timeout soon\n", "!timeout SECONDS"),
        ("read x y\n", r"read PATH [OFFSET [LIMIT]]"),
        ("read 'x\n", r"read PATH [OFFSET [LIMIT]]"),
        ("read\n", r"read PATH [OFFSET [LIMIT]]"),
        ("!call search {broken\n", "not JSON"),
        ("!call search [1]\n", "!call NAME"),
        ("!call search {}\n", "there is no tool 'search' now; tools: bash, read"),
        ("!help\n", HELP),
    ],
)
def test_slips_are_told_and_asked_again(typist, typed, says):
    assert only_call(typist.turn(f"{typed}echo ok\n")) == ("bash", {"command": "echo ok"})
    assert says in typist.screen
    assert typist.screen.count("turn 1>") == 2


def test_tools_that_are_not_offered_can_not_be_called(typist):
    search = ToolSpec("search", "", {})
    assert only_call(typist.turn('ls\n!call search {"q": 1}\n', tools=(search,))) == ("search", {"q": 1})
    assert "there is no tool 'bash' now; tools: search" in typist.screen
    assert typist.turn("ls\nANSWER: [1]\n", tools=TOOLS, tool_choice="none").finish == "stop"
    assert "tools: none" in typist.screen


def test_commands_may_be_sent_ahead_and_the_end_ends_the_attempt(typist):
    first = typist.turn("ls\npwd\nANSWER: [1]", end=True)
    entries = [user(), *answer_calls(first)]
    second = typist.turn("", *entries, turn=2)
    assert only_call(second) == ("bash", {"command": "pwd"})
    entries += answer_calls(second)
    assert typist.turn("", *entries, turn=3).entry.text == "ANSWER: [1]"
    with pytest.raises(BackboneError, match="has ended"):
        typist.turn("", turn=1)


def test_one_person_answers_one_request_at_a_time(typist):
    replies = []

    def work(query_id):
        replies.append(typist.model.complete(request(query_id=query_id)))

    threads = [threading.Thread(target=work, args=(f"q{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    os.write(typist._sink, b"ANSWER: [0]\nANSWER: [1]\nANSWER: [2]\n")
    for thread in threads:
        thread.join(60)
    assert sorted(reply.entry.text for reply in replies) == ["ANSWER: [0]", "ANSWER: [1]", "ANSWER: [2]"]
    shown = typist.screen
    assert shown.count("=== question") == 3
    assert all(part.count("turn 1>") == 1 for part in shown.split("=== question")[1:])
