"""A trajectory for the page: an index of its lines from one pass, and single events as items that are never large."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.events import parse_event
from harness.own_words import own_words
from harness.show import cut_in_words
from harness.text import line, plain
from harness.view.pieces import code_pieces, head_of, id_pieces, page_of

PAGE = 32_000  # characters of a text sent at once
_TEXT = 8_000  # characters of what the model said, and of its code, before the rest is folded
_PROMPT = 300
_ARGUMENT = 2_000
_ARGUMENTS = 40  # of one call
_PREVIEW = (4, 400)  # lines and characters of a folded output
_WHOLE = (14, 1_600)  # an output up to this size is not folded
_CODE = {"bash": ("command", "bash"), "python": ("code", "python")}  # tool -> the argument with code, its language


@dataclass(frozen=True)
class Line:
    """Where an event stands in its file. `turn` is None for what belongs to none."""

    offset: int
    length: int
    kind: str
    turn: int | None


@dataclass(frozen=True)
class Index:
    """The lines of one trajectory. `cleared` has the turn before which a call's result became a placeholder.

    `unanswered` are calls that have no result. `fault` says what of the file can't be read, empty where all can.
    """

    path: Path
    lines: tuple[Line, ...]
    cleared: Mapping[str, int]
    unanswered: frozenset[str]
    fault: str

    def event(self, position: int) -> dict[str, Any] | None:
        """An event by its place from 0; None where what stands there breaks the schema. Raises IndexError, OSError."""
        data = self.raw(position)
        event: dict[str, Any] | None = orjson.loads(data) if self.lines[position].kind else None
        return event

    def raw(self, position: int) -> bytes:
        """An event's line as it stands in the file. Raises IndexError and OSError."""
        if position < 0:
            raise IndexError(position)
        place = self.lines[position]
        with self.path.open("rb") as file:
            file.seek(place.offset)
            return file.read(place.length)


