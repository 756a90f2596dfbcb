"""What context policies cost where the provider caches prefixes: ours, the peers' and none, on the same trajectories.

Each trajectory is replayed through the real request builder: results are cut as the mode says, `Conversation` decides
what a request shows, the Chat Completions dialect makes its bytes. Two requests share what their bytes share from the
beginning. Tokens are bytes / 4; of a request the shared beginning is cached, in whole blocks, if it is long enough.

    python -m bench.context                  the target, then lengths of 15 to 300 turns
    python -m bench.context --target         60 turns of 4,000-token results alone
    python -m bench.context --window 272000

Trajectories: `even`, every result of 16,000 characters; `mixed`, made up like real ones, most results short, some huge;
`recorded`, the turns of the recordings that come with the sample graph, strung together. In `--rereads SHARE` of its
turns the agent needs an older result, a recent one rather than an old one (half of them at most 5 turns old); where it
is cleared, the agent reads its file, in a turn of its own.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from harness.backbones.chat import parse_reply
from harness.backbones.dialect import Asked
from harness.backbones.http import HttpBackbone
from harness.backbones.profiles import Profile
from harness.backbones.scripted import completion
from harness.context import Conversation
from harness.cut import shorten
from harness.events import read_events
from harness.messages import AttemptKey, Reply, Request, Usage
from harness.modes import Context, Mode, load_mode, policy_names
from harness.observe import Observation
from harness.prompt import prompt_for
from harness.settings import parse_assignments
from harness.tools.kit import make_toolbox

BYTES_PER_TOKEN = 4
LENGTHS = (15, 30, 60, 120, 300)


@dataclass(frozen=True)
class Cache:
    """A provider's prefix cache: tokens in whole blocks, from `minimum` on, at `price` of an uncached one."""

    block: int = 128
    minimum: int = 1024
    price: float = 0.1

    def cost(self, tokens: int, shared: int) -> float:
        """Cost of a request in uncached input tokens."""
        cached = shared // self.block * self.block
        cached = cached if cached >= self.minimum else 0
        return tokens - cached * (1 - self.price)


@dataclass(frozen=True)
class Step:
    """One turn: a command and everything that it prints; `needs` is an earlier turn whose result it builds on."""

    command: str
    output: str
    needs: int | None = None


@dataclass
class Outcome:
    """What a policy made of a trajectory. Tokens; `cleared` and `reread` count results."""

    cost: float = 0.0
    peak: int = 0
    requests: int = 0
    resets: int = 0
    cleared: int = 0
    reread: int = 0


