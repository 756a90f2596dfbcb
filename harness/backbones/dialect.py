"""What the two APIs have in common: a dialect is how entries are written and replies are read; no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from harness.backbones import jsontext
from harness.backbones.faults import Trouble, from_error
from harness.backbones.profiles import Profile
from harness.backbones.textcalls import calls_in_text
from harness.messages import Entry, FinishReason, Request, ToolCall, ToolSpec, Usage

STAND_IN: Final = 2_000  # characters of malformed arguments that are shown to the model again

Note = Mapping[str, Any]


@dataclass(frozen=True)
class Parsed:
    """What a reply says. `notes` are the repairs that it took to read it."""

    entry: Entry
    finish: FinishReason
    usage: Usage
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Asked:
    """The request that a reply answers: its turn, the call ids in use so far, the tools that may be called."""

    turn: int
    taken: Set[str] = frozenset()
    tools: Set[str] = frozenset()

    @classmethod
    def by(cls, request: Request) -> Asked:
        """What matters of a request."""
        tools = {tool.name for tool in request.tools} if request.tool_choice != "none" else set()
        return cls(request.turn, {call.id for entry in request.entries for call in entry.calls}, tools)


@dataclass(frozen=True)
class Dialect:
    """One API. `parse` reads a reply, `assemble` makes one of a stream; both raise Trouble for what is none."""

    name: str  # the key in Entry.wire
    path: str
    parameters: Callable[[Profile], dict[str, Any]]
    begin: Callable[[Sequence[ToolSpec], bool | None], bytes]  # from the parameters to the first entry
    end: Callable[[Request], bytes]  # what varies from turn to turn, and the end
    message: Callable[[Entry], list[Any]]  # an entry as the items that it is in a request
    parse: Callable[[bytes, Asked], Parsed]
    streaming: Mapping[str, Any]  # parameters that ask for a stream
    assemble: Callable[[bytes], dict[str, Any]]

    def wire(self, entry: Entry) -> bytes:
        """The entry's items as they stand in a request, with commas between; encoded once."""
        encoded = entry.wire.get(self.name)
        if encoded is None:
            encoded = entry.wire[self.name] = b",".join([jsontext.dumps(item) for item in self.message(entry)])
        return encoded

    def wires(self, entries: Iterable[Entry]) -> list[bytes]:
        """Those of all entries that have any; no more than a look-up for each that is encoded."""
        name = self.name
        found = [entry.wire[name] if name in entry.wire else self.wire(entry) for entry in entries]
        return [wire for wire in found if wire]


def begin(items: str, tools: Sequence[Mapping[str, Any]], parallel: bool | None) -> bytes:
    """A request from its tools to the first entry; `items` is its key for the conversation."""
    choice = {} if parallel is None else {"parallel_tool_calls": parallel}
    given = jsontext.dumps({"tools": tools, **choice})[1:-1] + b"," if tools else b""
    return given + b'"%s":[' % items.encode()


def end(request: Request) -> bytes:
    """The choice of tools where it isn't the usual one, and the end of a request."""
    if not request.tools or request.tool_choice == "auto":
        return b"]}"
    return b'],"tool_choice":"%s"}' % request.tool_choice.encode()


class CallReader:
    """Reads one reply's calls in order, and makes their ids unique in the conversation."""

    def __init__(self, asked: Asked, notes: list[Note]) -> None:
        self._asked, self._used, self._notes, self._index = asked, set[str](), notes, 0

    def read(self, given_id: Any, name: Any, arguments: Any) -> ToolCall:
        """One call from whatever stands in its fields."""
        call_id = given_id if isinstance(given_id, str) and given_id else ""
        if not call_id or self._taken(call_id):
            kind = "call_id_repeated" if call_id else "call_id_missing"
            call_id = self._new_id(call_id or "call")
            self._note(kind, call_id)
        self._used.add(call_id)
        if not isinstance(arguments, str):
            self._note("arguments_not_text", call_id)
            arguments = "" if arguments is None else jsontext.dumps(arguments).decode()
        if not arguments.strip():
            self._note("arguments_empty", call_id)
            arguments = "{}"
        self._index += 1
        return ToolCall(call_id, name if isinstance(name, str) else "", arguments)

    def in_text(self, text: str) -> tuple[tuple[ToolCall, ...], str]:
        """Calls that were left in a reply's text, and the text without them."""
        found, rest = calls_in_text(text, self._asked.tools)
        if found:
            self._notes.append({"kind": "calls_in_text", "calls": len(found)})
        made = [f"call_{self._asked.turn}_{number}" for number in range(len(found))]
        return tuple(self.read(made[i], name, _as_text(arguments)) for i, (name, arguments) in enumerate(found)), rest

    def _taken(self, call_id: str) -> bool:
        return call_id in self._used or call_id in self._asked.taken

    def _new_id(self, base: str) -> str:
        made = f"{base[:32]}_{self._asked.turn}_{self._index}"
        while self._taken(made):
            made += "_"
        return made

    def _note(self, kind: str, call_id: str) -> None:
        self._notes.append({"kind": kind, "call": self._index, "id": call_id})


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else jsontext.dumps(arguments).decode()


def stand_in(arguments: str) -> str:
    """Arguments that a server can parse: the model's own where they are a JSON object, else one that quotes them."""
    if jsontext.is_object(arguments):
        return arguments
    return jsontext.dumps({"malformed_arguments": arguments[:STAND_IN]}).decode()


def load(data: bytes, notes: list[Note]) -> Mapping[str, Any]:
    """A reply's JSON object. Raises Trouble where there is none."""
    try:
        reply, repaired = jsontext.loads(data)
    except ValueError as error:
        raise Trouble(f"reply is not JSON: {error}") from None
    if not isinstance(reply, Mapping):
        raise Trouble("reply is not a JSON object")
    if repaired:
        notes.append({"kind": "reply_repaired"})
    return reply


def raise_error(error: Any) -> None:
    """Raise what an error inside a reply with status 200 means, if it is one."""
    if error:
        code = error.get("code") if isinstance(error, Mapping) else None
        status = 429 if code == "rate_limit_exceeded" else code if isinstance(code, int) and code >= 400 else 500
        raise from_error(status, {"error": error}, {})


def visible(text: str, notes: list[Note]) -> str:
    """Without reasoning that a server left in the content, between <think> tags."""
    thought, sign, rest = text.rpartition("</think>")
    if not sign or ("<think>" in thought and not thought.lstrip().startswith("<think>")):
        return text
    notes.append({"kind": "reasoning_in_content", "characters": len(thought)})
    return rest.lstrip()


def parts_text(content: Any, *keys: str) -> str:
    """Text of a content: itself, or the given keys of its parts joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = [part.get(key) for part in content if isinstance(part, Mapping) for key in keys]
    return "".join(text for text in found if isinstance(text, str))
