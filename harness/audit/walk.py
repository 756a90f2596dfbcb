"""One pass over one trajectory: events in, `AttemptFacts` out, in memory that doesn't grow with the trajectory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from harness.audit.facts import AttemptFacts, CallFacts, GraphCall, Kind
from harness.audit.numbers import find_ids, ids_of_result
from harness.audit.programs import Call, History
from harness.audit.sightings import Sightings
from harness.audit.suspicion import of_command, sandbox_failures
from harness.audit.workbench import Reading
from harness.events import parse_event
from harness.ledger import AttemptRecord
from harness.metrics import score_answer
from harness.own_words import own_words
from harness.schemas import TrajectoryCheck

_TOOLS: Mapping[str, Kind] = {
    "read": "read", "search": "graph_search", "search_in_graph": "graph_search", "neighbors": "graph_neighbours",
    "search_in_neighborhood": "graph_neighbours", "get_node": "graph_record", "get_schema": "graph_record",
    "answer": "answer", "add_to_answer": "answer", "finish": "answer",
}  # fmt: skip
_GRAPH_TOOLS = {name for name, kind in _TOOLS.items() if kind.startswith("graph_")}
_SEARCHES = {"rg", "grep", "egrep", "fgrep", "zgrep", "find", "awk", "gawk", "mawk", "perl", "join", "comm", "look"}
_READS = {"cat", "head", "tail", "sed", "less", "more", "cut", "tac", "nl", "jq", "strings", "column", "fold"}
_SPILL = re.compile(r"outputs/(\d+\.txt|\*)")
_TRACEBACK = "Traceback (most recent call last)"
_ANSWER_KEYS = (b"answer_ids", b"answer_ids_source")
_LEAST_LIST = 3  # ids in a gold list that is looked for as a list
_LOOP_ROUNDS, _LOOP_PERIODS = 3, (1, 2, 3)
_CACHE_LEAST, _CACHE_SHARE = 2_000, 0.5  # a cache is lost when less than this share of that many tokens is read from it


@dataclass(frozen=True)
class Job:
    """A trajectory to audit. `gold` is None where it isn't known, `record` where the ledger doesn't have it."""

    file: str
    record: AttemptRecord | None
    counted: bool
    gold: tuple[int, ...] | None


@dataclass(frozen=True)
class Context:
    """What all trajectories of a run share. `is_candidate` tells which ids can be gold and answers.

    `line_cap` is the mode's `output.line_cap`. `prompt_is_ours`: but for the question, the prompt is the harness's.
    """

    run: Path
    nodes: int
    canary: bytes | None
    is_candidate: Callable[[int], bool] = lambda _: True
    line_cap: int | None = None
    prompt_is_ours: bool = True


def walk(job: Job, context: Context) -> AttemptFacts:
    """Read a trajectory. What can't be read is in `faults`; raises OSError where the file can't be opened."""
    return _Walk(job, context).run()


@dataclass
class _Seen:
    """A result that the agent may come back to."""

    line: int
    key: bytes
    spill: str | None
    cleared: bool = False
    read_later: bool = False
    read_again: bool = False


@dataclass
class _Walk:
    job: Job
    context: Context
    results: dict[str, _Seen] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)
    recent: list[tuple[bytes, int]] = field(default_factory=list)
    in_loop: bool = False
    last_input: int | None = None
    asked: list[bool] = field(default_factory=list)  # of the call under way: whether each program asked for was run

    def run(self) -> AttemptFacts:
        job, context = self.job, self.context
        self.facts = AttemptFacts(
            job.file, job.record.query_id if job.record else "", job.record.agent if job.record else 0,
            job.record.attempt if job.record else 0, job.counted, job.record, job.gold,
        )  # fmt: skip
        ids = job.record.ids if job.record else ()
        self.sightings = Sightings(context.nodes, {*ids, *(job.gold or ())})
        self.history = History(self.sightings.was_shown)
        self.gold_lists = _gold_lists(job.gold)
        check = TrajectoryCheck(context.run, job.file)
        handlers = {
            "start": self.start, "reply": self.reply, "result": self.result, "clear": self.clear, "answer": self.answer,
            "program_run": self.program_run,
            "client_call": self.client_call, "request": self.request,
        }  # fmt: skip
        with (context.run / job.file).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    self.facts.unreadable = job.record is None or job.record.stop_reason != "interrupted"
                    if self.facts.unreadable:
                        self.facts.faults.append((number, "torn by a crash"))
                    break
                self.facts.lines, self.facts.bytes = number, self.facts.bytes + len(line)
                try:
                    event = parse_event(line)
                except ValueError as error:
                    self.facts.damaged.append((number, str(error)))
                    check.lost()
                    continue
                self.facts.faults += [(fault.line or 0, fault.message) for fault in check.faults(number, event)]
                handler = handlers.get(event["type"])
                if handler is not None:
                    handler(number, event)
        self.close()
        return self.facts

    def start(self, number: int, event: Mapping[str, Any]) -> None:
        facts = self.facts
        facts.query_id, facts.agent, facts.attempt = event["query_id"], event["agent"], event["attempt"]
        facts.mode = event["mode"]
        prompt = event["prompt"].replace(event["query"], "", 1) if event["query"] else event["prompt"]
        facts.prompt = hashlib.sha256(prompt.encode()).hexdigest()
        facts.tools = hashlib.sha256(orjson.dumps(event["tools"], option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.sightings.show(find_ids(self.question_in(event), self.context.nodes), 0, number, None)

    def question_in(self, event: Mapping[str, Any]) -> bytes:
        """The prompt, with blanks for what the harness says in it: a number there is the same in every attempt's."""
        data: bytes = event["prompt"].encode("utf-8", "replace")
        query: bytes = event["query"].encode("utf-8", "replace")
        place = data.find(query)
        if not self.context.prompt_is_ours or place < 0:
            return data
        return b" " * place + query

    def reply(self, number: int, event: Mapping[str, Any]) -> None:
        self.sightings.next_turn()
        texts = [event["text"], *(call["arguments"] for call in event["calls"])]
        self.sightings.name("\n".join(texts).encode())
        usage = event["usage"]
        cached, given = usage["cached"], usage["input"]
        if cached is not None and self.last_input is not None and self.last_input >= _CACHE_LEAST:
            self.facts.requests_with_cache += 1
            if cached < self.last_input * _CACHE_SHARE:
                self.facts.cache_resets.append(number)
        self.last_input = given

    def result(self, number: int, event: Mapping[str, Any]) -> None:
        arguments = event["arguments"] or {}
        command, call = self.follow(event["name"], arguments)
        if self.asked and not any(self.asked):
            call = Call(call.reading, ())  # all its programs were refused
        self.asked.clear()
        key = hashlib.sha256(orjson.dumps([event["name"], event["arguments"]], option=orjson.OPT_SORT_KEYS)).digest()
        self.come_back(key, command if command is not None else str(arguments.get("path", "")))
        text, ran = event["text"], event["exec"]
        data = text.encode("utf-8", "replace")
        failed = event["error"] is not None or _TRACEBACK in text
        if ran is not None:
            failed = failed or ran["termination"] != "exit" or ran["exit_code"] != 0
        self.history.ended(failed=failed)
        self.facts.calls.append(
            CallFacts(
                line=number, turn=event["turn"], tool=event["name"], kind=_kind(event["name"], call.reading),
                bash=command is not None, python=bool(call.reading.python), failed=failed, error=event["error"],
                termination=ran["termination"] if ran is not None else None,
                programs=tuple(program for program in call.programs if program is not None),
                reruns=sum(program is None for program in call.programs),
                suspicions=_suspicions(call),
                sandbox_failures=frozenset(_sandbox_failures(data, call, failed)) if ran is not None else frozenset(),
                repeated=key in self.keys, cut=event["cut"] is not None,
            )
        )  # fmt: skip
        if event["name"] in _GRAPH_TOOLS:
            self.facts.graph_calls.append(GraphCall(number, _TOOLS[event["name"]], program=False, failed=failed))
        self.keys.add(key)
        self.results[event["call_id"]] = _Seen(number, key, event["spill"])
        self.look_for_loop(number, key, hash(text))
        shown = _printed(event, data, self.context.line_cap)
        ids = ids_of_result(event["name"], shown, self.context.nodes)
        self.sightings.show(ids, event["turn"], number, event["call_id"])
        self.look_for_labels(number, data, event)

    def program_run(self, number: int, event: Mapping[str, Any]) -> None:
        self.asked.append(not event["refused"])
        self.facts.programs_asked.append((number, not event["refused"]))

    def client_call(self, number: int, event: Mapping[str, Any]) -> None:
        """A program's call: what the agent sees of it is what its program prints."""
        if event["name"] in _GRAPH_TOOLS:
            call = GraphCall(number, _TOOLS[event["name"]], program=True, failed=event["error"])
            self.facts.graph_calls.append(call)

    def follow(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str | None, Call]:
        """The call's command, None for a tool that runs none, and what it runs."""
        command, code = arguments.get("command"), arguments.get("code")
        if tool == "bash" and isinstance(command, str):
            return command, self.history.bash(command)
        if tool == "python" and isinstance(code, str):
            return None, self.history.python(code)
        return None, Call(Reading(), ())

    def come_back(self, key: bytes, text: str) -> None:
        """Note whether a call returns to results that were cut or cleared."""
        files = {f"outputs/{name}" for name in _SPILL.findall(text)} if "outputs/" in text else set()
        for seen in self.results.values():
            reads = seen.spill is not None and (seen.spill in files or "outputs/*" in files)
            seen.read_later |= reads
            if seen.cleared and (reads or seen.key == key):
                seen.read_again = True

    def clear(self, _: int, event: Mapping[str, Any]) -> None:
        self.clear_calls(event["call_ids"])

    def request(self, _: int, event: Mapping[str, Any]) -> None:
        """It names all that had been cleared by then, also where a damaged line said so first."""
        if self.facts.damaged:
            self.clear_calls(event["cleared"])

    def clear_calls(self, call_ids: Iterable[str]) -> None:
        for call_id in call_ids:
            if call_id in self.results:
                self.results[call_id].cleared = True
        self.sightings.clear(call_ids)

    def answer(self, number: int, event: Mapping[str, Any]) -> None:
        self.facts.answer_line = number
        if self.job.record is None:
            self.sightings.want(event["ids"])

    def look_for_loop(self, number: int, key: bytes, text: int) -> None:
        self.recent = [*self.recent, (key, text)][-_LOOP_ROUNDS * max(_LOOP_PERIODS) :]
        looping = any(_repeats(self.recent, period) for period in _LOOP_PERIODS)
        if looping and not self.in_loop:
            self.facts.loops.append(number)
        self.in_loop = looping

    def look_for_labels(self, number: int, data: bytes, event: Mapping[str, Any]) -> None:
        """Labels must not be where the agent can see them, in what is shown or in what was cut away."""
        canary = self.context.canary
        blob = self.context.run / "blobs" / event["blob"] if event["blob"] else None
        whole = _read(blob) if blob is not None else data
        if canary is not None and (canary in data or canary in whole):
            self.facts.canaries.append(number)
        if any(text in data for text in _ANSWER_KEYS):
            self.facts.answer_keys.append(number)
        if any(text in data for text in self.gold_lists):
            self.facts.gold_lists.append(number)
        if blob is not None:
            self.sightings.cut(blob, event["turn"], number)

    def close(self) -> None:
        facts, sightings = self.facts, self.sightings
        for seen in self.results.values():
            if seen.spill is not None:
                facts.read_later.append((seen.line, seen.read_later))
            if seen.cleared:
                facts.read_again.append((seen.line, seen.read_again))
        sightings.look_into_cut_parts(_read)
        ids = self.job.record.ids if self.job.record else ()
        facts.answer = tuple(map(sightings.of, ids))
        gold = tuple(node for node in self.job.gold or () if self.context.is_candidate(node))
        facts.gold_sightings = tuple(map(sightings.of, gold))
        facts.hit = bool(ids) and not facts.failed and score_answer(ids, gold, self.context.is_candidate).hit1 == 1


