"""What the harness says to the model: the mode's prompt filled in, and the few fixed sentences of the loop."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from typing import Any

from harness.kb.server import FOLDER
from harness.modes import Mode
from sandbox import GRAPH, SCRATCH

NO_ANSWER: dict[str, str] = {  # by where the answer comes from
    "message": "Your reply calls no tool and has no answer line. Go on, or end your reply with: ANSWER: [id, id, ...]",
    "names": 'Your reply has no answer line. End it with: ANSWER: ["name", "name", ...]',
    "tool": "Your reply calls no tool. Go on, or give your answer with the tool answer.",
    "selection": "Your reply calls no tool. Go on, or end with the tool finish.",
}
TRUNCATED = "Your reply was cut off at the output limit. Go on with a shorter one."
ANSWERED = "not run: the answer is given"
LAST_TURN = (
    "The {limit} is reached: no more tool calls. Reply now with your best answer, ending with: ANSWER: [id, ...]"
)
NEAR_LIMIT = "Note: {turns} turns and {seconds} seconds are left. Leave enough of both to answer."


def prompt_for(mode: Mode, query: str) -> str:
    """The one user message that states the task. Raises KeyError for an unknown $variable in the mode's texts."""
    places = {"graph": GRAPH, "scratch": SCRATCH, "attempt": FOLDER, "max_ids": str(mode.answer.max_ids)}
    parts = {name: string.Template(getattr(mode, name)).substitute(places).strip() for name in ("access", "reply")}
    return string.Template(mode.prompt).substitute(places, query=query, **parts).strip()


def system_for(mode: Mode, schema: Mapping[str, Any]) -> str:
    """The system message, empty where the mode has none. Raises KeyError for an unknown $variable."""
    names = {part: [item["name"] for item in schema.get(key, [])] for part, key in _SCHEMA_PARTS.items()}
    return string.Template(mode.system).substitute({part: repr(found) for part, found in names.items()}).strip()


_SCHEMA_PARTS = {"node_types": "node_types", "edge_types": "relations"}


def prompt_hashes(mode: Mode, schema: Mapping[str, Any]) -> dict[str, str]:
    """sha256 of what the model is told: `task` with $query in the question's place, `system`, and the loop's `notices`.

    Raises KeyError for an unknown $variable.
    """
    notices = [*NO_ANSWER.values(), TRUNCATED, ANSWERED, LAST_TURN, NEAR_LIMIT]
    texts = {"task": prompt_for(mode, "$query"), "system": system_for(mode, schema), "notices": "\n".join(notices)}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
