"""Calls a second of the graph tools' Python client, from a program in the sandbox, over a real graph.

The client, its server and the tools are those of a run, and every call is written to a trajectory, as there. Beside it:
the same program outside of a sandbox, and the same calls of the tools without client and socket. Calls are made one
after the other. The second figure is calls a second of CPU time, the program's and this process's together: what an
idle machine would reach at least, however busy this one is.

    python -m bench.client [--graph EXPORT] [--calls 5000]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.sandbox import available
from exporter import Export, biogo_sources, export_tables
from exporter.index import Index
from harness.accounting import Account
from harness.kb import TOOLS
from harness.kb.attempt import serve_graph
from harness.kb.server import FOLDER
from harness.messages import ToolCall
from harness.modes import Neighbors, Output
from harness.slot import NoSlot
from harness.tools import Toolbox, ToolContext
from harness.tools.graph import Graph
from harness.tools.kit import Toolkit
from harness.trajectory import TrajectoryWriter
from sandbox import Sandbox, Spec

LEAST = 2_000  # calls a second: what is asked of a client
TOOLS_CALLED = ("get_schema", "get_node", "neighbors", "search")
PROGRAM = """
import sys, time
folder, tool, calls, nodes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, folder)
import kbtools
kb = kbtools.Client(folder + "/kb.sock")
call = {
    "get_schema": lambda i: kb.get_schema(),
    "get_node": lambda i: kb.get_node(i * 7919 % nodes),
    "neighbors": lambda i: kb.neighbors(i * 7919 % nodes, k=5),
    "search": lambda i: kb.search("mismatch repair", k=5),
}[tool]
call(0)
start = time.perf_counter()
for i in range(calls):
    call(i)
print(calls / (time.perf_counter() - start))
"""


@dataclass(frozen=True)
class Rate:
    """Calls a second, by the clock and of CPU time."""

    wall: float
    cpu: float


def without_client(toolbox: Toolbox, tool: str, calls: int, nodes: int) -> Rate:
    """The same calls, made in this process."""
    none = NoSlot()
    context = ToolContext(none.sandbox, none.spills, Output(), Output().cap, 0.0)
    arguments: dict[str, Callable[[int], dict[str, Any]]] = {
        "get_schema": lambda _: {},
        "get_node": lambda i: {"node_id": i * 7919 % nodes, "offset": 0},
        "neighbors": lambda i: {"node_id": i * 7919 % nodes, "k": 5},
        "search": lambda _: {"query": "mismatch repair", "k": 5},
    }
    start, cpu = time.perf_counter(), time.process_time()
    for i in range(calls):
        toolbox.dispatch(ToolCall("bench", tool, ""), arguments[tool](i), context)
    return Rate(calls / (time.perf_counter() - start), calls / (time.process_time() - cpu))


def outside(served: Path, tool: str, calls: int, nodes: int) -> Rate:
    """The program, run by itself."""
    before, cpu = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time()
    command = [sys.executable, "-c", PROGRAM, str(served), tool, str(calls), str(nodes)]
    wall = float(subprocess.run(command, capture_output=True, check=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Rate(wall, calls / (theirs + time.process_time() - cpu))


def inside(sandbox: Sandbox, tool: str, calls: int, nodes: int) -> Rate:
    """The program, run in the sandbox."""
    cpu = time.process_time()
    result = sandbox.exec(f"python3 program.py {FOLDER} {tool} {calls} {nodes}", 600, 1000)
    assert result.exit_code == 0, result
    return Rate(float(result.head), calls / (result.cpu + time.process_time() - cpu))


def measure(export: Export, calls: int) -> Iterator[tuple[str, dict[str, Rate]]]:
    """(where the program ran, the rate of each tool)."""
    toolbox = Toolkit(TOOLS, Neighbors(), Graph(export, Index.open(export))).toolbox()
    nodes = export.node_count
    yield "no client", {tool: without_client(toolbox, tool, calls, nodes) for tool in TOOLS_CALLED}
    with tempfile.TemporaryDirectory(prefix="kgshell-bench-") as folder:
        account = Account(threading.Event(), lambda _: None)
        with (
            TrajectoryWriter(Path(folder, "run", "0.jsonl"), Path(folder, "blobs")) as log,
            serve_graph(toolbox, Output(), log, account) as served,
        ):
            yield "outside", {tool: outside(served.folder, tool, calls, nodes) for tool in TOOLS_CALLED}
            for backend in available():
                with backend.open(Spec(None, mounts={FOLDER: served.folder})) as sandbox:
                    sandbox.write("program.py", PROGRAM.encode())
                    yield backend.kind, {tool: inside(sandbox, tool, calls, nodes) for tool in TOOLS_CALLED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=Path, help="an export; default: the embedded sample")
    parser.add_argument("--calls", type=int, default=5_000, help="of each tool")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgshell-bench-") as folder:
        if options.graph:
            export = Export.open(options.graph)
        else:
            sources = biogo_sources()
            export = export_tables(sources.nodes, sources.edges, Path(folder, "biogo"), name="biogo")
        print(f"{'calls a second':<16}" + "".join(f"{tool:>26}" for tool in TOOLS_CALLED))
        for place, rates in measure(export, options.calls):
            row = "".join(f"{f'{rate.wall:,.0f} ({rate.cpu:,.0f} of CPU)':>26}" for rate in rates.values())
            slow = min(rate.cpu for rate in rates.values()) < LEAST
            print(f"{place:<16}{row}{f'  less than {LEAST:,}' if slow else ''}")


if __name__ == "__main__":
    main()
