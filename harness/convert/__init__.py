"""Saved runs in the formats of other tools: ATIF, Inspect's log, chat messages for fine-tuning.

Reads run folders only: no model, no sandbox, no network. A writer is given attempts one by one and keeps none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from harness.convert import atif, inspect_log, messages
from harness.convert.attempts import SavedAttempt, Source

Writer = Callable[[Source, Iterator[SavedAttempt], Path], int]

# Format -> what writes it into a file or folder (made if it isn't there) and returns how many attempts it wrote, and
# the name of that file or folder inside the run folder, where none is given.
FORMATS: Mapping[str, tuple[Writer, str]] = {
    "atif": (atif.write, "atif"),
    "inspect": (inspect_log.write, "inspect.json"),
    "messages": (messages.write, "messages.jsonl"),
}

__all__ = ["FORMATS", "SavedAttempt", "Source", "Writer"]
