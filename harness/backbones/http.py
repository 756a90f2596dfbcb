"""A model behind an OpenAI-compatible endpoint, whoever serves it.

Each entry becomes bytes once (`Entry.wire`); a request joins them behind a constant beginning, so that it costs no
more to encode late in a conversation, and one request's conversation is a prefix of the next one's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.backbones import jsontext, sse
from harness.backbones.chat import CHAT
from harness.backbones.dialect import Asked, Dialect
from harness.backbones.endpoint import Endpoint
from harness.backbones.faults import Refused
from harness.backbones.jsontext import Body
from harness.backbones.profiles import Profile
from harness.backbones.prompted import PROMPTED
from harness.backbones.responses import RESPONSES
from harness.backbones.window import served_window, weights_in
from harness.messages import Entry, Reply, Request, ToolSpec

DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in (CHAT, RESPONSES, PROMPTED)}


class HttpBackbone:
    """Speaks the profile's API. For many threads at once."""

    def __init__(self, profile: Profile, notice: Callable[[str], None] = lambda _: None) -> None:
        """Raises UserError where the profile needs a key and none is set."""
        self.name = profile.name
        self._dialect = DIALECTS[profile.api]
        self._endpoint = Endpoint(profile, notice)
        given = {key: value for key, value in self._dialect.parameters(profile).items() if value is not None}
        stream = self._dialect.streaming if profile.stream else {}
        self._opening = jsontext.dumps({**given, **stream, **profile.extra_body})[:-1] + b","
        self._parallel = profile.parallel_tool_calls
        self._head: tuple[tuple[ToolSpec, ...] | None, bytes] = (None, b"")

    def complete(self, request: Request) -> Reply:
        """Ask the model. Raises BackboneError and its kinds, and ContextOverflow."""
        asked = Asked.by(request)
        try:
            answer = self._endpoint.ask(
                self._dialect.path,
                self.body(request),
                request.time_left,
                lambda data: self._dialect.parse(self._whole(data), asked),
            )
        except Refused as refused:
            note = {"kind": "refused_by_endpoint", "message": str(refused)}
            return Reply(Entry("assistant", ""), "content_filter", waited=refused.waited, notes=(note,))
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
            head = self._opening + self._dialect.begin(request.tools, self._parallel)
            self._head = (request.tools, head)
        return Body(head, self._dialect.wires(request.entries), self._dialect.end(request))

    def _whole(self, data: bytes) -> bytes:
        """A reply in one piece; a key that a stream's pieces echo comes to light when they are put together."""
        if not sse.is_stream(data):
            return data
        return self._endpoint.clean(jsontext.dumps(self._dialect.assemble(data)))

    def window(self) -> int | None:
        """The model's context window in tokens, as its server says; None where it doesn't."""
        profile = self._endpoint.profile
        return served_window(self._endpoint.fetch, profile.endpoint or "", profile.model)

    def served(self) -> dict[str, Any]:
        """What the server says of the model's weights; empty where it says nothing. Asks it, once."""
        return weights_in(self._endpoint.fetch("models"), self._endpoint.profile.model)

    def close(self) -> None:
        """End waiting and close connections."""
        self._endpoint.close()
