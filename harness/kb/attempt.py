"""The graph tools of one attempt, served to its programs; each call becomes an event of the trajectory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.accounting import Account
from harness.kb.server import ClientCall, KbServer
from harness.messages import ToolCall
from harness.modes import Output
from harness.slot import NoSlot
from harness.tools import Toolbox, ToolContext
from harness.trajectory import TrajectoryWriter


def serve_graph(toolbox: Toolbox, output: Output, log: TrajectoryWriter, account: Account) -> KbServer:
    """Start serving `toolbox`, as `answers` has it, and write down each call."""

    def told(call: ClientCall) -> None:
        log.write(
            "client_call",
            turn=account.turn,
            name=call.tool,
            arguments=call.arguments,
            program=call.program,
            characters=call.characters,
            seconds=call.seconds,
            error=call.error,
        )

    return KbServer(answers(toolbox, output), told)


def answers(toolbox: Toolbox, output: Output) -> Callable[[str, dict[str, Any]], str]:
    """What a server answers with `toolbox`, which holds TOOLS: at most `output.cap` characters, like the tools' own."""
    none = NoSlot()
    context = ToolContext(sandbox=none.sandbox, spills=none.spills, output=output, cap=output.cap, seconds=0.0)

    def answer(tool: str, arguments: dict[str, Any]) -> str:
        seen = toolbox.dispatch(ToolCall("client", tool, ""), arguments, context)
        if seen.error is not None:
            raise ValueError(seen.text)
        return seen.text

    return answer
