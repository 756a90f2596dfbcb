"""How long a call, an opening and a closing take in each kind of sandbox, beside `docker exec` through the SDK.

Calls run through the harness's own API, each kind in turn, in blocks that alternate with the baseline's, so that all
see the same machine. A ratio is the baseline's median over the sandbox's. The flood is 500 MB of output from one
command: how fast it comes, and by how much this process grows. Requests to the harness over a Unix socket are small and
answered one after the other; the ratio is to the same program outside of a sandbox.

    python -m bench.sandbox [--calls 200] [--opens 10]
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from docker.errors import DockerException

from sandbox import Backend, SandboxUnavailable, Spec, choose
from sandbox.daemon import connect
from sandbox.docker import DockerBackend
from sandbox.sockets import listening

COMMANDS = {
    "builtin": ":",
    "program": "/bin/true",
    "python": "python3 -c pass",
    "20 kB of output": "head -c 20000 /dev/zero | tr '\\0' x",
}
FLOOD = 500_000_000
REQUESTS = 20_000
CALLER = """
import socket, sys, time
with socket.socket(socket.AF_UNIX) as harness:
    harness.connect(sys.argv[1])
    start = time.perf_counter()
    for _ in range(int(sys.argv[2])):
        harness.send(b"x" * 100)
        harness.recv(1000)
    print(int(sys.argv[2]) / (time.perf_counter() - start))
"""
Result = TypeVar("Result")
BLOCK = 20  # calls in a row before it is the next one's turn


@dataclass
class Figures:
    """Milliseconds of every measurement of one kind, by what was measured."""

    kind: str
    times: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, name: str, action: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = action()
        self.times.setdefault(name, []).append((time.perf_counter() - start) * 1000)
        return result

    def quantile(self, name: str, share: float) -> float:
        ordered = sorted(self.times[name])
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextlib.contextmanager
def docker_exec() -> Iterator[Callable[[str], object]]:
    """Runs a command by `docker exec` through the SDK, in a container of the sandbox's own image."""
    backend = choose("docker")
    assert isinstance(backend, DockerBackend)
    client = connect()
    image = str(backend.describe()["image_id"])
    host = client.create_host_config(network_mode="none", read_only=True, cap_drop=["ALL"], auto_remove=True)
    container = client.create_container(image, entrypoint=["sleep", "100000"], host_config=host)["Id"]
    try:
        client.start(container)

        def run(command: str) -> object:
            made = client.exec_create(container, ["bash", "-c", command])["Id"]
            return client.exec_start(made), client.exec_inspect(made)["ExitCode"]

        yield run
    finally:
        client.remove_container(container, force=True)
        client.close()


def available() -> list[Backend]:
    found = []
    for kind in ("bwrap", "docker"):
        try:
            found.append(choose(kind))
        except SandboxUnavailable as error:
            print(f"{kind}: {error}")
    return found


def measure_calls(backends: list[Backend], calls: int) -> list[Figures]:
    """Every command `calls` times in each kind, and in the baseline where there is a Docker daemon."""
    with contextlib.ExitStack() as stack:
        runs: dict[str, Callable[[str], object]] = {}
        with contextlib.suppress(SandboxUnavailable, DockerException):
            runs["docker exec"] = stack.enter_context(docker_exec())
        for backend in backends:
            sandbox = stack.enter_context(backend.open(Spec(None)))
            runs[backend.kind] = partial(sandbox.exec, timeout=60, cap=20_000)
        figures = [Figures(kind) for kind in runs]
        for _ in range(max(1, calls // BLOCK)):
            for name, command in COMMANDS.items():
                for figure in figures:
                    call = partial(runs[figure.kind], command)
                    call()  # what was evicted from caches meanwhile is not this one's to pay
                    for _ in range(BLOCK):
                        figure.measure(name, call)
    return figures


def measure_opening(backend: Backend, opens: int) -> Figures:
    figures = Figures(backend.kind)
    for _ in range(opens):
        sandbox = figures.measure("open", partial(backend.open, Spec(None)))
        sandbox.exec("echo used > file", 60, 100)
        figures.measure("close", sandbox.close)
    return figures


def flood(backend: Backend) -> str:
    with backend.open(Spec(None)) as sandbox:
        sandbox.exec("seq 100000", 60, 20_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = sandbox.exec(f"yes | head -c {FLOOD}", 600, 20_000)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        start = time.perf_counter()
        sandbox.exec(":", 60, 20_000)
        after = (time.perf_counter() - start) * 1000
    assert result.total_bytes == result.spilled_bytes == FLOOD
    speed = FLOOD / 1e9 / result.wall
    return f"{backend.kind}: {speed:.2f} GB/s, this process grew by {grown / 1024:.1f} MiB, next call {after:.1f} ms"


def echo(server: socket.socket) -> None:
    """Answers one connection after the other until the listening socket is shut down."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                while request := connection.recv(1000):
                    connection.send(request)


def requests(backends: list[Backend]) -> Iterator[tuple[str, float]]:
    """(who called, calls a second), outside of a sandbox first."""
    with listening("echo") as (folder, server):
        thread = threading.Thread(target=echo, args=(server,))
        thread.start()
        try:
            command = [sys.executable, "-c", CALLER, str(folder / "echo"), str(REQUESTS)]
            yield "outside", float(subprocess.run(command, capture_output=True, check=True).stdout)
            for backend in backends:
                with backend.open(Spec(None, mounts={"/attempt": Path(folder)})) as sandbox:
                    sandbox.write("caller.py", CALLER.encode())
                    yield (
                        backend.kind,
                        float(sandbox.exec(f"python3 caller.py /attempt/echo {REQUESTS}", 600, 100).head),
                    )
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200, help="of each command")
    parser.add_argument("--opens", type=int, default=10)
    options = parser.parse_args()
    backends = available()

    figures = measure_calls(backends, options.calls)
    baseline = next((figure for figure in figures if figure.kind == "docker exec"), None)
    print(f"\n{'call':<18}{'kind':<14}{'p50 ms':>8}{'p95 ms':>8}{'ratio':>8}")
    for name in COMMANDS:
        for figure in figures:
            median = figure.quantile(name, 0.5)
            ratio = f"{baseline.quantile(name, 0.5) / median:.1f}" if baseline else "-"
            print(f"{name:<18}{figure.kind:<14}{median:>8.2f}{figure.quantile(name, 0.95):>8.2f}{ratio:>8}")

    print(f"\n{'':<18}{'kind':<14}{'p50 ms':>8}{'max ms':>8}")
    for backend in backends:
        opening = measure_opening(backend, options.opens)
        for name, times in opening.times.items():
            print(f"{name:<18}{backend.kind:<14}{statistics.median(times):>8.1f}{max(times):>8.1f}")

    print(f"\n{FLOOD // 10**6} MB of output from one command")
    for backend in backends:
        print(flood(backend))

    print(f"\n{'request':<18}{'from':<14}{'a second':>10}{'ratio':>8}")
    rates = dict(requests(backends))
    for kind, rate in rates.items():
        print(f"{'':<18}{kind:<14}{rate:>10.0f}{rate / rates['outside']:>8.2f}")


if __name__ == "__main__":
    main()
