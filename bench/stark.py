"""An export of a graph of STaRK's shape with its index, end to end from processed.zip: time, CPU, peak memory.

    python -m bench.stark [--shape prime|mag|amazon] [--scale 1.0] [--data DIR]

The graph is made first, in a process of its own, and kept in DIR where that is given. Then the export and its check
run as a user's commands do, each in a process of its own. The limits are for a machine of two cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.stark_data import make_graph

LIMITS = {("prime", "export"): (60, 2), ("mag", "export"): (360, 8), ("prime", "check"): (30, 2)}  # seconds, GB


@dataclass(frozen=True)
class Spent:
    """What a process took: seconds of wall and CPU time, bytes of memory at its peak."""

    wall: float
    cpu: float
    peak: int


def measured(*words: str) -> Spent:
    """Run `harness WORDS` and measure it. Raises RuntimeError with what it said where it fails."""
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "harness", *words], stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            said.seek(0)
            raise RuntimeError(said.read().decode())
    return Spent(time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def make(shape: str, data: Path, scale: float) -> None:
    """The graph, made in a process of its own: it needs more memory than the export."""
    maker = multiprocessing.get_context("spawn").Process(target=make_graph, args=(shape, data, scale))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise RuntimeError(f"making the graph failed with {maker.exitcode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=("prime", "mag", "amazon"), default="prime")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or Path(folder) / "data"
        archive = data / "skb" / arguments.shape / "processed.zip"
        if not archive.exists():
            make(arguments.shape, data, arguments.scale)
        print(f"{arguments.shape} x {arguments.scale:g}: {archive.stat().st_size / 1e6:,.0f} MB packed")
        out = Path(folder) / "out"
        steps = {
            "export": ("export", "stark", arguments.shape, str(data), "--out", str(out)),
            "check": ("check", str(out)),
        }
        for step, words in steps.items():
            spent = measured(*words)
            limit = LIMITS.get((arguments.shape, step)) if arguments.scale == 1 else None
            wanted = f" (at most {limit[0]} s and {limit[1]} GB wanted)" if limit else ""
            print(
                f"{step}: {spent.wall:.1f} s, {spent.cpu:.1f} s of CPU, {spent.peak / 1e9:.2f} GB at its peak{wanted}"
            )
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        print(f"the export: {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