def _kind(tool: str, reading: Reading) -> Kind:
    if tool in _TOOLS:
        return _TOOLS[tool]
    names = {command.name for command in reading.commands}
    if reading.python:
        return "python"
    return "search" if names & _SEARCHES else "read" if names & _READS else "other"


def _sandbox_failures(data: bytes, call: Call, failed: bool) -> set[str]:
    return sandbox_failures(data, {command.name for command in call.reading.commands}, failed=failed)


def _suspicions(call: Call) -> frozenset[str]:
    found: set[str] = set()
    for command in call.reading.commands:
        found |= of_command(command)
    for program in call.programs:
        if program is not None:
            found |= program.suspicions
    return frozenset(found)


def _printed(event: Mapping[str, Any], data: bytes, line_cap: int | None) -> bytes:
    """A result's text (`data` in UTF-8) with blanks where the harness speaks, so that bytes keep their places."""
    text = event["text"]
    parts: list[bytes] = []
    done = 0
    for begin, end in own_words(event, line_cap):
        first, last = (len(text[:place].encode("utf-8", "replace")) for place in (begin, end))
        parts += [data[done:first], b" " * (last - first)]
        done = last
    return b"".join([*parts, data[done:]]) if parts else data


def _gold_lists(gold: tuple[int, ...] | None) -> tuple[bytes, ...]:
    """A question's gold as a label file would have it, where its order is not one that a program's output has too."""
    if gold is None or len(gold) < _LEAST_LIST or list(gold) in (sorted(gold), sorted(gold, reverse=True)):
        return ()
    return tuple(separator.join(map(str, gold)).encode() for separator in (", ", ",", "|"))


def _repeats(recent: list[tuple[bytes, int]], period: int) -> bool:
    """Whether the last calls are the same `period` calls with the same results, over and over."""
    tail = recent[-period * _LOOP_ROUNDS :]
    return len(tail) == period * _LOOP_ROUNDS and tail == tail[:period] * _LOOP_ROUNDS


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # that it's missing is among the faults
