"""What each question of a saved run came to: scores, attempts, tokens, cost and time. Needs no key, no sandbox.

A question is counted once, whatever the number of its agents and attempts: scores are those of the agents' fused
answer; tokens, cost, turns, calls and times are sums over all of its attempts, those that were retried too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from exporter import Export
from harness.errors import UserError
from harness.events import Reading, trajectory_path
from harness.fuse import answer_of, usable_ids
from harness.kb import TOOLS as CLIENT_TOOLS
from harness.ledger import AgentState, AttemptRecord, fold, read_ledger, total_usage
from harness.messages import Usage
from harness.metrics import METRICS, ZERO, Scores, score_answer
from harness.prices import PriceList, cost
from harness.questions import Question
from harness.runfiles import read_manifest, recorded_export, recorded_questions

TIMES = ("wall", "working", "model", "waiting", "sandbox", "queue", "harness")
USAGE = ("input", "cached", "output", "reasoning")
ASKED = ("scored", "failed")  # the states of questions that were asked to their end, and that figures count
CALLS = "calls."  # before a tool's name: how often the agents called it


@dataclass(frozen=True)
class QuestionResult:
    """One question of a run. `state` is scored, failed, open (not asked to the end) or without_gold.

    `agents` has each agent's own scores, of its last attempt; `first` the scores of the first attempts' fused answer.
    `ids` is the fused answer. `cost` is in US dollars, None where an attempt's is unknown.
    """

    graph: str
    question: Question
    state: str
    scores: Scores
    first: Scores
    agents: tuple[Scores, ...]
    ids: tuple[int, ...]
    attempts: int
    failed_agents: int
    records: tuple[AttemptRecord, ...]
    cost: float | None

    @property
    def asked(self) -> bool:
        """Whether it was asked to its end, and counts."""
        return self.state in ASKED

    @cached_property
    def usage(self) -> dict[str, int | None]:
        """Tokens per class, None where no attempt's are known."""
        return total_usage([record.usage for record in self.records])

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together; None where either is unknown."""
        given, made = self.usage["input"], self.usage["output"]
        return None if given is None or made is None else given + made

    @property
    def turns(self) -> int:
        """Requests to the model."""
        return sum(record.turns for record in self.records)

    @property
    def seconds(self) -> float:
        """Working time: wall time without waits for rate limits and queues."""
        return self.time("working")

    @property
    def rank(self) -> int | None:
        """The place of the first right node in the answer, from 1."""
        return round(1 / self.scores.mrr) if self.scores.mrr else None

    def time(self, part: str) -> float:
        """Seconds of one part of the ledger's times."""
        return math.fsum(getattr(record.times, part) for record in self.records)

    @property
    def stop_reason(self) -> str | None:
        """Why the last attempt stopped; `mixed` where several agents' last attempts stopped for different reasons."""
        last = {record.agent: record.stop_reason for record in self.records}
        reasons = set(last.values())
        return None if not reasons else reasons.pop() if len(reasons) == 1 else "mixed"


@dataclass(frozen=True)
class RunResults:
    """A run with the results of its questions, by id, in the order they were to be asked."""

    path: Path
    manifest: dict[str, Any]
    questions: dict[str, QuestionResult]
    export: Export
    damaged: list[str] = field(default_factory=list)  # lines that `tool_calls` could not read, as FILE:LINE

    @property
    def graph(self) -> str:
        """The graph's name, as it was given."""
        return str(self.manifest["graph"])

    @property
    def mode(self) -> dict[str, Any]:
        """The resolved mode."""
        mode: dict[str, Any] = self.manifest["mode"]
        return mode

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.manifest["model"]["name"])

    @cached_property
    def tool_calls(self) -> dict[str, Counter[str]]:
        """For each question how often each tool was called. Reads the trajectories; fills `damaged`."""
        return {
            key: Counter(
                name
                for record in result.records
                for name in self._called_tools(trajectory_path(key, record.agent, record.attempt))
            )
            for key, result in self.questions.items()
        }

    def _called_tools(self, file: Path) -> Iterator[str]:
        """Names of the tools that an attempt called, one for each call. Raises UserError."""
        reading = Reading(self.path / file)
        try:
            for _, event in reading:
                if event["type"] in ("result", "client_call"):
                    yield event["name"]
        except (OSError, ValueError) as error:
            raise UserError(f"trajectory {reading.path} can't be read: {error}") from None
        self.damaged.extend(f"{file}:{damage.line}" for damage in reading.damaged)

    def field_names(self) -> list[str]:
        """Every name that `field` knows for this run. Calls that programs make through the client count as calls."""
        tools = [*self.mode["tools"], *(CLIENT_TOOLS if self.mode["view"].get("client") else ())]
        counted = sorted({f"counts.{name}" for r in self.questions.values() for a in r.records for name in a.counts})
        return [*_FIELDS, *counted, *(f"{CALLS}{tool}" for tool in tools)]

    def field(self, name: str, identity: str) -> Any:
        """The value of a field of one question. Raises KeyError for an unknown question."""
        result = self.questions[identity]
        if name in _FIELDS:
            return _FIELDS[name](result)
        if name.startswith(CALLS):
            return self.tool_calls[identity][name.removeprefix(CALLS)]
        return sum(record.counts.get(name.removeprefix("counts."), 0) for record in result.records)


