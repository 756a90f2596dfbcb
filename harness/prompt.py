"""What the harness says to the model: the mode's prompt filled in, and the few fixed sentences of the loop."""

from __future__ import annotations

import string

from harness.modes import Mode
from sandbox import GRAPH, SCRATCH

NO_ANSWER = "Your reply calls no tool and has no answer line. Go on, or end your reply with: ANSWER: [id, id, ...]"
TRUNCATED = "Your reply was cut off at the output limit. Go on with a shorter one."
LAST_TURN = (
    "The {limit} is reached: no more tool calls. Reply now with your best answer, ending with: ANSWER: [id, ...]"
)
NEAR_LIMIT = "Note: {turns} turns and {seconds} seconds are left. Leave enough of both to answer."


def prompt_for(mode: Mode, query: str) -> str:
    """The one user message that states the task. Raises KeyError for an unknown $variable in the mode's texts."""
    places = {"graph": GRAPH, "scratch": SCRATCH, "max_ids": str(mode.answer.max_ids)}
    parts = {name: string.Template(getattr(mode, name)).substitute(places).strip() for name in ("access", "reply")}
    return string.Template(mode.prompt).substitute(places, query=query, **parts).strip()
