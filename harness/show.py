"""A saved run for reading in a terminal: the list of its questions, or one attempt turn by turn.

Everything in a trajectory is of unknown origin, so control characters are written out and nothing is taken as markup.
What models and programs wrote stands behind a bar; what the harness says has none, so that an output can't pass for it.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from harness.audit.checks.answers import error_class
from harness.audit.facts import AttemptFacts, Sighting
from harness.errors import UserError
from harness.events import Damage, Reading
from harness.ledger import AttemptRecord, fold
from harness.own_words import Span, own_words
from harness.runfiles import line_cap
from harness.saved import SavedRun
from harness.servers import asked_at
from harness.text import count_of, duration, line, money, number, plain, shorten, size

_BAR = "│ "
_FOLDED_LINES = 12  # of an output, half from its head and half from its tail
_FOLDED_WIDTH = 400  # characters of such a line
_FOLDED_CALLS = 10  # of a program's calls of graph tools, one after the other
_QUESTION_WIDTH = 60
_DAMAGED = "damaged"  # what stands for a line that holds no event
_REASONS = 10  # for which attempts failed that are listed
HEADER = ("id", "question", "answer", "verdict", "class", "ended", "attempts", "turns", "time", "cost")
FORM = "lsl   rrrr"  # its columns: figures are set right, and the question is shortened where there is little room
SPARED = ("attempts", "ended", "cost", "time", "class", "turns", "answer")  # what a narrow terminal does without
_CODE = {"bash": ("command", "bash"), "python": ("code", "python")}  # tool -> the argument with code, its language


def question_rows(run: SavedRun, class_of: Callable[[AttemptRecord], str]) -> list[tuple[str, ...]]:
    """One row per question and agent, as HEADER says. `class_of` tells an attempt's error class."""
    rows: list[tuple[str, ...]] = []
    states = fold(run.records)
    count = run.manifest["mode"]["agents"].get("count", 1)
    for query_id in run.manifest["questions"]["ids"]:
        question = run.questions.get(query_id)
        text = shorten(question.text, _QUESTION_WIDTH) if question else ""
        mine = [state for agent in range(count) if (state := states.get((query_id, agent))) is not None]
        if not mine:
            rows.append((query_id, text, "", "not asked", *[""] * (len(HEADER) - 4)))
        for state in mine:
            last = state.records[-1]
            name = f"{query_id} agent {state.agent + 1}" if len(mine) > 1 else query_id
            answer = ", ".join(str(node) for node in last.ids[:3]) + (" …" if len(last.ids) > 3 else "")
            rows.append(
                (name, text, answer, run.verdict(last), class_of(last), last.stop_reason, str(len(state.records)),
                 str(last.turns), duration(last.times.wall), money(total_cost(state.records)))
            )  # fmt: skip
    return rows


def total_cost(records: Iterable[AttemptRecord]) -> float | None:
    """US dollars of all these attempts; None where one's are unknown."""
    costs = [record.cost for record in records]
    return None if None in costs else math.fsum(cost for cost in costs if cost is not None)


def failures(records: Iterable[AttemptRecord]) -> list[str]:
    """Why attempts failed that did not fail by being stopped: one line a reason, the commonest first."""
    failed = [record for record in records if record.is_infrastructure and record.stop_reason != "interrupted"]
    reasons = Counter(f"{record.stop_reason}: {line(record.error or 'no reason is recorded')}" for record in failed)
    shown = [f"{count_of(count, 'attempt')} failed, {reason}" for reason, count in reasons.most_common(_REASONS)]
    more = len(reasons) - len(shown)
    return [*shown, f"and {count_of(more, 'other reason')}"] if more else shown


