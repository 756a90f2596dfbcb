"""What an endpoint supports, found out with one small request and its list of models."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from harness.backbones import jsontext
from harness.backbones.http import HttpBackbone
from harness.backbones.profiles import Profile
from harness.errors import HarnessError
from harness.messages import AttemptKey, Backbone, Entry, Reply, Request, ToolSpec

_QUESTION: Final = "Call the tool `report` with the number 7."
_TOOL: Final = ToolSpec(
    "report",
    "Report a number.",
    {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)


@dataclass(frozen=True)
class Probe:
    """What was found. None: it can't be told. `window` is tokens as the server says, `usage` the counts it reports."""

    error: str | None = None
    seconds: float | None = None
    tools: bool | None = None  # a call came back, required as it was
    arguments: bool | None = None  # as JSON that fits
    reasoning: bool | None = None
    usage: tuple[str, ...] = ()
    window: int | None = None
    repairs: tuple[str, ...] = ()  # kinds of what had to be mended in the reply

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Probed(Backbone, Protocol):
    """A model that knows its server's context window."""

    def window(self) -> int | None:
        """Tokens, None where the server doesn't say."""
        ...


def probe(profile: Profile) -> Probe:
    """Ask a profile's endpoint once, without retries.

    Raises UserError where the key is missing; everything else is in the result.
    """
    once = replace(profile, tries=1, timeout=min(profile.timeout, 120.0))
    with closing(HttpBackbone(once)) as model:
        return probe_model(model)


def probe_model(model: Probed) -> Probe:
    """Ask a model once; what goes wrong is in the result."""
    window = model.window()
    asked = Request(AttemptKey("probe", 0, 0), 1, _QUESTION, (Entry("user", _QUESTION),), (_TOOL,), "required")
    try:
        reply = model.complete(asked)
    except HarnessError as error:
        return Probe(error=str(error), window=window)
    return Probe(
        seconds=reply.latency,
        tools=bool(reply.entry.calls),
        arguments=_fits(reply) if reply.entry.calls else None,
        reasoning=_reasons(reply),
        usage=tuple(name for name, count in vars(reply.usage).items() if count is not None),
        window=window,
        repairs=tuple(str(note["kind"]) for note in reply.notes),
    )


def _fits(reply: Reply) -> bool:
    try:
        arguments, _ = jsontext.loads(reply.entry.calls[0].arguments.encode())
    except ValueError:
        return False
    return isinstance(arguments, dict) and isinstance(arguments.get("number"), int)


def _reasons(reply: Reply) -> bool | None:
    """Whether the reply holds reasoning, or tokens of it; None where neither says."""
    if reply.usage.reasoning is not None:
        return reply.usage.reasoning > 0
    raw = reply.entry.raw
    items = raw if isinstance(raw, list) else []
    held = isinstance(raw, Mapping) and any(raw.get(key) for key in ("reasoning_content", "reasoning"))
    return True if held or any(item.get("type") == "reasoning" for item in items) else None
