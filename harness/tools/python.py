"""`python`: run code in an interpreter that lives as long as the attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import ToolSpec
from harness.observe import Observation, observe, status_of
from harness.tools import ToolContext
from sandbox import KernelSandbox

_INTERRUPTED = "it was interrupted, and what is defined stays"


class Python:
    """What a call defines and loads, later calls find; see `sandbox.kernel`."""

    needs_sandbox = True
    spec = ToolSpec(
        name="python",
        description=(
            "Run Python code in an interpreter that stays: variables, functions, imports and loaded data are there in"
            " later calls. Returns what the code prints and the value of its last expression. Code that takes too long"
            " is interrupted; if Python has to be started anew, the result says so."
        ),
        parameters={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Python code; may have many lines"},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": "seconds after which the code is interrupted",
                },
            },
            "required": ["code"],
            "additionalProperties": False,
        },
    )

    def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        timeout = context.timeout(arguments.get("timeout"))
        sandbox = context.sandbox()
        assert isinstance(sandbox, KernelSandbox), "`kit.sandboxes_for` opens these where there is this tool"
        done = sandbox.python(arguments["code"], timeout, context.output.cap)
        status = status_of(done.exec, timeout, _INTERRUPTED) if done.alive else status_of(done.exec, timeout)
        if done.notice:
            status += f" [{done.notice}]"
        return observe(sandbox, context.spills(), done.exec, context.output, context.cap, status)
