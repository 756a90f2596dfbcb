"""What attempts cost, and what was done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from harness.audit.checks import Check, Measure
from harness.audit.facts import AttemptFacts
from harness.audit.tally import Row

_PARTS = ("model", "waiting", "sandbox", "queue", "harness")


def cached_tokens(facts: AttemptFacts) -> Iterator[Row]:
    """Input tokens that were read from the provider's cache."""
    usage = facts.record.usage if facts.record is not None else {}
    cached, given = usage.get("cached"), usage.get("input")
    if cached is not None and given is not None:
        yield Row(cached, given)


def reasoning_tokens(facts: AttemptFacts) -> Iterator[Row]:
    """Output tokens that were reasoning."""
    usage = facts.record.usage if facts.record is not None else {}
    reasoning, made = usage.get("reasoning"), usage.get("output")
    if reasoning is not None and made is not None:
        yield Row(reasoning, made)


def cache_resets(facts: AttemptFacts) -> Iterator[Row]:
    """Requests that found less than half of the one before them in the cache."""
    yield Row(len(facts.cache_resets), facts.requests_with_cache, facts.places(facts.cache_resets))


def time_by_part(facts: AttemptFacts) -> Iterator[Row]:
    """Where the wall time went."""
    if facts.record is None:
        return
    times = asdict(facts.record.times)
    for part in _PARTS:
        yield Row(times[part], times["wall"], (), part)


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


def _tokens(name: str) -> Callable[[AttemptFacts], Iterable[float]]:
    def values(facts: AttemptFacts) -> Iterable[float]:
        count = facts.record.usage.get(name) if facts.record is not None else None
        return [] if count is None else [count]

    return values


def cost_of_attempt(facts: AttemptFacts) -> Iterable[float]:
    """US dollars, where prices are known."""
    return [] if facts.record is None or facts.record.cost is None else [facts.record.cost]


def working_seconds(facts: AttemptFacts) -> Iterable[float]:
    """Wall time without waits for rate limits and queues."""
    return [] if facts.record is None else [facts.record.times.working]


CHECKS = (
    Check("cached_tokens", "cost", "input tokens read from the cache", "input tokens", cached_tokens, "all"),
    Check("reasoning_tokens", "cost", "output tokens that are reasoning", "output tokens", reasoning_tokens, "all"),
    Check("cache_resets", "cost", "requests that lost the cache", "requests", cache_resets, "all"),
    Check("time_by_part", "cost", "where the time went", "seconds", time_by_part, "all"),
    Check("cut_results", "cost", "results that were cut", "results", cut_results, "all"),
    Check("spills_read", "cost", "spilled outputs that were read later", "spilled outputs",
          _came_back(lambda facts: facts.read_later), "all"),
    Check("cleared_results", "cost", "results that were cleared", "results", cleared_results, "all"),
    Check("cleared_read_again", "cost", "cleared results that were read again", "cleared results",
          _came_back(lambda facts: facts.read_again), "all"),
    Check("repeated_calls", "cost", "calls that repeat an earlier one", "calls", repeated_calls, "all"),
    Check("loops", "cost", "attempts with a loop", "attempts", loops, "all"),
)  # fmt: skip
MEASURES = (
    Measure("input_tokens", "cost", "input tokens of an attempt", "tokens", _tokens("input"), "all"),
    Measure("output_tokens", "cost", "output tokens of an attempt", "tokens", _tokens("output"), "all"),
    Measure("cost", "cost", "cost of an attempt", "US dollars", cost_of_attempt, "all"),
    Measure("working_seconds", "cost", "working time of an attempt", "seconds", working_seconds, "all"),
)