class Replay:
    """One trajectory under one policy."""

    def __init__(self, mode: Mode, window: int | None, cache: Cache) -> None:
        self._mode, self._cache = mode, cache
        self._tools = make_toolbox(mode.tools).specs
        overhead = sum(len(spec.description) + len(str(spec.parameters)) for spec in self._tools)
        self._conversation = Conversation(mode.context, window, overhead)
        self._builder = HttpBackbone(Profile("bench", "m", endpoint="http://127.0.0.1:1/v1", key_variable=None))
        self._sent = b""
        self._files = 0
        self._turn = 0
        self.outcome = Outcome()

    def run(self, steps: Sequence[Step]) -> Outcome:
        """Play all steps, and the answer."""
        self._conversation.say(prompt_for(self._mode, "Which nodes are meant?"))
        calls: list[str] = []
        for step in steps:
            if step.needs is not None and calls[step.needs] in self._conversation.cleared:
                self.outcome.reread += 1
                calls[step.needs] = self._ask(f"cat outputs/{step.needs:03d}.txt", steps[step.needs].output)
            calls.append(self._ask(step.command, step.output))
        self._request()
        self._builder.close()
        return self.outcome

    def _ask(self, command: str, output: str) -> str:
        """A request, the command that it brings, and the command's result; returns the call's id."""
        request, tokens = self._request()
        call = {"id": f"call_{self._turn}", "type": "function"}
        function = {"name": "bash", "arguments": orjson.dumps({"command": command}).decode()}
        body = completion({"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]})
        parsed = parse_reply(body, Asked.by(request))
        self._conversation.reply(Reply(parsed.entry, parsed.finish, Usage(input=tokens)))
        self._conversation.result(call["id"], self._turn, self._observe(output))
        return call["id"]

    def _request(self) -> tuple[Request, int]:
        self._turn += 1
        clearing = self._conversation.clear(self._turn, self._spill)
        request = Request(AttemptKey("q", 0, 0), self._turn, "", self._conversation.view(), self._tools, time_left=None)
        body = b"".join(self._builder.body(request))
        tokens = len(body) // BYTES_PER_TOKEN
        shared = common(self._sent, body) // BYTES_PER_TOKEN
        seen = self.outcome
        seen.cost += self._cache.cost(tokens, shared)
        seen.peak = max(seen.peak, tokens)
        seen.requests += 1
        seen.resets += clearing is not None
        seen.cleared += len(clearing.call_ids) if clearing else 0
        self._sent = body
        return request, tokens

    def _observe(self, output: str) -> Observation:
        view = shorten(output, self._mode.output, self._conversation.room(self._mode.output.cap))
        record = {"exit_code": 0, "termination": "exit", "total_bytes": len(output), "lines": output.count("\n")}
        path = self._spill(b"") if view.omitted or view.cut_lines else None
        notice = f"\n[cut: {len(output):,} bytes in all; the whole output is in {path}]" if path else ""
        return Observation(f"[exit code 0]\n{view.text}{notice}", exec=record, spill=path, whole=b"")

    def _spill(self, _: bytes) -> str:
        self._files += 1
        return f"outputs/{self._files:03d}.txt"


def common(one: bytes, other: bytes) -> int:
    """Bytes that two texts share from the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def even(turns: int, rereads: float, chance: random.Random) -> Iterator[Step]:
    """Results of 4,000 tokens, commands of 100."""
    for turn in range(turns):
        yield Step(words(chance, 400), words(chance, 16_000), needed(turn, rereads, chance))


def mixed(turns: int, rereads: float, chance: random.Random) -> Iterator[Step]:
    """Half of the results under 1,500 characters, one in twenty over 60,000; half of the commands under 350."""
    for turn in range(turns):
        size = min(400_000, int(chance.lognormvariate(7.3, 2.25)))
        command = min(6_000, int(chance.lognormvariate(5.85, 0.9)))
        yield Step(words(chance, command), words(chance, size), needed(turn, rereads, chance))


def recorded(turns: int, rereads: float, chance: random.Random) -> Iterator[Step]:
    """Commands and outputs of the sample graph's recordings, over and over."""
    files = sorted(Path(str(resources.files("harness") / "demo")).glob("*.jsonl"))
    steps = [step for path in files for step in played(path)]
    for turn in range(turns):
        yield replace(steps[turn % len(steps)], needs=needed(turn, rereads, chance))


def played(path: Path) -> Iterator[Step]:
    """The calls of one trajectory."""
    events: list[dict[str, Any]] = list(read_events(path))
    for event in events:
        if event["type"] == "result" and event["arguments"]:
            text = event["arguments"].get("command") or str(event["arguments"])
            yield Step(text, event["text"].partition("\n")[2])


def needed(turn: int, rereads: float, chance: random.Random) -> int | None:
    """The earlier turn that a turn builds on, if any: the age halves in likelihood every 4 turns."""
    wanted, age = chance.random() < rereads, 2 + int(chance.expovariate(0.1733))
    return turn - age if wanted and age <= turn else None


def words(chance: random.Random, size: int) -> str:
    """Lines of text, about `size` characters."""
    line = "".join(chance.choices('abcdefghijklmnopqrstuvwxyz0123456789{}":,    ', k=90))
    start = [f"{chance.getrandbits(48):012x} {line}" for _ in range(size // 104 + 1)]
    return "\n".join(start)[:size]


def measure(steps: Sequence[Step], window: int, cache: Cache, changes: Sequence[str]) -> dict[str, Outcome]:
    """Each policy over the same steps: ours, those of `prompts/policies`, none."""
    modes = {"ours": load_mode("files", parse_assignments(changes))}
    modes |= {name: load_mode("files", {"policy": name}) for name in policy_names()}
    found = {name: Replay(mode, window, cache).run(steps) for name, mode in modes.items()}
    nothing = replace(modes["ours"], context=Context(policy="none"))
    return {**found, "none": Replay(nothing, None, cache).run(steps)}


def sliding(steps: Sequence[Step], peak: int, window: int, cache: Cache) -> tuple[int, Outcome]:
    """A window of the last turns that slides from the start, as many turns as fit under the same peak."""
    best = (0, Outcome())
    mode = load_mode("files")
    for turns in range(1, len(steps)):
        slide = replace(mode, context=Context(policy="sliding", sliding_from=0, keep_turns=turns))
        outcome = Replay(slide, window, cache).run(steps)
        if outcome.peak > peak:
            break
        best = (turns, outcome)
    return best


def report(title: str, found: dict[str, Outcome]) -> None:
    """One table."""
    none = found["none"].cost
    print(f"\n{title}")
    print(
        f"  {'policy':9} {'cost':>10} {'/ none':>7} {'peak':>9} {'resets':>7} {'cleared':>8} {'re-read':>8} {'rate':>6}"
    )
    for name, one in found.items():
        rate = f"{one.reread / one.cleared:6.2f}" if one.cleared else "     -"
        print(
            f"  {name:9} {one.cost:10,.0f} {one.cost / none:7.2f} {one.peak:9,} {one.resets:7} {one.cleared:8}"
            f" {one.reread:8} {rate}"
        )


def target(window: int, cache: Cache, changes: Sequence[str]) -> None:
    """The figures that are promised."""
    steps = list(even(60, 0.0, random.Random(1)))
    found = measure(steps, window, cache, changes)
    ours, none = found["ours"], found["none"]
    turns, slid = sliding(steps, ours.peak, window, cache)
    found[f"last {turns}"] = slid
    report(f"60 turns of 4,000-token results, window of {window:,} tokens", found)
    to_none, to_sliding = ours.cost / none.cost, ours.cost / slid.cost
    print(f"  ours / none {to_none:.2f} (at most 0.65)   ours / sliding {to_sliding:.2f} (at most 0.3)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=128_000)
    parser.add_argument("--rereads", type=float, default=0.2)
    parser.add_argument("--target", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change our policy")
    parser.add_argument("--block", type=int, default=Cache.block)
    parser.add_argument("--minimum", type=int, default=Cache.minimum)
    parser.add_argument("--price", type=float, default=Cache.price, help="of a cached token")
    options = parser.parse_args()
    cache = Cache(options.block, options.minimum, options.price)
    target(options.window, cache, options.set)
    if options.target:
        return
    for make in (even, mixed, recorded):
        for turns in LENGTHS:
            steps = list(make(turns, options.rereads, random.Random(turns)))
            found = measure(steps, options.window, cache, options.set)
            report(f"{make.__name__}, {turns} turns, {options.rereads:.0%} of them build on older results", found)


if __name__ == "__main__":
    main()
