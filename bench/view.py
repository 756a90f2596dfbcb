"""How long `harness view` takes to answer over a large run, beside reading all of the run's trajectories once.

Trajectories are those of `bench.audit`: 20 turns, about 200 kB. Requests go over loopback HTTP, as the page's do.

    python -m bench.view [--trajectories 1000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.audit import make_graph, make_run, read_plain
from tests.support.viewing import ask, viewing

_ROUNDS = 20


def main() -> None:
    """Make the run, ask for what the page asks for, print seconds and their ratio to the plain read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=1000)
    count = parser.parse_args().trajectories
    with tempfile.TemporaryDirectory() as folder:
        export = make_graph(Path(folder), count)
        run = make_run(Path(folder) / "run", export)
        begin = time.perf_counter()
        size = read_plain(run)
        plain = time.perf_counter() - begin
        print(f"{count:,} trajectories, {size / 1e6:,.0f} MB; read and parsed once: {plain:.2f} s")
        begin = time.perf_counter()
        with viewing(run) as server:
            _print("start", time.perf_counter() - begin, plain)
            for name, request in _requests(count).items():
                _print(name, _median(lambda request=request: request(server)), plain)  # type: ignore[misc]
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def _requests(count: int) -> dict[str, Callable[[Any], Any]]:
    ids = iter(range(10**9))

    def one() -> dict[str, Any]:  # another question each time: nothing is in memory yet
        return {"run": 0, "q": f"q{next(ids) % count}"}

    return {
        "runs": lambda server: ask(server, "runs"),
        "first page of the list": lambda server: ask(server, "questions"),
        "a page near its end": lambda server: ask(server, "questions", **{"from": max(0, count - 100)}),
        "a search in questions": lambda server: ask(server, "questions", text=f"about {count - 1}?"),
        "an attempt's head": lambda server: ask(server, "attempt", **one()),
        "an attempt's first events": lambda server: ask(server, "items", **one()),
        "where its ids appeared": lambda server: ask(server, "origins", **one()),
        "an error class": lambda server: ask(server, "classes", **one()),
    }


def _median(action: Callable[[], Any]) -> float:
    times = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return sorted(times)[_ROUNDS // 2]


def _print(name: str, seconds: float, plain: float) -> None:
    print(f"{name:28} {seconds * 1000:8.1f} ms   {seconds / plain:7.4f} of the plain read")


if __name__ == "__main__":
    main()
