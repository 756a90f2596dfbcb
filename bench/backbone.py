"""CPU time that a request costs the process that sends it, late in a long conversation.

One conversation of 200 turns, each with a tool result of 20,000 characters, nothing cleared: as our Chat Completions
backbone sends it, and as the openai SDK sends it when given Python objects. The server is another process, so only the
sender's CPU time counts.

    python -m bench.backbone [--turns 200] [--characters 20000]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from harness.backbones.http import HttpBackbone
from harness.backbones.profiles import Profile
from harness.messages import AttemptKey, Entry, Request, ToolSpec

TOOL = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
ALPHABET = 'abcdefghijklmnopqrstuvwxyz      \n"\\\té'


@contextmanager
def server(turns: int) -> Iterator[str]:
    """A loopback endpoint in a process of its own that always answers with a call."""
    command = [sys.executable, "-m", "tests.support.server", "--turns", str(turns + 1)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.communicate()


def outputs(turns: int, characters: int) -> list[str]:
    """Tool results, all different."""
    chance = random.Random(1)
    return ["".join(chance.choices(ALPHABET, k=characters)) for _ in range(turns)]


def ours(url: str) -> Callable[[str], None]:
    """A conversation through the backbone; each step sends it and adds a result."""
    model = HttpBackbone(Profile("bench", "m", endpoint=url, key_variable=None))
    entries = [Entry("user", "question")]
    tools = (TOOL,)

    def step(output: str) -> None:
        turn = len(entries) // 2 + 1
        reply = model.complete(Request(AttemptKey("q", 0, 0), turn, "question", tuple(entries), tools))
        entries.extend((reply.entry, Entry("tool", output, call_id=reply.entry.calls[0].id)))

    return step


def plain_sdk(url: str) -> Callable[[str], None]:
    """The same through the SDK's own method, with its own objects."""
    client = openai.OpenAI(api_key="none", base_url=url)
    messages: list[Any] = [{"role": "user", "content": "question"}]
    tools: list[Any] = [
        {
            "type": "function",
            "function": {"name": TOOL.name, "description": TOOL.description, "parameters": dict(TOOL.parameters)},
        }
    ]

    def step(output: str) -> None:
        message = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
        assert message.tool_calls
        messages.append(message.model_dump(exclude_unset=True))
        messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": output})

    return step


def measure(step: Callable[[str], None], results: list[str]) -> list[float]:
    """Milliseconds of CPU time of each step."""
    spent = []
    for output in results:
        began = time.process_time()
        step(output)
        spent.append(1000 * (time.process_time() - began))
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--characters", type=int, default=20_000)
    options = parser.parse_args()
    results = outputs(options.turns, options.characters)
    with server(options.turns) as url:
        times = {"ours": measure(ours(url), results), "plain SDK": measure(plain_sdk(url), results)}
    last = range(options.turns - 10, options.turns)
    windows = {"all": range(options.turns), "turns 41-50": range(40, 50), f"turns {last[0] + 1}-{options.turns}": last}
    windows = {name: window for name, window in windows.items() if window[0] >= 0 and window[-1] < options.turns}
    print(f"{options.turns} turns of {options.characters:,} characters; CPU ms a request\n")
    print(f"{'':16}{'ours':>8}{'plain SDK':>12}{'ratio':>8}")
    for name, window in windows.items():
        ms = {who: sum(spent[i] for i in window) / len(window) for who, spent in times.items()}
        print(f"{name:16}{ms['ours']:8.2f}{ms['plain SDK']:12.2f}{ms['plain SDK'] / ms['ours']:8.1f}")


if __name__ == "__main__":
    main()
