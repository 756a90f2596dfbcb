"""The agent loop: ask the model, run what it calls, show it the results, until it answers or a limit is reached.

One attempt is one conversation, each step in the trajectory before the next begins; `context.py` says what is shown.
"""

from __future__ import annotations

from typing import Any, NoReturn

from harness.accounting import Account
from harness.answer import Answer, Parsed, parse_answer, validate
from harness.attempt import Outcome, Task
from harness.context import Conversation
from harness.errors import BackboneError, ContextOverflow, HarnessError
from harness.ledger import INFRASTRUCTURE, StopReason
from harness.messages import Reply, Request, ToolCall
from harness.observe import Observation
from harness.prompt import ANSWERED, LAST_TURN, NEAR_LIMIT, NO_ANSWER, TRUNCATED
from harness.tools import ToolContext, mistake, parse_arguments
from harness.tools.answer import ANSWER_TOOL
from harness.trajectory import TrajectoryWriter
from sandbox import SandboxLost, SandboxUnavailable

_FORMAT_ERRORS = ("unknown_tool", "malformed_arguments", "invalid_arguments")


class _Stop(Exception):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def run_attempt(task: Task, log: TrajectoryWriter, account: Account) -> Outcome:
    """Run one attempt to its end and return how it ended; infrastructure failures are outcomes, bugs propagate."""
    return _Attempt(task, log, account).run()


