"""Whether a run can be trusted, as far as only the run as a whole tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.audit.tally import Place, Row
from harness.ledger import LEDGER, AttemptRecord
from harness.runfiles import MANIFEST, sandbox_kind
from harness.schemas import RunFault


@dataclass(frozen=True)
class Variant:
    """What every attempt of a run should have alike."""

    prompt: str
    tools: str
    mode: str


@dataclass(frozen=True)
class AttemptLine:
    """One attempt in a few words: the rows behind the tables. `error_class` as in `checks.answers`."""

    file: str
    query_id: str
    agent: int
    attempt: int
    counted: bool
    error_class: str
    hit: bool
    stop_reason: str
    turns: int
    calls: int
    programs: int
    hardest: str
    first_gold_turn: int | None
    answer_line: int


@dataclass
class RunFacts:
    """What is known of a run. `unknown` says what could not be looked at, and why."""

    manifest: Mapping[str, Any]
    records: Sequence[AttemptRecord]
    unknown: list[str]
    faults: list[RunFault]
    variants: Counter[Variant] = field(default_factory=Counter)
    variant_files: dict[Variant, str] = field(default_factory=dict)
    attempts: list[AttemptLine] = field(default_factory=list)


@dataclass(frozen=True)
class RunCheck:
    """Like `Check`, over a run; its rows have no interval, since nothing is sampled."""

    name: str
    title: str
    unit: str
    rows: Callable[[RunFacts], Iterable[Row]]
    alarm: bool = True
    zeros: bool = False


def differing_prompts(facts: RunFacts) -> Iterator[Row]:
    """Attempts whose prompt, tools or mode are not those of most attempts of the run."""
    total = sum(facts.variants.values())
    parts: dict[str, Callable[[Variant], str]] = {
        "prompt": lambda variant: variant.prompt, "tools": lambda variant: variant.tools,
        "mode": lambda variant: variant.mode,
    }  # fmt: skip
    for label, part in parts.items():
        counts: Counter[str] = Counter()
        for variant, count in facts.variants.items():
            counts[part(variant)] += count
        usual = counts.most_common(1)[0][0] if counts else ""
        others = [variant for variant in facts.variants if part(variant) != usual]
        places = [Place(facts.variant_files[variant], 1, f"{label} {part(variant)[:12]}") for variant in others]
        yield Row(total - counts[usual], total, sorted(places), label)


def changed_inputs(facts: RunFacts) -> Iterator[Row]:
    """The export or the questions are no longer what the run was made on, or gone; then gold is not known."""
    yield Row(len(facts.unknown), 1, [Place(MANIFEST, 0, text) for text in facts.unknown])


def probe(facts: RunFacts) -> Iterator[Row]:
    """Parts of the isolation probe that failed; a run without sandboxes needs none."""
    results = facts.manifest.get("probe", [])
    failed = [result for result in results if not result["passed"]]
    places = [Place(MANIFEST, 0, f"{result['name']}: {result['detail']}") for result in failed]
    yield Row(len(failed), len(results), places, "failed")
    missing = "probe" not in facts.manifest and sandbox_kind(facts.manifest) != "none"
    yield Row(missing, 1, [Place(MANIFEST, 0, "the run has no isolation probe")] if missing else (), "no probe")


def retried(facts: RunFacts) -> Iterator[Row]:
    """Questions (and agents) that were asked more than once, attempts cut short by a crash not counted."""
    asked: Counter[tuple[str, int]] = Counter()
    for record in facts.records:
        asked[record.query_id, record.agent] += record.stop_reason != "interrupted"
    places = [
        Place(LEDGER, number) for number, record in enumerate(facts.records, 1)
        if asked[record.query_id, record.agent] > 1 and record.attempt > 0
    ]  # fmt: skip
    yield Row(sum(count > 1 for count in asked.values()), len(asked), places)


def retry_bias(facts: RunFacts) -> Iterator[Row]:
    """Hit@1 by the first attempts and by those that count: what retrying adds."""
    first: dict[tuple[str, int], AttemptLine] = {}
    last: dict[tuple[str, int], AttemptLine] = {}
    for line in facts.attempts:
        if line.error_class != "no gold":
            key = (line.query_id, line.agent)
            if line.stop_reason != "interrupted":
                first.setdefault(key, line)
            if line.counted:
                last[key] = line
    yield Row(sum(line.hit for line in first.values()), len(last), (), "hits of first attempts")
    yield Row(sum(line.hit for line in last.values()), len(last), (), "hits of attempts that count")
    gained = [key for key, line in last.items() if line.hit and not (key in first and first[key].hit)]
    yield Row(
        len(gained), len(last), [Place(last[key].file, last[key].answer_line) for key in gained], "hits by retrying"
    )


def manifest_and_ledger(facts: RunFacts) -> Iterator[Row]:
    """Faults of the manifest and the ledger."""
    yield Row(len(facts.faults), 1, [Place(fault.file, fault.line or 0, fault.message) for fault in facts.faults])


CHECKS = (
    RunCheck("differing_prompts", "attempts that differ from the others in", "attempts", differing_prompts),
    RunCheck("changed_inputs", "the export or its questions can't be read as they were", "runs", changed_inputs),
    RunCheck("probe", "isolation probe", "probes", probe),
    RunCheck("manifest_and_ledger", "faults of the manifest and the ledger", "runs", manifest_and_ledger),
    RunCheck("retried", "questions asked again", "questions and agents", retried, alarm=False, zeros=True),
    RunCheck("retry_bias", "what retrying adds", "questions and agents", retry_bias, alarm=False, zeros=True),
)