class AttemptPrinter:
    """Prints one attempt's trajectory to `console`; `full` leaves nothing folded."""

    def __init__(self, run: SavedRun, console: Console, full: bool) -> None:
        self._run, self._console, self._full = run, console, full
        self._line_cap = line_cap(run.manifest)
        self.damaged: list[Damage] = []  # of the attempt printed last
        self._cleared: dict[str, int] = {}
        self._printers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "start": self._start, "request": self._request, "reply": self._reply, "result": self._result,
            "clear": self._clear, "notice": self._notice, "answer": self._answer, "end": self._end,
            "client_call": self._client_call, "program_run": self._program_run, _DAMAGED: self._lost,
        }  # fmt: skip

    def print(self, record: AttemptRecord) -> None:
        """Print the attempt, with a mark for each line that can't be read. Raises UserError where its file can't be."""
        path = self._run.path / record.trajectory
        hint = f"`harness check {self._run.path}` says what else is wrong"
        reading = Reading(path)
        try:
            numbered: list[tuple[int, Mapping[str, Any]]] = list(reading)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} can't be read: {error}", hint) from None
        self.damaged = reading.damaged
        marks = [(damage.line, {"type": _DAMAGED, "line": damage.line, "why": damage.why}) for damage in self.damaged]
        events = [event for _, event in sorted([*numbered, *marks], key=lambda each: each[0])]
        clearings = [event for event in events if event["type"] == "clear"]
        self._cleared = {call: event["turn"] for event in clearings for call in event["call_ids"]}
        for by_program, group in groupby(events, lambda event: event["type"] == "client_call"):
            shown = list(group)
            more = len(shown) - _FOLDED_CALLS if by_program and not self._full else 0
            for event in shown[:_FOLDED_CALLS] if more > 0 else shown:
                self._printers[event["type"]](event)
            if more > 0:
                self._say(f"… {count_of(more, 'call')} folded (--full shows them) …", "dim")
        if where := asked_at(self._run.manifest, self._run.records.index(record) + 1):
            self._say(f"the model was asked at {where}", "dim")
        self._ending(record)

    def _start(self, event: Mapping[str, Any]) -> None:
        self._say(f"question {event['query_id']}: {line(event['query'])}", "bold")
        self._say(f"mode {event['mode']}, agent {event['agent'] + 1}, attempt {event['attempt'] + 1}", "dim")
        tools = ", ".join(tool["name"] for tool in event["tools"])
        self._say(f"tools: {tools or 'none'}", "dim")
        if event.get("system"):
            self._rule("system prompt")
            self._text(event["system"])
        self._rule("prompt")
        self._text(event["prompt"])

    def _request(self, event: Mapping[str, Any]) -> None:
        self._rule(f"turn {event['turn']}")
        cleared = f", {count_of(len(event['cleared']), 'result')} cleared" if event["cleared"] else ""
        self._say(
            f"request: {count_of(event['entries'], 'message')}, {size(event['bytes'])},"
            f" about {count_of(event['tokens_estimate'], 'token')}{cleared}",
            "dim",
        )

    def _reply(self, event: Mapping[str, Any]) -> None:
        usage = event["usage"]
        waited = f", waited {duration(event['waited'])}" if event["waited"] else ""
        self._say(
            f"reply: {duration(event['latency'])}{waited}, {count_of(usage['input'], 'token')} in"
            f" ({number(usage['cached'])} cached), {number(usage['output'])} out",
            "dim",
        )
        for note in event["notes"]:
            self._say(f"note: {line(str(dict(note)))}", "yellow")
        if event["text"].strip():
            self._text(event["text"].strip(), folds=False)

    def _result(self, event: Mapping[str, Any]) -> None:
        self._call(event)
        if event["error"]:
            self._say(f"the model's mistake: {event['error']}", "yellow")
        self._text(event["text"], "dim", own_words(event, self._line_cap))
        if event["exec"]:
            ran = event["exec"]
            self._say(
                f"{ran['termination']}, {size(ran['total_bytes'])}, {count_of(ran['lines'], 'line')},"
                f" {duration(ran['wall'])} wall, {duration(ran['cpu'])} cpu, {size(ran['memory'])}",
                "dim",
            )
        if event["cut"]:
            saved = f", and saved as {self._run.path / 'blobs' / event['blob']}" if event["blob"] else ""
            self._say(f"cut: {cut_in_words(event['cut'])}{saved}", "yellow")
        if event["call_id"] in self._cleared:
            self._say(f"cleared from the conversation before turn {self._cleared[event['call_id']]}", "yellow")

    def _call(self, event: Mapping[str, Any]) -> None:
        arguments = event["arguments"] or {}
        key, language = _CODE.get(event["name"], ("", ""))
        code = arguments.get(key)
        rows = f": {count_of(len(code.splitlines()), 'line')}" if isinstance(code, str) else ""
        self._say(f"{line(event['name'])} {line(event['call_id'])}{rows}", "cyan")
        if isinstance(code, str):
            self._code(plain(code), language)
            arguments = {name: value for name, value in arguments.items() if name != key}
        for name, value in arguments.items():
            self._say(f"{line(name)}: {line(str(value))}")

    def _client_call(self, event: Mapping[str, Any]) -> None:
        """A call of a graph tool that a command made."""
        given = ", ".join(f"{line(name)}={line(repr(value))}" for name, value in event["arguments"].items())
        failed = ", an error" if event["error"] else ""
        self._say(
            f"{line(event['name'])}({given}): {count_of(event['characters'], 'character')},"
            f" {duration(event['seconds'])}{failed}, called by {line(event['program'])}",
            "cyan",
        )

    def _program_run(self, event: Mapping[str, Any]) -> None:
        """The one program of a mode that allows one, or one too many."""
        given = " ".join(map(shlex.quote, event["arguments"]))
        what = line(f"python3 {given} in {event['cwd']}")
        if event["refused"]:
            self._say(f"{what}: refused, one had been run", "yellow")
            return
        ended = "ended with its command" if event["termination"] is None else event["termination"]
        code = "" if event["exit_code"] is None else f", exit code {event['exit_code']}"
        saved = f", saved as {self._run.path / 'blobs' / event['blob']}" if event["blob"] else ""
        self._say(
            f"{what}: {ended}{code}, {duration(event['wall'])} wall, {duration(event['cpu'])} cpu,"
            f" {size(event['memory'])}{saved}",
            "cyan",
        )

    def _code(self, code: str, language: str) -> None:
        """Code as it was, tabs too: what is copied from here must run. A terminal wraps it by itself."""
        if self._console.is_terminal:
            syntax = Syntax(code, language, theme="ansi_dark", background_color="default")
            self._console.print(syntax.highlight(code), soft_wrap=True, end="")
        else:
            self._console.file.write(f"{code}\n")  # printing through rich would expand tabs

    def _clear(self, event: Mapping[str, Any]) -> None:
        what = count_of(len(event["call_ids"]), "result")
        before, after = count_of(event["tokens_before"], "token"), number(event["tokens_after"])
        self._say(f"cleared {what}: about {before} before, {after} after", "yellow")

    def _notice(self, event: Mapping[str, Any]) -> None:
        self._say(f"the harness said: {line(event['text'])}", "yellow")

    def _answer(self, event: Mapping[str, Any]) -> None:
        self._rule("answer")
        for repair in event["repairs"]:
            self._say(f"repaired: {line(repair)}", "yellow")
        for rejected in event["rejected"]:
            self._say(f"rejected: {line(str(rejected['value']))} ({rejected['why']})", "yellow")

    def _end(self, event: Mapping[str, Any]) -> None:
        self._say(event["stop_reason"] + (f", {event['limit']} reached" if event["limit"] else ""))
        if event["error"]:
            self._say(f"error: {line(event['error'])}", "red")

    def _lost(self, event: Mapping[str, Any]) -> None:
        self._say(f"line {event['line']:,} of the trajectory can't be read: {line(event['why'])}", "red")

    def _ending(self, record: AttemptRecord) -> None:
        run = self._run
        question = run.questions.get(record.query_id)
        gold = set(question.gold) if question else set()
        facts = run.facts(record)
        verdict, found = run.verdict(record), error_class(facts)
        told = run.lacking or found == verdict
        self._say(f"verdict: {verdict}" if told else f"verdict: {verdict}; error class: {found}", "bold")
        for rank, seen in enumerate(facts.answer, 1):
            right = seen.node in gold
            name = f"{run.name_of(seen.node)}{'  right' if right else ''}"
            self._say(f"{rank:3}  {seen.node}  {name}  [{where_seen(seen, facts)}]", "green" if right else "")
        if run.lacking:
            self._say(f"gold is not known: {run.lacking}", "yellow")
        missed = [seen for seen in facts.gold_sightings if seen.node not in record.ids]
        if missed:
            self._say("gold that was not given:")
        for seen in missed:
            self._say(f"     {seen.node}  {run.name_of(seen.node)}  [{where_seen(seen, facts)}]")
        usage = record.usage
        self._say(
            f"{count_of(record.turns, 'turn')}, {duration(record.times.wall)}, {count_of(usage.get('input'), 'token')}"
            f" in, {number(usage.get('output'))} out, cost {money(record.cost)}",
            "dim",
        )

    def _text(self, text: str, style: str = "", own: Sequence[Span] = (), *, folds: bool = True) -> None:
        """A text of a model or a program behind a bar, without one where the harness speaks in it (`own`)."""
        for part, is_own in parted(text, own):
            rows = plain(part).split("\n")
            if is_own:
                for row in rows:
                    self._say(row, "cyan")
                continue
            head, between, tail = folded(rows) if folds and not self._full else (rows, "", [])
            self._barred(head, style)
            if between:
                self._say(between, "blue")
            self._barred(tail, style)

    def _barred(self, rows: Iterable[str], style: str) -> None:
        for row in rows:
            self._console.print(Text.assemble((_BAR, "blue"), (row, style)), soft_wrap=True)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(plain(text), style=style), soft_wrap=True)

    def _rule(self, title: str) -> None:
        self._console.print(Rule(Text(title), align="left", characters="-"))


