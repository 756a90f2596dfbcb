"""`bash`: run a command in the attempt's sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import ToolSpec
from harness.observe import Observation, observe, status_of
from harness.tools import ToolContext, mistake


class Bash:
    """Each call is a fresh bash in the scratch directory; only files last."""

    needs_sandbox = True
    spec = ToolSpec(
        name="bash",
        description=(
            "Run a command or a script in bash and return what it prints (stdout and stderr together) and its exit"
            " code. Every call starts a fresh bash in the working directory; processes left running are killed."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "the command; may have many lines"},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "seconds after which the command is killed",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )

    def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        command = arguments["command"]
        if "\0" in command:
            return mistake("invalid_arguments", "the command holds a NUL character")
        timeout = context.timeout(arguments.get("timeout"))
        sandbox = context.sandbox()
        result = sandbox.exec(command, timeout, context.output.cap)
        return observe(sandbox, context.spills(), result, context.output, context.cap, status_of(result, timeout))
