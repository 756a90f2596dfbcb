"""A traversal in a Python that stays, against a fresh program that has to load the edges first.

A graph's edge files are made in the form of an export: 129,375 nodes and 8.1 million edges, as many as PrimeKG has.
A traversal is all nodes that two steps in either direction lead to. It is run by a fresh program in bash, and by a call
of the kernel after a first one that loaded the edges; both load and walk by the same code. The ratio is of medians.

    python -m bench.kernel [--edges 8100000] [--programs 3] [--calls 20] [--kind bwrap]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sandbox import Backend, ExecResult, KernelBackend, SandboxUnavailable, Spec, choose

NODES = 129_375  # PrimeKG's
FILES = 30  # relations
TIMEOUT = 600.0
LOAD = """
import glob
around = {}
for path in sorted(glob.glob("/graph/edges/*.tsv")):
    with open(path) as lines:
        next(lines)
        for line in lines:
            source, target = map(int, line.split("\\t"))
            around.setdefault(source, []).append(target)
            around.setdefault(target, []).append(source)

def two_steps(start):
    found = set()
    for near in around.get(start, ()):
        found.update(around[near])
    return len(found)
"""


def make_edges(folder: Path, edges: int) -> None:
    chance = np.random.default_rng(1)
    (folder / "edges").mkdir()
    for number in range(FILES):
        count = edges // FILES + (number < edges % FILES)
        pairs = chance.integers(0, NODES, (count, 2)).tolist()
        lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (folder / "edges" / f"{number:02d}.tsv").write_text(f"source\ttarget\n{lines}", encoding="ascii")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def timed(action: Callable[[], ExecResult]) -> tuple[float, bytes]:
    """Seconds, and what was printed."""
    start = time.perf_counter()
    result = action()
    seconds = time.perf_counter() - start
    assert (result.termination, result.exit_code) == ("exit", 0), result
    return seconds, result.head


def measure(backend: Backend, graph: Path, programs: int, calls: int) -> None:
    with KernelBackend(backend).open(Spec(graph)) as sandbox:
        sandbox.write("walk.py", f"{LOAD}\nimport sys\nprint(two_steps(int(sys.argv[1])))\n".encode())
        fresh = [
            timed(lambda start=start: sandbox.exec(f"python3 walk.py {start}", TIMEOUT, 1000))  # type: ignore[misc]
            for start in range(programs)
        ]
        first, _ = timed(lambda: sandbox.python(LOAD + "two_steps(0)", TIMEOUT, 1000).exec)
        later = [
            timed(lambda start=start: sandbox.python(f"two_steps({start})", TIMEOUT, 1000).exec)  # type: ignore[misc]
            for start in range(calls)
        ]
        assert [said for _, said in fresh] == [said for _, said in later[:programs]]
        program, call = (statistics.median(seconds for seconds, _ in runs) for runs in (fresh, later))
        print(
            f"{backend.kind:<8}{program:>16.2f}{first:>16.2f}{call * 1000:>16.1f}{call / program:>10.4f}"
            f"{sandbox.memory / 2**20:>12.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=8_100_000)
    parser.add_argument("--programs", type=int, default=3)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--kind", choices=("bwrap", "docker"), help="default: both")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgshell-bench-") as folder:
        graph = Path(folder)
        make_edges(graph, options.edges)
        print(f"{'':<8}{'fresh program s':>16}{'first call s':>16}{'later call ms':>16}{'ratio':>10}{'memory MiB':>12}")
        for kind in [options.kind] if options.kind else ("bwrap", "docker"):
            try:
                backend = choose(kind)
            except SandboxUnavailable as error:
                print(f"{kind}: {error}")
                continue
            measure(backend, graph, options.programs, options.calls)


if __name__ == "__main__":
    main()