def read_index(path: Path) -> Index:
    """Index a trajectory, or find it in memory if the file is as it was. Raises OSError."""
    found = path.stat()
    return _read_index(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _read_index(path: Path, _size: int, _time: int) -> Index:
    lines: list[Line] = []
    cleared: dict[str, int] = {}
    calls: dict[str, None] = {}
    offset = 0
    faults: list[str] = []
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if not data.endswith(b"\n"):
                faults.append(f"line {number:,} is torn, as by a crash")
                break
            event: dict[str, Any] = {}
            try:
                event = parse_event(data)
            except ValueError as error:
                faults.append(f"line {number:,}: {error}")
            lines.append(Line(offset, len(data), event.get("type", ""), event.get("turn")))
            offset += len(data)
            if not event:
                continue
            if event["type"] == "clear":
                cleared.update(dict.fromkeys(event["call_ids"], event["turn"]))
            elif event["type"] == "reply":
                calls.update(dict.fromkeys(call["id"] for call in event["calls"]))
            elif event["type"] == "result":
                calls.pop(event["call_id"], None)
    return Index(path, tuple(lines), cleared, frozenset(calls), _in_words(faults))


def _in_words(faults: list[str]) -> str:
    """How many lines can't be read, and the first of them."""
    more = f" and {len(faults) - 1:,} more" if len(faults) > 1 else ""
    return line(faults[0])[:_PROMPT] + more if faults else ""


class Items:
    """The events of a trajectory as the page shows them. `nodes` is the number of the graph's nodes, `line_cap` the
    mode's `output.line_cap`."""

    def __init__(self, index: Index, nodes: int, line_cap: int | None) -> None:
        self._index, self._nodes, self._line_cap = index, nodes, line_cap
        self._makers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "start": self._start, "request": self._request, "reply": self._reply, "result": self._result,
            "clear": self._clear, "notice": self._notice, "answer": self._answer, "end": self._end,
            "client_call": self._client_call, "program_run": self._program_run,
        }  # fmt: skip

    def item(self, position: int) -> dict[str, Any]:
        """One event, its long texts folded. Raises IndexError and OSError."""
        event, place = self._index.event(position), self._index.lines[position]
        base = {"line": position, "type": place.kind if place.kind in self._makers else "damaged", "turn": place.turn}
        if event is None or place.kind not in self._makers:
            return {**base, "text": _folded(self._index.raw(position).decode("utf-8", "replace"), _ARGUMENT)}
        return {**base, **self._makers[place.kind](event)}

    def more(self, position: int, part: str, start: int) -> dict[str, Any]:
        """A page of a text: `output`, `text`, `system`, `reasoning`, or `argument:NAME`. Raises KeyError."""
        event = self._index.event(position)
        if event is None or event["type"] not in self._makers:
            return _page(self._index.raw(position).decode("utf-8", "replace"), start)
        if part == "output" and event["type"] == "result":
            return self._output(event, start, PAGE)
        if part == "reasoning" and event["type"] == "reply":
            return _page(reasoning_of(event["raw"]), start)
        if part.startswith("argument:") and event["type"] == "result":
            name = part.removeprefix("argument:")
            text, language = _argument(event["name"], name, event["arguments"][name])
            return _page(text, start, language)
        if part == "system" and event["type"] == "start":
            return _page(event.get("system", ""), start)
        if part == "text":
            return _page(str(event["prompt"] if event["type"] == "start" else event["text"]), start)
        raise KeyError(part)

    def blob(self, position: int) -> str:
        """The digest of the whole output that a result's text is a part of. Raises KeyError where there is none."""
        event = self._index.event(position)
        if event is None or event["type"] != "result" or event["blob"] is None:
            raise KeyError("blob")
        return str(event["blob"])

    def _start(self, event: Mapping[str, Any]) -> dict[str, Any]:
        tools = [line(tool["name"]) for tool in event["tools"][:_ARGUMENTS]]
        return {
            "text": _folded(event["prompt"], _PROMPT), "tools": tools,
            "system": _folded(event.get("system", ""), _PROMPT),
        }  # fmt: skip

    def _request(self, event: Mapping[str, Any]) -> dict[str, Any]:
        wanted = ("entries", "bytes", "tokens_estimate")
        return {**{key: event[key] for key in wanted}, "cleared": len(event["cleared"])}

    def _reply(self, event: Mapping[str, Any]) -> dict[str, Any]:
        lost = [call for call in event["calls"] if call["id"] in self._index.unanswered]
        return {
            "text": _folded(event["text"], _TEXT),
            "reasoning": _folded(reasoning_of(event["raw"]), 0),
            "notes": [line(str(dict(note)))[:_ARGUMENT] for note in event["notes"][:_ARGUMENTS]],
            "lost": [[line(call["name"]), plain(call["arguments"])[:_ARGUMENT]] for call in lost[:_ARGUMENTS]],
            **{key: event[key] for key in ("finish", "usage", "latency", "waited", "tries")},
        }

    def _result(self, event: Mapping[str, Any]) -> dict[str, Any]:
        arguments = []
        for name, value in list((event["arguments"] or {}).items())[:_ARGUMENTS]:
            text, language = _argument(event["name"], name, value)
            arguments.append([line(name), name, _folded(text, _TEXT if language else _ARGUMENT, language)])
        text = event["text"]
        small = len(text) <= _WHOLE[1] and text.count("\n") < _WHOLE[0]
        shown = len(text) if small else len(head_of(text, *_PREVIEW))
        return {
            "name": line(event["name"]), "call": line(event["call_id"]), "error": event["error"],
            "arguments": arguments, "lines": text.count("\n") + 1, "characters": len(text),
            "output": self._output(event, 0, shown),
            "exec": event["exec"] and {key: value for key, value in event["exec"].items() if key != "spill"},
            "cut": cut_in_words(event["cut"]) if event["cut"] else "", "blob": event["blob"] is not None,
            "cleared": self._index.cleared.get(event["call_id"]),
        }  # fmt: skip

    def _output(self, event: Mapping[str, Any], start: int, size: int) -> dict[str, Any]:
        """Part of what the model saw. Ids are looked for in what a command printed, not in the harness's own words."""
        text, following = page_of(event["text"], start, size)
        pieces: list[Any] = []
        done = 0
        for span in own_words(event, self._line_cap):
            begin, end = (min(max(place - start, done), len(text)) for place in span)
            if begin < end:
                pieces += id_pieces(text[done:begin], self._nodes, event["name"])
                pieces.append({"own": plain(text[begin:end])})
                done = end
        return {"pieces": [*pieces, *id_pieces(text[done:], self._nodes, event["name"])], "next": following}

    def _client_call(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """A call of a graph tool that a command made."""
        return {
            "name": line(event["name"]), "program": line(event["program"])[:_ARGUMENT],
            "arguments": plain(orjson.dumps(event["arguments"]).decode())[:_ARGUMENT],
            **{key: event[key] for key in ("characters", "seconds", "error")},
        }  # fmt: skip

    def _program_run(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The one program of a mode that allows one, or one too many."""
        given = " ".join(map(shlex.quote, event["arguments"]))
        return {
            "arguments": line(given)[:_ARGUMENT], "cwd": line(event["cwd"])[:_ARGUMENT], "blob": event["blob"],
            **{key: event[key] for key in ("refused", "exit_code", "termination", "wall", "cpu", "memory")},
        }  # fmt: skip

    def _clear(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {"count": len(event["call_ids"]), "before": event["tokens_before"], "after": event["tokens_after"]}

    def _notice(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": _folded(event["text"], _ARGUMENT)}

    def _answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        rejected = [f"{line(str(each['value']))[:_ARGUMENT]} ({each['why']})" for each in event["rejected"]]
        repairs = [line(repair)[:_ARGUMENT] for repair in event["repairs"]]
        return {"ids": event["ids"][:200], "repairs": repairs[:_ARGUMENTS], "rejected": rejected[:200]}

    def _end(self, event: Mapping[str, Any]) -> dict[str, Any]:
        error = event["error"] and plain(event["error"])[:_TEXT]
        return {"stop": event["stop_reason"], "limit": event["limit"], "error": error}


def reasoning_of(raw: Any) -> str:
    """What a provider gave of the model's reasoning, in the forms of Chat Completions and of Responses."""
    if isinstance(raw, dict):
        texts = [raw.get("reasoning_content"), raw.get("reasoning")]
        return "\n\n".join(dict.fromkeys(text for text in texts if isinstance(text, str)))
    items = [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []
    parts = [
        part.get("text")
        for item in items
        if item.get("type") == "reasoning"
        for field in ("summary", "content")
        for part in item.get(field) or ()
        if isinstance(part, dict)
    ]
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _argument(tool: str, name: str, value: Any) -> tuple[str, str]:
    """An argument as text and, where it is code, its language."""
    key, language = _CODE.get(tool, ("", ""))
    if isinstance(value, str):
        return value, language if name == key else ""
    return orjson.dumps(value).decode(), ""


def _folded(text: str, most: int, language: str = "") -> dict[str, Any]:
    return _page(text, 0, language, most)


def _page(text: str, start: int, language: str = "", size: int = PAGE) -> dict[str, Any]:
    part, following = page_of(text, start, size)
    shown: dict[str, Any] = {"code": code_pieces(part, language)} if language else {"text": plain(part)}
    return {**shown, "next": following, "left": len(text) - (start + len(part))}
