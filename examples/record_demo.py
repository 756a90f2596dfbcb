"""Records the demo anew: types examples/biogo/demo/*.txt into `--model manual` and keeps the trajectories.

    python examples/record_demo.py

The turns were found by a person exploring the files; what is recorded beside them is what the sandbox printed. Needed
when the sample's export or the way results are shown changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "harness" / "demo"


def main() -> None:
    """Record every question that has turns."""
    RECORDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HARNESS_DATA"] = f"{folder}/data"
        for turns in sorted((HERE / "biogo" / "demo").glob("*.txt")):
            record(turns, Path(folder) / turns.stem)


def record(turns: Path, out: Path) -> None:
    """Ask the one question that `turns` answers, and keep its trajectory."""
    question = next(line for line in (HERE / "biogo" / "queries.jsonl").open() if f'"id": "{turns.stem}"' in line)
    file = out.with_suffix(".jsonl")
    file.write_text(question)
    command = [sys.executable, "-m", "harness", "run", "--graph", "biogo", "--mode", "files", "--model", "manual"]
    command += ["--sandbox", "bwrap", "--queries", str(file), "--out", str(out)]
    with turns.open("rb") as typed:
        subprocess.run(command, stdin=typed, check=True, cwd=HERE.parent)
    shutil.copyfile(out / "trajectories" / turns.stem / "0-0.jsonl", RECORDINGS / f"{turns.stem}.jsonl")


if __name__ == "__main__":
    main()
