"""Streams put together."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backbones.faults import Trouble
from harness.backbones.sse import chat_completion, events, is_stream, response


def stream(*chunks, end="data: [DONE]\n\n"):
    return ("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + end).encode()


def delta(finish=None, **fields):
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def message(*chunks):
    (choice,) = chat_completion(stream(*chunks, delta("stop")))["choices"]
    return choice["message"]


def test_events_with_comments_names_and_any_line_ends():
    data = b': ping\r\n\r\nevent: x\r\ndata: {"a":\r\ndata: 1}\r\n\r\ndata:{"b": 2}\n\nid: 3\n\ndata: [DONE]\n\n'
    assert list(events(data)) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("data", "is_one"),
    [(b"data: {}", True), (b"\n\nevent: x\n", True), (b": hi\n", True), (b'{"data": 1}', False), (b"", False)],
)
def test_what_is_a_stream(data, is_one):
    assert is_stream(data) is is_one


def test_texts_are_appended_and_the_last_usage_holds():
    whole = chat_completion(
        stream(
            {**delta(role="assistant", content=""), "usage": {"prompt_tokens": 1}},
            delta(reasoning_content="h"),
            delta(reasoning_content="m"),
            delta(role="assistant", content="ANS"),
            delta("stop", content="WER"),
            {"choices": [], "usage": {"prompt_tokens": 9}},
        )
    )
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "ANSWER", "reasoning_content": "hm"}
    assert (whole["choices"][0]["finish_reason"], whole["usage"]) == ("stop", {"prompt_tokens": 9})


def part(arguments=None, **fields):
    function = {key: fields.pop(key) for key in ("name",) if key in fields}
    if arguments is not None:
        function["arguments"] = arguments
    return {**fields, "function": function}


@pytest.mark.parametrize(
    "parts",
    [
        [part("", index=0, id="a", name="bash"), part('{"x"', index=0), part(": 1}", index=0)],
        [part('{"x"', index=0, id="a", name="bash"), part(": 1}", index=0, id="a", name="bash")],
        [part('{"x"', id="a", name="bash"), part(": 1}", id="a")],
        [part('{"x"', id="a", name="bash"), part(": 1}")],
        [part('{"x"', index=0, id="a", name="ba"), part(": 1}", index=0, name="sh")],
    ],
)
def test_parts_of_a_call_find_together(parts):
    made = message(*(delta(tool_calls=[piece]) for piece in parts))
    assert made["tool_calls"] == [{"id": "a", "function": {"name": "bash", "arguments": '{"x": 1}'}}]


def test_calls_side_by_side_stay_apart():
    first, second = part("1", index=0, id="a", name="x"), part("2", index=1, id="b", name="y")
    made = message(delta(tool_calls=[first, second]), delta(tool_calls=[part("3", index=1), part("4", index=0)]))
    assert [(c["id"], c["function"]["arguments"]) for c in made["tool_calls"]] == [("a", "14"), ("b", "23")]


def test_fields_of_a_provider_survive():
    made = message(delta(reasoning_details=[{"a": 1}]), delta(reasoning_details=[{"b": 2}], signature="s"))
    assert made["reasoning_details"] == [{"a": 1}, {"b": 2}]
    assert made["signature"] == "s"


@pytest.mark.parametrize("data", [stream(delta(content="half")), stream(), b"data: {broken\n\n"])
def test_a_stream_that_ended_early(data):
    with pytest.raises(Trouble):
        chat_completion(data)
    with pytest.raises(Trouble):
        response(data)


def test_the_last_event_of_a_response_is_the_response_or_what_came_before_it():
    item = {"type": "message", "content": []}
    done = {"type": "response.output_item.done", "item": item}
    assert response(
        stream(done, {"type": "response.completed", "response": {"status": "completed", "output": [7]}})
    ) == {
        "status": "completed",
        "output": [7],
    }
    assert response(stream(done, {"type": "response.completed", "response": {"output": []}}))["output"] == [item]


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"data: {text}\n\n".encode()))
def test_any_bytes_are_read_or_refused(data):
    for assemble in (chat_completion, response):
        with contextlib.suppress(Trouble):
            assert isinstance(assemble(data), dict)


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["choices", "delta", "x"]), inner),
    max_leaves=6,
)


part_values = {key: json_values for key in ("index", "id", "function", "x")}
fields = {
    "tool_calls": json_values | st.lists(st.fixed_dictionaries({}, optional=part_values), max_size=3),
    "content": json_values,
    "x": json_values,
}


@given(st.lists(st.fixed_dictionaries({}, optional=fields), max_size=4))
def test_any_deltas_are_added_up(deltas):
    assert message(*(delta(**given) for given in deltas))["role"] == "assistant"
