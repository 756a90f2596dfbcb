"""Whether a run can be trusted, as far as its single attempts tell."""

from __future__ import annotations

from collections.abc import Iterator

from harness.audit.checks import Check
from harness.audit.facts import AttemptFacts
from harness.audit.suspicion import KINDS
from harness.audit.tally import Place, Row
from harness.ledger import INFRASTRUCTURE, STOP_REASONS
from harness.text import shorten

_ENDS = ("timeout", "oom", "pid_limit", "cpu_limit", "file_limit", "output_limit", "killed")
_WHY_WIDTH = 200
_TRIED = {
    "network": "to reach the network",
    "graph_write": "to change the graph",
    "outside": "to look outside of the graph and the scratch directory",
    "processes": "to touch processes or mounts",
}


def labels_seen(facts: AttemptFacts) -> Iterator[Row]:
    """Results that hold what only label files hold."""
    results = len(facts.calls)
    yield Row(len(facts.canaries), results, facts.places(facts.canaries), "the canary of the label files")
    yield Row(len(facts.answer_keys), results, facts.places(facts.answer_keys), "the name of a label file's field")
    yield Row(len(facts.gold_lists), results, facts.places(facts.gold_lists), "the gold in the label file's own order")


def attempts_at(facts: AttemptFacts) -> Iterator[Row]:
    """Calls that tried what the sandbox forbids, whatever came of it."""
    for kind in KINDS:
        lines = [call.line for call in facts.calls if kind in call.suspicions]
        yield Row(len(lines), len(facts.calls), facts.places(lines), _TRIED[kind])


def sandbox_failures(facts: AttemptFacts) -> Iterator[Row]:
    """Shell commands that failed because of what the sandbox allows or holds."""
    shell = [call for call in facts.calls if call.bash]
    for kind in sorted({kind for call in shell for kind in call.sandbox_failures}):
        lines = [call.line for call in shell if kind in call.sandbox_failures]
        yield Row(len(lines), len(shell), facts.places(lines), kind)


def ended_by_limits(facts: AttemptFacts) -> Iterator[Row]:
    """Shell commands that a limit ended."""
    shell = [call for call in facts.calls if call.bash and call.termination is not None]
    for kind in _ENDS:
        lines = [call.line for call in shell if call.termination == kind]
        yield Row(len(lines), len(shell), facts.places(lines), kind)


def answers_at_limits(facts: AttemptFacts) -> Iterator[Row]:
    """Answers given in the last turn that is granted when a limit is reached."""
    if facts.record is not None and facts.record.stop_reason == "answered":
        limit = facts.record.limit
        yield Row(limit is not None, 1, [Place(facts.file, facts.lines, limit)] if limit else ())


def infrastructure(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts that failed for reasons that are neither the agent's nor the model's."""
    if facts.record is not None:
        reason = facts.record.stop_reason
        failed = reason in INFRASTRUCTURE
        why = shorten(f"{reason}: {facts.record.error}" if facts.record.error else reason, _WHY_WIDTH)
        yield Row(failed, 1, [Place(facts.file, facts.lines, why)] if failed else ())


def stop_reasons(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts by why they stopped."""
    if facts.record is None:
        return
    for reason in STOP_REASONS:
        mine = facts.record.stop_reason == reason
        yield Row(mine, 1, [Place(facts.file, facts.lines)] if mine else (), reason)


def lost_in_call(facts: AttemptFacts) -> Iterator[Row]:
    """Attempts whose sandbox was lost while a command of the agent's ran."""
    if facts.record is not None:
        lost = bool(facts.record.counts.get("lost_in_call"))
        yield Row(lost, 1, [Place(facts.file, facts.lines)] if lost else ())


def unledgered(facts: AttemptFacts) -> Iterator[Row]:
    """Trajectories that the ledger doesn't know: in flight when the run was killed."""
    yield Row(facts.record is None, 1, [Place(facts.file, 0)] if facts.record is None else ())


def damaged_lines(facts: AttemptFacts) -> Iterator[Row]:
    """Lines of trajectories that hold no event, and that everything else leaves out."""
    yield Row(len(facts.damaged), facts.lines, [Place(facts.file, line, why) for line, why in facts.damaged])


def faults(facts: AttemptFacts) -> Iterator[Row]:
    """Trajectories that break the contract of the run folder."""
    places = [Place(facts.file, line, what) for line, what in facts.faults]
    yield Row(bool(places), 1, places)


CHECKS = (
    Check("labels_seen", "trust", "outputs that show labels", "results", labels_seen, "all", alarm=True),
    Check("attempts_at", "trust", "calls that tried", "calls", attempts_at, "all", alarm=True),
    Check("sandbox_failures", "trust", "commands that failed because of the sandbox", "shell commands",
          sandbox_failures, "all"),
    Check("ended_by_limits", "trust", "commands ended by a limit", "shell commands", ended_by_limits, "all"),
    Check("answers_at_limits", "trust", "answers given at a limit", "answers", answers_at_limits, zeros=True),
    Check("infrastructure", "trust", "attempts that failed for infrastructure reasons", "attempts that count",
          infrastructure, alarm=True),
    Check("stop_reasons", "trust", "why attempts stopped", "attempts", stop_reasons, "all"),
    Check("lost_in_call", "trust", "sandboxes lost under a command", "attempts", lost_in_call, "all", alarm=True),
    Check("unledgered", "trust", "trajectories not in the ledger", "trajectories", unledgered, "all", alarm=True),
    Check("damaged_lines", "trust", "lines of trajectories that can't be read", "lines", damaged_lines, "all",
          alarm=True),
    Check("faults", "trust", "trajectories with faults", "trajectories", faults, "all", alarm=True),
)  # fmt: skip
