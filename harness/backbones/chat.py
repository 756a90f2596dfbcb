"""A model behind OpenAI's Chat Completions API, whoever serves it.

Each entry becomes bytes once (`Entry.wire["chat"]`); a request joins them behind a constant beginning, so that it
costs no more to encode late in a conversation, and one request's messages are a prefix of the next one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from harness.backbones import jsontext
from harness.backbones.completions import parse_reply, wire
from harness.backbones.endpoint import Endpoint
from harness.backbones.jsontext import Body
from harness.backbones.profiles import Profile
from harness.messages import Reply, Request, ToolSpec

PATH: Final = "chat/completions"


class ChatBackbone:
    """A model behind a Chat Completions endpoint."""

    def __init__(self, profile: Profile, notice: Callable[[str], None] = lambda _: None) -> None:
        self.name = profile.name
        self._endpoint = Endpoint(profile, notice)
        self._opening = _opening(profile)
        self._parallel = profile.parallel_tool_calls
        self._head: tuple[tuple[ToolSpec, ...] | None, bytes] = (None, b"")

    def complete(self, request: Request) -> Reply:
        """Ask the model. Raises BackboneError and its kinds, and ContextOverflow."""
        taken = {call.id for entry in request.entries for call in entry.calls}
        answer = self._endpoint.ask(
            PATH, self.body(request), request.time_left, lambda data: parse_reply(data, request.turn, taken)
        )
        parsed = answer.value
        return Reply(
            parsed.entry,
            parsed.finish,
            parsed.usage,
            waited=answer.waited,
            latency=answer.latency,
            tries=answer.tries,
            notes=parsed.notes,
        )

    def body(self, request: Request) -> Body:
        """The request's JSON. What varies from turn to turn comes last."""
        tools, head = self._head
        if tools is not request.tools:
            head = self._opening + _tools(request.tools, self._parallel) + b'"messages":['
            self._head = (request.tools, head)
        varies = request.tools and request.tool_choice != "auto"
        tail = b'],"tool_choice":"%s"}' % request.tool_choice.encode() if varies else b"]}"
        return Body(head, [wire(entry) for entry in request.entries], tail)

    def close(self) -> None:
        """End waiting and close connections."""
        self._endpoint.close()


def _opening(profile: Profile) -> bytes:
    parameters = {
        "model": profile.model,
        "reasoning_effort": profile.effort,
        "temperature": profile.temperature,
        "top_p": profile.top_p,
        "seed": profile.seed,
        "max_completion_tokens": profile.max_output,
    }
    given = {key: value for key, value in parameters.items() if value is not None} | profile.extra_body
    return jsontext.dumps(given)[:-1] + b","


def _tools(tools: Sequence[ToolSpec], parallel: bool | None) -> bytes:
    if not tools:
        return b""
    specs = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]
    table: dict[str, Any] = {"tools": specs}
    if parallel is not None:
        table["parallel_tool_calls"] = parallel
    return jsontext.dumps(table)[1:-1] + b","