def _score(position: int) -> Callable[[QuestionResult], float]:
    return lambda result: result.scores[position]


def _usage(name: str) -> Callable[[QuestionResult], int | None]:
    return lambda result: result.usage[name]


def _time(name: str) -> Callable[[QuestionResult], float]:
    return lambda result: result.time(name)


def _in_answer(name: str) -> Callable[[QuestionResult], int]:
    return lambda result: sum(len(record.answer.get(name) or ()) for record in result.records)


# Fields of a question, spelled as in attempts.jsonl where they are there, and as in the tables otherwise.
_FIELDS: dict[str, Callable[[QuestionResult], Any]] = {
    "id": lambda result: result.question.id,
    "query": lambda result: result.question.text,
    "graph": lambda result: result.graph,
    "split": lambda result: result.question.split,
    "gold": lambda result: len(result.question.gold),
    "state": lambda result: result.state,
    "stop_reason": lambda result: result.stop_reason,
    "limit": lambda result: next((record.limit for record in result.records[::-1] if record.limit), None),
    **{name: _score(position) for position, name in enumerate(METRICS)},
    "rank": lambda result: result.rank,
    "ids": lambda result: len(result.ids),
    "attempts": lambda result: result.attempts,
    "turns": lambda result: result.turns,
    "calls": lambda result: sum(record.counts.get("calls", 0) for record in result.records),
    "tokens": lambda result: result.tokens,
    "cost": lambda result: result.cost,
    "seconds": lambda result: result.seconds,
    **{f"usage.{name}": _usage(name) for name in USAGE},
    **{f"times.{name}": _time(name) for name in TIMES},
    **{f"answer.{name}": _in_answer(name) for name in ("repairs", "rejected")},
}


def read_results(run: Path, prices: PriceList | None = None, data: Path | None = None) -> RunResults:
    """Read the run folder `run`; `prices` replaces the recorded costs, `data` is as in `recorded_export`.

    Raises UserError.
    """
    manifest = read_manifest(run)
    export = recorded_export(manifest, run, data)
    questions = recorded_questions(manifest, export, run)
    try:
        states = fold(read_ledger(run))
    except ValueError as error:
        raise UserError(str(error), f"harness check {run} says what else is wrong") from None
    count = manifest["mode"]["agents"].get("count", 1)
    results = {}
    for question in questions:
        keys = [(question.id, agent) for agent in range(count)]
        agents = [states.get(key, AgentState(*key)) for key in keys]
        results[question.id] = _result(manifest, question, agents, export.is_candidate, prices)
    return RunResults(run, manifest, results, export)


def _result(
    manifest: Mapping[str, Any],
    question: Question,
    agents: Sequence[AgentState],
    is_candidate: Callable[[int], bool],
    prices: PriceList | None,
) -> QuestionResult:
    mode, model = manifest["mode"], manifest["model"]["name"]
    settings = mode["agents"]
    answer = answer_of(agents, settings.get("fuse", "vote"), settings.get("seed", 0), mode["answer"]["max_ids"])

    def score(ids: Sequence[int]) -> Scores:
        return score_answer(ids, question.gold, is_candidate) if question.gold else ZERO

    records = tuple(record for agent in agents for record in agent.records)
    costs = [cost(Usage(**record.usage), prices.of(model)) if prices else record.cost for record in records]
    return QuestionResult(
        graph=manifest["graph"],
        question=question,
        state=answer.state if question.gold else "without_gold",
        scores=score(answer.ids),
        first=score(answer.first),
        agents=tuple(score(usable_ids(agent.last)) for agent in agents),
        ids=answer.ids,
        attempts=answer.attempts,
        failed_agents=answer.failed_agents,
        records=records,
        cost=None if None in costs else math.fsum(known for known in costs if known is not None),
    )
