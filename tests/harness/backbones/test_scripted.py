from __future__ import annotations

import json

import pytest

from harness.backbones.scripted import ScriptedBackbone
from harness.errors import BackboneError, UserError
from harness.messages import Usage
from tests.support.talk import answer_calls, request, user


def line(content=None, command=None, **rest):
    message = {"role": "assistant", "content": content, **rest}
    if command is not None:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
    return json.dumps(message)


@pytest.fixture
def script(tmp_path):
    def write(*lines: str) -> ScriptedBackbone:
        path = tmp_path / "script.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return ScriptedBackbone(path)

    return write


def converse(model, query_id="q1"):
    """Texts of the whole conversation, to the end of the script."""
    entries, replies = [user()], []
    while not replies or replies[-1].finish == "tool_calls":
        replies.append(model.complete(request(*entries, turn=len(replies) + 1, query_id=query_id)))
        entries += answer_calls(replies[-1])
    return [reply.entry.text for reply in replies]


def test_turns_come_in_order_and_anew_for_each_question(script):
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    model = script(line("one", "ls", usage=usage), "", line("two", "cat x"), line("ANSWER: [1]"))
    assert converse(model, "q1") == converse(model, "q2") == ["one", "two", "ANSWER: [1]"]
    first = model.complete(request())
    assert (first.usage, first.finish) == (Usage(10, None, 2, None), "tool_calls")
    assert json.loads(first.entry.calls[0].arguments) == {"command": "ls"}
    assert first.entry.raw == json.loads(line("one", "ls"))
    assert model.complete(request(user(), *answer_calls(first), turn=2)).usage == Usage()


def test_ids_used_twice_in_a_script_are_told_apart(script):
    model = script(line("one", "ls"), line("two", "ls"), line("end"))
    first = model.complete(request())
    second = model.complete(request(user(), *answer_calls(first), turn=2))
    assert first.entry.calls[0].id == "c" != second.entry.calls[0].id
    assert second.notes[0]["kind"] == "call_id_repeated"


def test_a_question_has_lines_of_its_own_or_the_common_ones(script):
    model = script(line("common"), line("own 1", "ls", query_id="q2"), line("own 2", query_id="q2"))
    assert converse(model, "q1") == ["common"]
    assert converse(model, "q2") == ["own 1", "own 2"]


def test_running_out_says_so(script):
    model = script(line("one", "ls"), line("other", query_id="else"))
    first = model.complete(request())
    with pytest.raises(BackboneError, match=r"script\.jsonl holds 1 turn for 'q1' and one more was asked for"):
        model.complete(request(user(), *answer_calls(first), turn=2))
    with pytest.raises(BackboneError, match="holds 0 turns for 'q1'"):
        script(line("other", query_id="else")).complete(request())


def test_finish_reason_and_malformed_arguments_can_be_scripted(script):
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{broken"}}
    model = script(json.dumps({"role": "assistant", "tool_calls": [call]}), line("cut", finish_reason="length"))
    first = model.complete(request())
    assert first.entry.calls[0].arguments == "{broken"
    assert model.complete(request(user(), *answer_calls(first), turn=2)).finish == "length"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not an object"),
        ('{"role": "user"}', "line 2: role is 'user'"),
        ('{"role": "assistant", "tool_call": []}', "line 2: unknown key 'tool_call'"),
        ('{"role": "assistant", "content": 3}', "line 2: content is int, not str"),
        ('{"role": "assistant", "tool_calls": {}}', "line 2: tool_calls is dict, not list"),
        ('{"role": "assistant", "tool_calls": [{"id": "x"}]}', "line 2: a tool call without function.name"),
        (
            '{"role": "assistant", "tool_calls": [{"function": {"name": "bash", "arguments": {}}}]}',
            "line 2: function.arguments of 'bash' is not text",
        ),
    ],
)
def test_mistakes_name_file_and_line(script, text, says):
    with pytest.raises(UserError, match=says) as error:
        script(line("fine"), text)
    assert "script.jsonl" in str(error.value)


def test_files_that_are_no_script(tmp_path, script):
    with pytest.raises(UserError, match="can't be read"):
        ScriptedBackbone(tmp_path / "absent")
    with pytest.raises(UserError, match="can't be read"):
        ScriptedBackbone(tmp_path)
    with pytest.raises(UserError, match="holds no turns"):
        script("", "")
