"""`answer`: the way to answer in modes whose `answer.source` is "tool"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import ToolSpec
from harness.observe import Observation
from harness.tools import ToolContext

ANSWER_TOOL = "answer"


class AnswerTool:
    """Ends the attempt with the ids it is given; they are validated like any answer."""

    needs_sandbox = False
    spec = ToolSpec(
        name=ANSWER_TOOL,
        description="Give the final answer: node ids, the most plausible first. This ends the task.",
        parameters={
            "type": "object",
            "properties": {"node_ids": {"type": "array", "items": {"type": "integer"}}},
            "required": ["node_ids"],
            "additionalProperties": False,
        },
    )

    def __call__(self, arguments: Mapping[str, Any], _: ToolContext) -> Observation:
        return Observation("[answer taken]", answer=tuple(arguments["node_ids"]))
