"""Tools the model can call. A mode names them; each is a spec (JSON Schema) and a function.

`Toolbox.dispatch` is the one place where a call's failures become results for the model. What is not the model's doing
(`SandboxLost`, a bug) passes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jsonschema
import orjson

from harness.messages import ToolCall, ToolSpec
from harness.modes import Output
from harness.observe import Observation
from harness.spill import Spills
from harness.text import beginning
from sandbox import Sandbox, SandboxFileError

_LEAST_SECONDS = 0.1  # for a call
_LONGEST_MISTAKE = 2_000  # characters
_LONGEST_EXCERPT = 200


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use during one call. `cap` is the characters that fit, `seconds` the time left."""

    sandbox: Callable[[], Sandbox]  # waits for the attempt's sandbox where it is still being opened
    spills: Callable[[], Spills]
    output: Output
    cap: int
    seconds: float

    def timeout(self, asked: float | None) -> float:
        """Seconds that a call gets which asked for so many, or for none."""
        wanted = float(self.output.call_seconds if asked is None else asked)
        return max(_LEAST_SECONDS, min(wanted, self.output.call_seconds_max, self.seconds))


class Tool(Protocol):
    """One tool: how the model sees it, and what it does."""

    spec: ToolSpec
    needs_sandbox: bool

    def __call__(self, arguments: Mapping[str, Any], context: ToolContext, /) -> Observation:
        """Run with arguments that fit the schema. Raises SandboxLost, SandboxFileError."""
        ...


class Toolbox:
    """The tools of one mode by name. Calls are checked against the schemas before they run."""

    def __init__(self, tools: Mapping[str, Tool], specs: tuple[ToolSpec, ...] | None = None) -> None:
        """`specs`, if given, are those of an equal toolbox: the same objects in every request are serialised once."""
        self._tools = tools
        self._specs = specs or tuple(tool.spec for tool in tools.values())
        self._validators = {name: jsonschema.Draft202012Validator(tool.spec.parameters) for name, tool in tools.items()}

    @property
    def needs_sandbox(self) -> bool:
        """Whether any of the tools runs something in a sandbox."""
        return any(tool.needs_sandbox for tool in self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return self._specs

    def dispatch(self, call: ToolCall, arguments: dict[str, Any] | None, context: ToolContext) -> Observation:
        """Run one call; the model's own mistakes come back as results with an `error` kind.

        `arguments` is what `parse_arguments` made of the call's text. Raises SandboxLost.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            return mistake(
                "unknown_tool", f"there is no tool '{excerpt(call.name)}'; tools: {', '.join(self._tools) or 'none'}"
            )
        if arguments is None:
            return mistake("malformed_arguments", f"the arguments are not a JSON object: {excerpt(call.arguments)}")
        problems = [_in_words(problem) for problem in self._validators[call.name].iter_errors(arguments)]
        if problems:
            return mistake("invalid_arguments", f"the arguments of '{call.name}' do not fit: {'; '.join(problems[:5])}")
        try:
            return tool(arguments, context)
        except SandboxFileError as error:
            return mistake("file_error", str(error))


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The call's arguments as a table, or None where the text is not a JSON object that can be written down again."""
    try:
        value = orjson.loads(text) if text.strip() else {}
        orjson.dumps(value)  # refuses what is nested more than 254 deep, where reading allows 1,024
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return value if isinstance(value, dict) else None


def mistake(kind: str, text: str) -> Observation:
    """A result that tells the model what it did wrong; a text that quotes too much of it keeps its ends."""
    if len(text) > _LONGEST_MISTAKE:
        text = f"{text[: _LONGEST_MISTAKE // 2]} … {text[-_LONGEST_MISTAKE // 2 :]}"
    return Observation(text=f"[error: {text}]", error=kind)


def _in_words(problem: jsonschema.ValidationError) -> str:
    where = "/".join(str(part) for part in problem.absolute_path)
    return excerpt(f"{where}: {problem.message}" if where else problem.message)


def excerpt(text: str) -> str:
    """What the model wrote, in a message about it."""
    return beginning(text, _LONGEST_EXCERPT)
