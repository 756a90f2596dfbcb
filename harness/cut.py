"""Cutting a text that is too large for the model: what stays of it, on character boundaries, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from harness.modes import Output
from harness.own_words import LINE_TAIL_SHARE
from harness.text import count_of


@dataclass(frozen=True)
class View:
    """Text as shown, and what is missing from it. `cut_lines` are lines that were shortened."""

    text: str
    cut_lines: int = 0
    omitted: int = 0  # characters left out


def shorten(text: str, output: Output, cap: int | None = None) -> View:
    """Shorten lines over `output.line_cap` characters, then cut what is still over `cap` (default `output.cap`, in
    `output.unit`) or over `output.lines`."""
    cap = output.cap if cap is None else cap
    cut_lines = 0
    if output.line_cap is not None and len(text) > output.line_cap:
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if len(line) > output.line_cap:
                lines[number] = _shorten_line(line, output.line_cap)
                cut_lines += 1
        text = "\n".join(lines) if cut_lines else text
    if _size(text, output) <= cap and (output.lines is None or len(_lines(text)) <= output.lines):
        return View(text, cut_lines)
    shown, kept = _KEEP[output.keep](text, output, cap)
    return View(shown, cut_lines, len(text) - kept)


def head_of(text: str, output: Output, cap: int) -> str:
    """The longest beginning within `cap`."""
    if output.unit == "characters":
        return text[:cap]
    return text[:cap].encode("utf-8", "replace")[:cap].decode("utf-8", "ignore")


def tail_of(text: str, output: Output, cap: int) -> str:
    """The longest end within `cap`."""
    start = max(0, len(text) - cap)
    if output.unit == "characters":
        return text[start:]
    data = text[start:].encode("utf-8", "replace")
    return data[max(0, len(data) - cap) :].decode("utf-8", "ignore")


def _ends(text: str, output: Output, cap: int) -> tuple[str, int]:
    """Head and tail, half the cap each."""
    first, last = _half_of_lines(text, output.lines)
    head = _whole_lines_head(head_of(first, output, cap // 2))
    tail = _whole_lines_tail(tail_of(last, output, cap // 2))
    kept = len(head) + len(tail)
    return f"{head}\n[... {count_of(len(text) - kept, 'character')} left out here ...]\n{tail}", kept


def _tail(text: str, output: Output, cap: int) -> tuple[str, int]:
    """The last lines, whole ones; of a last line that is over the cap by itself, its end."""
    last = text if output.lines is None else "".join(_lines(text)[-output.lines :])
    tail = tail_of(last, output, cap)
    if len(tail) < len(last) and last[-len(tail) - 1] != "\n" and "\n" in tail:
        tail = tail.partition("\n")[2]
    return f"[... {count_of(len(text) - len(tail), 'character')} left out above ...]\n{tail}", len(tail)


_KEEP: Final[Mapping[str, Callable[[str, Output, int], tuple[str, int]]]] = {"ends": _ends, "tail": _tail}


def _size(text: str, output: Output) -> int:
    return len(text) if output.unit == "characters" else len(text.encode("utf-8", "replace"))


def _lines(text: str) -> list[str]:
    """Lines with their line breaks."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _half_of_lines(text: str, most: int | None) -> tuple[str, str]:
    """The text's first and last lines, `most` together; twice the text where it has no more than that."""
    lines = _lines(text) if most is not None else []
    if most is None or len(lines) <= most:
        return text, text
    return "".join(lines[: most // 2]), "".join(lines[len(lines) - (most - most // 2) :])


def _shorten_line(line: str, line_cap: int) -> str:
    tail = line_cap // LINE_TAIL_SHARE
    cut = count_of(len(line) - line_cap, "character")
    return f"{line[: line_cap - tail]}[... {cut} of this line left out ...]{line[len(line) - tail :]}"


def _whole_lines_head(text: str) -> str:
    """`text` up to its last line break, if that loses little."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) * 3 // 4 else text


def _whole_lines_tail(text: str) -> str:
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start < len(text) // 4 else text
