"""Tells a person how a run goes: one line per question, and on a terminal a bar with hits, tokens, cost, time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from harness.ledger import AgentState, AttemptRecord, RetryPolicy, fold
from harness.metrics import score_answer
from harness.questions import Question
from harness.text import count_of, duration, line, money, shorten

_SHOWN_IDS = 3
_ID_WIDTH = 60
_NARROWEST = 20  # cells for a question on a small terminal
_PLAIN_WIDTH = 120  # of a line where there is no terminal


@dataclass
class Tally:
    """What the attempts so far add up to. `hits` counts first answers that are right, of `answered` with known gold."""

    hits: int = 0
    answered: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    states: dict[tuple[str, int], AgentState] = field(default_factory=dict)

    def add(self, record: AttemptRecord, verdict: str, retry: RetryPolicy) -> bool:
        """Count an attempt; says whether it was its question's last."""
        self.tokens += (record.usage.get("input") or 0) + (record.usage.get("output") or 0)
        self.cost = None if self.cost is None or record.cost is None else self.cost + record.cost
        key = (record.query_id, record.agent)
        before = self.states[key].records if key in self.states else ()
        self.states[key] = AgentState(*key, (*before, record))
        if self.states[key].is_open(retry):
            return False
        self.failed += verdict == "failed"
        self.hits += verdict == "hit"
        self.answered += verdict in ("hit", "found", "miss")
        return True


class Display:
    """The terminal that several runs share: lines above, below a bar for each. Without a terminal only lines.

    No `bar` where somebody else writes to the terminal meanwhile.
    """

    def __init__(self, bar: bool = True) -> None:
        self.console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._bars: set[TaskID] = set()
        self._progress: Progress | None = None
        if bar and self.console.is_terminal:
            self._progress = Progress(
                BarColumn(bar_width=20),
                MofNCompleteColumn(table_column=_one_line()),
                _TallyColumn(table_column=_one_line()),
                TimeRemainingColumn(compact=True, table_column=_one_line()),
                TextColumn("left", table_column=_one_line()),
                TextColumn("{task.description}", table_column=_one_line()),
                console=self.console,
            )

    def open_bar(self, label: str, total: int, done: int, tally: Tally) -> TaskID | None:
        """Show a bar, where there is a terminal."""
        if self._progress is None:
            return None
        task = self._progress.add_task(label, total=total, completed=done, tally=tally)
        self._bars.add(task)
        self._progress.start()
        return task

    def advance(self, task: TaskID) -> None:
        """Move a bar on by one."""
        if self._progress is not None:
            self._progress.advance(task)

    def close_bar(self, task: TaskID) -> None:
        """A bar is done with; with the last of them all go."""
        self._bars.discard(task)
        if self._progress is not None and not self._bars:
            self._progress.stop()


class RunListener:
    """Prints to stderr. `title` says what runs, `label` tells the runs of one display apart (empty where there is one),
    `name_of` gives a node's name, `is_candidate` says what can be an answer.

    `earlier` are the attempts of the sessions before a resume, which count but aren't printed again.
    """

    def __init__(
        self,
        display: Display,
        label: str,
        title: str,
        name_of: Callable[[int], str],
        is_candidate: Callable[[int], bool],
        retry: RetryPolicy,
        earlier: Iterable[AttemptRecord] = (),
        questions: Iterable[Question] = (),
    ) -> None:
        self._display, self._label, self._title = display, label, title
        self._console = display.console
        self._name_of, self._is_candidate, self._retry = name_of, is_candidate, retry
        self._tally = Tally()
        self._count_earlier(list(earlier), {question.id: question for question in questions})
        self._task: TaskID | None = None

    def started(self, total: int, done: int) -> None:
        """Say what runs and show the bar, where there is a terminal."""
        already = f", {count_of(done, 'attempt')} of {total} done before" if done else ""
        self._print(line(self._title + already))
        self._task = self._display.open_bar(self._label, total, done, self._tally)

    def attempt_finished(self, record: AttemptRecord, question: Question) -> None:
        """Print the attempt's line and move the bar on."""
        verdict = self._verdict(record, question)
        final = self._tally.add(record, verdict, self._retry)
        self._print(self._line(record, question, verdict, final))
        if self._task is not None and final:
            self._display.advance(self._task)

    def notice(self, text: str) -> None:
        """Print a line."""
        self._print(line(text))

    def closed(self) -> None:
        """The run's bar is done with."""
        if self._task is not None:
            self._display.close_bar(self._task)

    def _count_earlier(self, records: list[AttemptRecord], questions: dict[str, Question]) -> None:
        for (query_id, _), state in fold(records).items():
            for record in state.records:
                if query_id in questions:
                    self._tally.add(record, self._verdict(record, questions[query_id]), self._retry)

    def _verdict(self, record: AttemptRecord, question: Question) -> str:
        if record.is_infrastructure:
            return "failed"
        if not question.gold:
            return "unscored"
        scores = score_answer(record.ids, question.gold, self._is_candidate)
        return "hit" if scores.hit1 else "found" if scores.mrr else "miss"

    def _line(self, record: AttemptRecord, question: Question, verdict: str, final: bool) -> str:
        mark = self._mark(record, question, verdict, final)
        end = f"{mark}  {count_of(record.turns, 'turn')}  {duration(record.times.wall)}"
        answer = self._answer(record)
        start = f"{line(self._label)} {shorten(record.query_id, _ID_WIDTH)}".strip()
        if record.agent:
            start += f" agent {record.agent + 1}"
        width = self._console.width if self._console.is_terminal else _PLAIN_WIDTH
        room = max(_NARROWEST, width - cell_len(start) - cell_len(answer) - cell_len(end) - 6)
        return f"{start}  {shorten(question.text, room)}  {answer}  {end}"

    def _mark(self, record: AttemptRecord, question: Question, verdict: str, final: bool) -> str:
        if verdict == "found":
            rank = round(1 / score_answer(record.ids, question.gold, self._is_candidate).mrr)
            return f"miss (right at rank {rank})"
        if verdict == "failed":
            return f"failed ({record.stop_reason})" + ("" if final else ", to be tried again")
        return verdict if record.stop_reason == "answered" else f"{verdict} ({record.stop_reason})"

    def _answer(self, record: AttemptRecord) -> str:
        if not record.ids:
            return "no answer"
        first = f"{record.ids[0]} {shorten(self._name_of(record.ids[0]), 24)}".strip()
        more = [str(node) for node in record.ids[1:_SHOWN_IDS]]
        rest = len(record.ids) - _SHOWN_IDS
        return ", ".join([first, *more]) + (f" +{rest}" if rest > 0 else "")

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def _one_line() -> Column:
    """A bar's part that is cut, not wrapped, where the terminal is too narrow."""
    return Column(no_wrap=True, overflow="ellipsis")


class _TallyColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        tally: Tally = task.fields["tally"]
        parts = [f"hits {tally.hits}/{tally.answered}"]
        if tally.tokens:
            parts.append(count_of(tally.tokens, "token"))
        if tally.cost:
            parts.append(money(tally.cost))
        if tally.failed:
            parts.append(f"{tally.failed} failed")
        return Text("  ".join(parts))
