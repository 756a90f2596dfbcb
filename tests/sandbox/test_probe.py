"""The isolation probe: passes where the sandbox holds, and fails, each attack, where it has been weakened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sandbox import Backend, ExecResult, FileSlice, Limits, Sandbox, SandboxLost, ShellEnd, Spec, probe
from sandbox.contract import GiB, MiB
from tests.support.sandboxes import CANARY, changed_bwrap, make_export

SMALL = Limits(memory=GiB + 64 * MiB, scratch=32 * MiB, tmp=8 * MiB, shm=8 * MiB, pids=100)


def failed(backend: Backend, spec: Spec) -> dict[str, str]:
    """The attacks that a sandbox did not withstand: name -> what was found."""
    return {result.name: result.detail for result in probe(backend, spec, [CANARY]) if not result.passed}


def test_a_sandbox_holds(backend: Backend, graph: Path) -> None:
    results = probe(backend, Spec(graph), [CANARY, "another canary"])
    assert [result for result in results if not result.passed] == []
    assert {"graph", "network", "dns", "labels", "processes", "fork_bomb", "disk", "links"} <= {r.name for r in results}
    assert all(result.detail and "\n" not in result.detail for result in results)


def test_a_sandbox_without_a_graph_holds(backend: Backend) -> None:
    assert failed(backend, Spec(None, limits=SMALL)) == {}


def test_it_finds_what_a_weakened_bubblewrap_lets_through(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "export")
    for path in (graph, *graph.rglob("*")):
        path.chmod(0o777)  # nothing but the mount keeps the graph as it is
    changes = [
        f'words[-2:-2] = ["--ro-bind", {str(graph.parent)!r}, "/etc/export", "--bind", {str(graph)!r}, "/graph"]',
        'words.remove("--unshare-net")',
        'at = words.index("/tmp"); del words[at - 5 : at - 3]',  # its size
        'words[-2:-2] = ["--perms", "1777", "--tmpfs", "/etc/open"]',
    ]
    found = failed(changed_bwrap(tmp_path, "; ".join(changes)), Spec(graph, limits=SMALL))
    assert "a canary is in /etc/export/queries/test.jsonl" in found["labels"]
    assert "is an interface" in found["network"]
    assert "/graph can be written" in found["graph"]
    assert "/tmp of 8388608 B took" in found["disk"]
    assert set(found) <= {"labels", "network", "dns", "graph", "disk"}  # a network may have names


def test_it_finds_what_else_can_be_filled(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "export")
    changes = [
        f'words[-2:-2] = ["--ro-bind", {str(graph.parent)!r}, "/graph"]',  # the export, not only its files
        'words[-2:-2] = ["--perms", "1777", "--tmpfs", "/etc/open"]',
    ]
    found = failed(changed_bwrap(tmp_path, "; ".join(changes)), Spec(graph, limits=SMALL))
    assert "a canary is in /graph/queries/test.jsonl" in found["labels"]
    assert "/etc/open can be filled" in found["disk"]
    assert set(found) == {"labels", "disk"}


@dataclass
class WeakSandbox:
    """A sandbox whose commands find something else than they should."""

    inner: Sandbox
    prefix: str = ""
    instead: tuple[tuple[str, str], ...] = ()
    kind: str = "weak"

    @property
    def memory(self) -> int:
        return self.inner.memory

    def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
        for old, new in self.instead:
            command = command.replace(old, new)
        return self.inner.exec(self.prefix + command, timeout, cap)

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        return self.inner.read(path, offset, limit)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> WeakSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FollowingSandbox(WeakSandbox):
    """One whose harness reads files from outside, as if the agent's links were its own."""

    def read(self, path: str, offset: int, limit: int) -> FileSlice:
        target = self.inner.exec(f"readlink {path}", 10, 5000).head.decode().strip()
        data = Path(target).read_bytes() if target and Path(target).is_file() else b""
        return FileSlice(data[offset : offset + limit], len(data)) if data else self.inner.read(path, offset, limit)


@dataclass
class WeakBackend:
    """Opens what `weaken` makes of a real sandbox, or of the spec."""

    inner: Backend
    prefix: str = ""
    instead: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    sandbox: type[WeakSandbox] = WeakSandbox
    kind: str = "weak"

    def open(self, spec: Spec) -> Sandbox:
        return self.sandbox(self.inner.open(replace(spec, env=self.env)), self.prefix, self.instead)

    def describe(self) -> dict[str, object]:
        return {}

    def shell(self, spec: Spec) -> ShellEnd:
        return 0


def test_it_finds_what_a_weakened_sandbox_lets_through(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "export")
    (graph / "status").write_text("CapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n", encoding="utf-8")
    weak = WeakBackend(
        bwrap,
        prefix="sleep 100 & unshare() { true; }; timeout() { true; }; ",
        instead=(("/proc/1/", "/proc/$$/"), ("/proc/self/status", "/graph/status"), ("; bomb", "; echo")),
        env={"OPENAI_API_KEY": CANARY},
        sandbox=FollowingSandbox,
    )
    found = failed(weak, Spec(graph, limits=SMALL))
    assert "OPENAI_API_KEY" in found["environment"]
    assert "a canary is in the environment" in found["labels"]
    assert "can be seen" in found["processes"]
    assert "its environ can be read" in found["supervisor"]
    assert "CapEff:\t000001ffffffffff; privileges can be gained; system calls are not filtered" in found["privileges"]
    assert "a user namespace can be made" in found["namespaces"]
    assert "pypi.org can be reached" in found["dns"]
    assert "1.1.1.1/53 can be reached" in found["network"]
    assert "ended by exit" in found["fork_bomb"]
    assert "could be read through a link" in found["links"]


def test_a_sandbox_that_an_attack_brings_down_did_not_pass(bwrap: Backend, graph: Path) -> None:
    class Fragile(WeakSandbox):
        def exec(self, command: str, timeout: float, cap: int) -> ExecResult:
            if "bomb" in command:
                self.inner.close()
            return super().exec(command, timeout, cap)

    results = probe(WeakBackend(bwrap, sandbox=Fragile), Spec(graph, limits=SMALL), [CANARY])
    assert (results[-1].name, results[-1].passed) == ("fork_bomb", False)
    assert "brought the sandbox down" in results[-1].detail
    with pytest.raises(SandboxLost):
        opened = bwrap.open(Spec(graph))
        opened.close()
        opened.exec("true", 1, 1)


def test_results_can_be_written_down(bwrap: Backend) -> None:
    (first, *_) = probe(bwrap, Spec(None, limits=SMALL), [])
    assert first.as_dict() == {"name": first.name, "passed": True, "detail": first.detail}
