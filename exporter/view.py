"""What of an export's files an agent is shown, where that is not all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Words = Literal["python", "shell", "plain"]

# The last line of DATA_FORMAT.txt: which programs it names.
LAST_LINES: dict[Words, str] = {
    "python": "Use shell tools or Python's json/csv modules to read these files.",
    "shell": "Use shell tools and rg to search and read them.",
    "plain": "",
}


@dataclass(frozen=True)
class View:
    """`edges` False leaves out the edge files and every word of relations; `words` says which programs are named."""

    edges: bool = True
    words: Words = "python"


WHOLE = View()
