"""What attempts cost, and what was done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

from harness.audit.checks import Check, Measure, Values
from harness.audit.facts import AttemptFacts
from harness.audit.tally import Place, Row

_PARTS = ("model", "waiting", "sandbox", "queue", "harness")


def _whole(facts: AttemptFacts) -> list[Place]:
    """The attempt's end: figures that are the ledger's."""
    return [Place(facts.file, facts.lines)]


def cached_tokens(facts: AttemptFacts) -> Iterator[Row]:
    """Input tokens that were read from the provider's cache."""
    usage = facts.record.usage if facts.record is not None else {}
    cached, given = usage.get("cached"), usage.get("input")
    if cached is not None and given is not None:
        yield Row(cached, given, _whole(facts))


def reasoning_tokens(facts: AttemptFacts) -> Iterator[Row]:
    """Output tokens that were reasoning."""
    usage = facts.record.usage if facts.record is not None else {}
    reasoning, made = usage.get("reasoning"), usage.get("output")
    if reasoning is not None and made is not None:
        yield Row(reasoning, made, _whole(facts))


def cache_resets(facts: AttemptFacts) -> Iterator[Row]:
    """Requests that found less than half of the one before them in the cache."""
    yield Row(len(facts.cache_resets), facts.requests_with_cache, facts.places(facts.cache_resets))


def time_by_part(facts: AttemptFacts) -> Iterator[Row]:
    """Where the wall time went."""
    if facts.record is None:
        return
    times = asdict(facts.record.times)
    for part in _PARTS:
        yield Row(times[part], times["wall"], _whole(facts), part)


def cut_results(facts: AttemptFacts) -> Iterator[Row]:
    """Results of which the agent saw a part."""
    lines = [call.line for call in facts.calls if call.cut]
    yield Row(len(lines), len(facts.calls), facts.places(lines))


def _came_back(of: Callable[[AttemptFacts], list[tuple[int, bool]]]) -> Callable[[AttemptFacts], Iterator[Row]]:
    def rows(facts: AttemptFacts) -> Iterator[Row]:
        found = of(facts)
        lines = [line for line, came_back in found if came_back]
        yield Row(len(lines), len(found), facts.places(lines))

    return rows


def cleared_results(facts: AttemptFacts) -> Iterator[Row]:
    """Results that became placeholders."""
    lines = [line for line, _ in facts.read_again]
    yield Row(len(lines), len(facts.calls), facts.places(lines))


def repeated_calls(facts: AttemptFacts) -> Iterator[Row]:
    """Calls that had been made before with the same arguments."""
    lines = [call.line for call in facts.calls if call.repeated]
    yield Row(len(lines), len(facts.calls), facts.places(lines))


def loops(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts in which the same one, two or three calls came three times running, with the same results."""
    yield Row(bool(facts.loops), 1, facts.places(facts.loops))


def _tokens(name: str) -> Callable[[AttemptFacts], Values]:
    def values(facts: AttemptFacts) -> Values:
        count = facts.record.usage.get(name) if facts.record is not None else None
        return [] if count is None else [(count, facts.lines)]

    return values


def cost_of_attempt(facts: AttemptFacts) -> Values:
    """US dollars, where prices are known."""
    return [] if facts.record is None or facts.record.cost is None else [(facts.record.cost, facts.lines)]


def working_seconds(facts: AttemptFacts) -> Values:
    """Wall time without waits for rate limits and queues."""
    return [] if facts.record is None else [(facts.record.times.working, facts.lines)]


CHECKS = (
    Check("cached_tokens", "cost", "input tokens read from the cache", "input tokens", cached_tokens, "all"),
    Check("reasoning_tokens", "cost", "output tokens that are reasoning", "output tokens", reasoning_tokens, "all"),
    Check("cache_resets", "cost", "requests that lost the cache", "requests", cache_resets, "all", zeros=True),
    Check("time_by_part", "cost", "where the time went", "seconds", time_by_part, "all"),
    Check("cut_results", "cost", "results that were cut", "results", cut_results, "all", zeros=True),
    Check("spills_read", "cost", "spilled outputs that were read later", "spilled outputs",
          _came_back(lambda facts: facts.read_later), "all", zeros=True),
    Check("cleared_results", "cost", "results that were cleared", "results", cleared_results, "all", zeros=True),
    Check("cleared_read_again", "cost", "cleared results that were read again", "cleared results",
          _came_back(lambda facts: facts.read_again), "all", zeros=True),
    Check("repeated_calls", "cost", "calls that repeat an earlier one", "calls", repeated_calls, "all", zeros=True),
    Check("loops", "cost", "attempts with a loop", "attempts", loops, "all", zeros=True),
)  # fmt: skip
MEASURES = (
    Measure("input_tokens", "cost", "input tokens of an attempt", "tokens", _tokens("input"), "all"),
    Measure("output_tokens", "cost", "output tokens of an attempt", "tokens", _tokens("output"), "all"),
    Measure("cost", "cost", "cost of an attempt", "US dollars", cost_of_attempt, "all"),
    Measure("working_seconds", "cost", "working time of an attempt", "seconds", working_seconds, "all"),
)