def where_seen(seen: Sighting, facts: AttemptFacts) -> str:
    """Where an id first appeared in what the agent saw, as far as its trajectory can be read."""
    own = ", named by the agent before" if seen.named_before else ""
    if seen.state == "cut":
        return f"only in a part that was cut away in turn {seen.turn}{own}"
    if seen.state == "never":
        return f"{'not shown in what can be read' if facts.is_partial else 'never shown'}{own}"
    place = f"first shown in turn {seen.turn}, byte {seen.offset:,}" if seen.turn else "in the question"
    return f"{place}{', cleared later' if seen.state == 'cleared' else ''}{own}"


def parted(text: str, own: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """A text in parts, each with whether it's the harness's own words; line breaks between them are left out.

    Words of the harness inside of a line get a line of their own.
    """
    done = 0
    for begin, end in own:
        if before := text[done:begin].removesuffix("\n"):
            yield before, False
        yield text[begin:end], True
        done = end + text.startswith("\n", end)
    if rest := text[done:].removesuffix("\n") if own else text:
        yield rest, False


def folded(rows: list[str]) -> tuple[list[str], str, list[str]]:
    """Head and tail of a long text's lines, and what to say between them; of a short text all, and nothing."""
    rows = [_folded_line(row) for row in rows]
    half = _FOLDED_LINES // 2
    if len(rows) <= _FOLDED_LINES + 3:
        return rows, "", []
    return rows[:half], f"… {count_of(len(rows) - 2 * half, 'line')} folded (--full shows them) …", rows[-half:]


def _folded_line(row: str) -> str:
    more = len(row) - _FOLDED_WIDTH
    return row if more <= 0 else f"{row[:_FOLDED_WIDTH]} … {count_of(more, 'character')} folded …"


def cut_in_words(cut: Mapping[str, Any]) -> str:
    """What was cut from an output, and where the whole of it was for the agent."""
    parts = []
    if cut["characters"]:
        parts.append(f"{count_of(cut['characters'], 'character')} left out of the middle")
    if cut["lines"]:
        parts.append(f"{count_of(cut['lines'], 'line')} shortened")
    where = f"the output is in the sandbox as {line(cut['spill'])}" if cut["spill"] else "the rest was lost"
    return f"{', '.join(parts)}; {where}"