class _Attempt:
    def __init__(self, task: Task, log: TrajectoryWriter, account: Account) -> None:
        self.task, self.log, self.account = task, log, account
        self.mode, self.limits = task.mode, task.mode.limits
        overhead = sum(len(spec.description) + len(str(spec.parameters)) for spec in task.toolbox.specs)
        self.conversation = Conversation(task.mode.context, task.window, overhead)
        self.mistakes_in_a_row = 0
        self.warned = False
        self.counts: dict[str, int] = {}

    def run(self) -> Outcome:
        task, opening = self.task, self.task.opening()
        self.log.write("start", **opening)
        if task.system:
            self.conversation.instruct(task.system)
        self.conversation.say(opening["prompt"])
        try:
            while True:
                self._turn()
        except _Stop as stop:
            outcome = stop.outcome
        except (SandboxLost, SandboxUnavailable) as error:
            stopped = self.account.cancelled  # Ctrl-C at a terminal can take a sandbox that is just being opened, too
            self.count("lost_in_call", task.slot.in_use and not stopped)
            outcome = Outcome("interrupted" if stopped else "sandbox_lost", error=str(error), failure=error)
        except BackboneError as error:
            self.count(error.counted_as, bool(error.counted_as))
            outcome = Outcome(self.account.why_no_reply(self.limits), error=str(error), failure=error)
        except ContextOverflow as error:
            outcome = Outcome("context_overflow", error=str(error), failure=error)
        if outcome.answer is None and task.selection is not None and outcome.stop_reason not in INFRASTRUCTURE:
            outcome.answer = self._validated(Parsed(list(task.selection.nodes)), "")
        outcome.counts = self.counts
        return outcome

    def _turn(self) -> None:
        """One request and all that follows from it. Raises _Stop when the attempt is over."""
        if self.account.cancelled:
            raise _Stop(Outcome("interrupted"))
        limit = self.account.limit_reached(self.limits)
        if limit and not self.limits.last_turn:
            raise _Stop(Outcome(limit))
        if limit:
            self._notice(LAST_TURN.format(limit=limit.replace("_", " ")))
        elif self.limits.warn and not self.warned and self.account.near_limit(self.limits):
            self.warned = True
            turns, seconds = self.account.left(self.limits)
            self._notice(NEAR_LIMIT.format(turns=turns, seconds=seconds))
        try:
            reply = self._ask(last=limit is not None)
        except BackboneError:
            if limit or self.account.why_no_reply(self.limits) != "time_limit":
                raise
            self.account.turn -= 1
            return  # time ran out on this request; the next one is the last
        if reply.finish in ("content_filter", "refusal"):
            raise _Stop(Outcome("refused", limit=limit))
        if reply.entry.calls:
            self._run_calls(reply, limit)
        else:
            self._read_answer(reply, limit)
        if limit:
            raise _Stop(Outcome(limit))
        if self.mistakes_in_a_row >= self.limits.format_errors:
            raise _Stop(Outcome("format_errors" if reply.entry.calls else "no_answer"))

    def _ask(self, *, last: bool) -> Reply:
        """Clear what must be cleared, then one request; an overflow is met by clearing and asking once more."""
        self.account.turn += 1
        self._clear()
        try:
            reply = self._request(last=last)
        except ContextOverflow:
            if not self._clear(force=True):
                raise
            reply = self._request(last=last)
        self.account.add(reply)
        self.count("input_cut", self.conversation.reply(reply))
        self.log.reply(self.account.turn, reply)
        for note in reply.notes:
            self.count(str(note.get("kind", "note")))
        return reply

    def _request(self, *, last: bool) -> Reply:
        entries = self.conversation.view()
        self.log.write(
            "request", turn=self.account.turn, entries=len(entries), bytes=self.conversation.size,
            tokens_estimate=self.conversation.tokens(), cleared=self.conversation.cleared,
            digest=self.conversation.digest(),
        )  # fmt: skip
        request = Request(
            key=self.task.key, turn=self.account.turn, query=self.task.query, entries=entries,
            tools=self.task.toolbox.specs, tool_choice="none" if last else self.mode.tool_choice,
            time_left=self.account.seconds_for_request(self.limits, last=last),
        )  # fmt: skip
        try:
            with self.account.time("model"):
                return self.task.backbone.complete(request)
        except HarnessError as error:
            self.account.waited(error.waited)
            raise

    def _clear(self, *, force: bool = False) -> bool:
        clearing = self.conversation.clear(self.account.turn, self.task.slot.save, force=force)
        if clearing is not None:
            self.log.write("clear", turn=self.account.turn, **vars(clearing))
            self.count("clearings")
        return clearing is not None

    def _run_calls(self, reply: Reply, limit: StopReason | None) -> None:
        """Every call gets exactly one result, in order, whatever becomes of the others."""
        failed, given = 0, None
        for call in reply.entry.calls:
            arguments = parse_arguments(call.arguments)
            seen = self._run_call(call, arguments, reply, limit) if given is None else mistake("not_executed", ANSWERED)
            self.conversation.result(call.id, self.account.turn, seen)
            self.log.result(self.account.turn, call, arguments, seen)
            self.count("calls")
            self.count(seen.error or "", seen.error is not None)
            failed += seen.error in _FORMAT_ERRORS
            given = seen.answer if given is None else given
        if given is not None:
            self._finish(Parsed(list(given)), reply.entry.text, limit)
        self.mistakes_in_a_row = self.mistakes_in_a_row + 1 if failed == len(reply.entry.calls) else 0

    def _run_call(
        self, call: ToolCall, arguments: dict[str, Any] | None, reply: Reply, limit: StopReason | None
    ) -> Observation:
        if limit is not None and call.name != ANSWER_TOOL:
            return mistake("not_executed", "not run: the limit is reached")
        if reply.finish == "length" and arguments is None:
            return mistake("malformed_arguments", TRUNCATED)
        context = ToolContext(
            sandbox=self.task.slot.sandbox, spills=self.task.slot.spills, output=self.mode.output,
            cap=self.conversation.room(self.mode.output.cap), seconds=self.account.seconds_left(self.limits),
        )  # fmt: skip
        with self.account.time("sandbox"):
            return self.task.toolbox.dispatch(call, arguments, context)

    def _read_answer(self, reply: Reply, limit: StopReason | None) -> None:
        """A reply without calls is an answer, or the model is told what is missing."""
        parsed = parse_answer(reply.entry.text) if reply.finish == "stop" and self.task.reads_messages else Parsed(None)
        if parsed.values is not None:
            self._finish(parsed, reply.entry.text, limit)
        self.mistakes_in_a_row += 1
        self.count("replies_without_answer")
        if limit is None:
            self._notice(TRUNCATED if reply.finish == "length" else NO_ANSWER[self.mode.answer.source])

    def _finish(self, parsed: Parsed, text: str, limit: StopReason | None) -> NoReturn:
        raise _Stop(Outcome("answered", self._validated(parsed, text), limit))

    def _validated(self, parsed: Parsed, text: str) -> Answer:
        return validate(self.task.resolve(parsed), self.task.nodes, self.mode.answer.max_ids, text)

    def _notice(self, text: str) -> None:
        self.conversation.say(text)
        self.log.write("notice", turn=self.account.turn + 1, text=text)

    def count(self, name: str, by: int = 1) -> None:
        if by:
            self.counts[name] = self.counts.get(name, 0) + by
