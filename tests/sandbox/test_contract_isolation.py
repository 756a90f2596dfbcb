"""What can't be reached from inside: the graph to write, the network, labels, the host, privileges."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Backend, Sandbox, Spec
from sandbox.client import ENVIRONMENT
from tests.support.sandboxes import CANARY, NODE, run, text

ROOT = Path(__file__).resolve().parents[2]


def python(sandbox: Sandbox, program: str) -> str:
    return text(sandbox, f"cat > p.py <<'E'\n{program}\nE\npython3 p.py")


# The graph


def test_the_graph_is_there(shared: Sandbox) -> None:
    assert text(shared, "cat $GRAPH/nodes/0000.jsonl; rg -c TP53 /graph/nodes") == (
        NODE + "\n/graph/nodes/0000.jsonl:1\n"
    )
    assert text(shared, "find /graph -type f | sort") == "/graph/DATA_FORMAT.txt\n/graph/nodes/0000.jsonl\n"


@pytest.mark.parametrize(
    "command",
    [
        "touch /graph/new",
        "echo x >> /graph/DATA_FORMAT.txt",
        "rm -f /graph/DATA_FORMAT.txt",
        "mv /graph/nodes /graph/moved",
        "chmod -R 777 /graph",
        "ln /graph/DATA_FORMAT.txt /scratch/linked",
        "mount -o remount,rw /graph",
        "truncate -s 0 /graph/nodes/0000.jsonl",
        'python3 -c \'open("/graph/nodes/0000.jsonl", "r+b").write(b"x")\'',
        "exec 9<> /graph/DATA_FORMAT.txt",
        "touch -d yesterday /graph/DATA_FORMAT.txt",
    ],
)
def test_the_graph_cannot_be_changed(shared: Sandbox, graph: Path, command: str) -> None:
    def state() -> list[tuple[str, int, int, bytes]]:
        return [
            (str(path), path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(graph.rglob("*"))
        ]

    before = state()
    assert run(shared, command).exit_code != 0
    assert state() == before


# The network


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.all_programs
@pytest.mark.parametrize("host", ["1.1.1.1", "10.0.0.1", "169.254.169.254", "172.17.0.1", "2606:4700::1111"])
def test_no_address_can_be_reached(shared: Sandbox, host: str) -> None:
    program = f"""
import socket
try: socket.create_connection(({host!r}, 80), 5); print("connected")
except OSError as error: print(error.strerror)
"""
    assert python(shared, program) in {"Network is unreachable\n", "Cannot assign requested address\n"}


@pytest.mark.all_programs
def test_the_hosts_loopback_is_another(shared: Sandbox, listener: int) -> None:
    with socket.create_connection(("127.0.0.1", listener), 5):
        pass  # somebody listens
    program = f"import socket\ntry: socket.create_connection(('127.0.0.1', {listener}), 5); print('connected')\n"
    assert python(shared, program + "except OSError as error: print(error.strerror)") in {
        "Connection refused\n",
        "Network is unreachable\n",
    }


@pytest.mark.all_programs
def test_no_name_can_be_looked_up(shared: Sandbox) -> None:
    program = """
import socket
for name in ("pypi.org", "example.com", "host.docker.internal"):
    try: print(socket.getaddrinfo(name, 80))
    except socket.gaierror: print("no")
"""
    assert python(shared, program) == "no\nno\nno\n"
    assert run(shared, "bash -c 'exec 3<>/dev/tcp/pypi.org/443'").exit_code == 1


def test_no_interface_but_loopback(shared: Sandbox) -> None:
    assert text(shared, "tail -n +3 /proc/net/dev | cut -d : -f 1 | tr -d ' '") in {"lo\n", ""}
    assert text(shared, "tail -n +2 /proc/net/route") == ""


@pytest.mark.all_programs
def test_the_hosts_abstract_sockets_are_out_of_reach(shared: Sandbox) -> None:
    name = f"kgshell-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        program = f"import socket\ntry: socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('connected')\n"
        program += "except OSError as error: print(error.strerror)"
        assert python(shared, program) == "Connection refused\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("\0" + name)  # the program is right: it works outside


@pytest.mark.all_programs
def test_no_other_kinds_of_sockets(shared: Sandbox) -> None:
    program = """
import socket
for family in range(1, 46):
    try: socket.socket(family, socket.SOCK_DGRAM if family != 16 else socket.SOCK_RAW); print(family, end=" ")
    except OSError: pass
    try: socket.socket(family, socket.SOCK_STREAM); print(family, end=" ")
    except OSError: pass
"""
    assert set(python(shared, program).split()) <= {"1", "2", "10", "16"}  # Unix, IPv4, IPv6, netlink


# Labels, the harness and the host


@pytest.mark.parametrize("hidden", ["queries/test.jsonl", "index/offsets.bin"])
def test_the_rest_of_the_export_is_not_there(shared: Sandbox, graph: Path, hidden: str) -> None:
    path = graph.parent / hidden
    assert CANARY in path.read_text(encoding="utf-8")
    for reach in (str(path), f"/graph/../{hidden}", f"/proc/self/root{path}", f"/proc/1/root{path}"):
        assert run(shared, f"cat '{reach}'").exit_code == 1
    assert (
        run(shared, "grep -rsl -e gold-label /graph /scratch /tmp /etc /sandbox /dev/shm /run /var /home").exit_code
        != 0
    )


def test_nothing_of_the_host_but_system_folders_is_there(shared: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("host", encoding="utf-8")
    for path in (secret, ROOT / "pyproject.toml", ROOT / "sandbox" / "client.py", Path.home() / ".bashrc"):
        assert run(shared, f"cat '{path}'").exit_code == 1
    for folder in ("/home", "/opt", "/srv", "/mnt", "/media", "/run", "/boot", "/sys/fs/bpf"):
        assert text(shared, f"find {folder} -type f 2>/dev/null | head") == "", folder


@pytest.mark.all_programs
def test_the_packages_own_modules_cannot_be_imported(shared: Sandbox) -> None:
    program = """
import importlib.util
for name in ("harness", "sandbox", "exporter", "prompts", "numpy", "pip", "setuptools", "docker", "pytest"):
    if importlib.util.find_spec(name): print(name)
"""
    assert python(shared, program) == ""


@pytest.mark.all_programs
def test_only_the_standard_library_can_be_imported(shared: Sandbox) -> None:
    program = """
import importlib.metadata, os, pkgutil, sys
os.chdir("/")
print([distribution.name for distribution in importlib.metadata.distributions()])
found = {module.name for module in pkgutil.iter_modules([path for path in sys.path if path not in ("", "/scratch")])}
known = sys.stdlib_module_names | {"test", "lib2to3", "xxsubtype", "xxlimited", "xxlimited_35", "sitecustomize"}
print(sorted(name for name in found - known if not name.startswith("_")))
print(sys.version_info >= (3, 11))
import array, bz2, collections, csv, ctypes, heapq, itertools, json, lzma, mmap, re, sqlite3, ssl, statistics, zlib
"""
    assert python(shared, program) == "[]\n[]\nTrue\n"


def test_the_environment_is_an_allow_list(backend: Backend, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with backend.open(Spec(graph, env={"SEED": "7", "ODD": "a b\n'\"=$x\té"})) as sandbox:
        seen = dict(item.split("=", 1) for item in text(sandbox, "env -0").split("\0") if item)
        for of_bash in ("PWD", "SHLVL", "_"):
            seen.pop(of_bash, None)
        assert seen == {**ENVIRONMENT, "SEED": "7", "ODD": "a b\n'\"=$x\té"}
        assert run(sandbox, "cat /proc/*/environ | tr '\\0' '\\n' | grep canary").exit_code == 1


def test_an_environment_with_a_nul_is_refused(backend: Backend) -> None:
    with pytest.raises(ValueError, match="NUL"):
        backend.open(Spec(None, env={"X": "a\0env=Y=1"}))


# Privileges


def test_an_ordinary_user_without_privileges(shared: Sandbox) -> None:
    status = dict(line.split(":\t") for line in text(shared, "cat /proc/self/status").splitlines() if ":\t" in line)
    assert {int(uid) for uid in status["Uid"].split()} != {0}
    assert all(int(number) >= 1000 for number in (status["Uid"] + "\t" + status["Gid"]).split())
    assert status["Groups"].split() in ([], [status["Gid"].split()[0]])
    assert {name: int(value, 16) for name, value in status.items() if name.startswith("Cap")} == {
        "CapInh": 0,
        "CapPrm": 0,
        "CapEff": 0,
        "CapBnd": 0,
        "CapAmb": 0,
    }
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert text(shared, "id -un; echo ~") == "agent\n/scratch\n"


@pytest.mark.parametrize(
    "command",
    [
        "unshare -U true",
        "unshare -r id",
        "unshare -n true",
        "unshare -m true",
        "unshare -p -f true",
        "unshare -T true",
        "nsenter -t 1 -m true",
        "nsenter -t $$ -n true",
        "chroot / true",
        "mount -t tmpfs none /tmp",
        "umount /graph",
        "mknod /tmp/null c 1 3",
        "su -c id",
        "chown 0 /scratch",
        "hostname other",
        "date -s 2000-01-01",
        "dmesg",
        "echo 1 > /proc/sys/kernel/pid_max",
        "echo b > /proc/sysrq-trigger",
        "cat /proc/kcore",
        "cat /dev/mem",
        "ls /dev/kmsg /dev/vda /dev/sda",
        "setarch -R true",
        "cat /proc/kallsyms | grep -v '^0* ' | grep -q .",
    ],
)
def test_no_privileged_command_works(shared: Sandbox, command: str) -> None:
    assert run(shared, command).exit_code != 0


# System calls by number, with the error that each must give. Prints those that give another.
CALLS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
NEWUSER, NEWNET, NEWPID, NEWTIME = 0x10000000, 0x40000000, 0x20000000, 0x80
SIGCHLD = 17
space = ctypes.create_string_buffer(4096)
expected = {
    "clone newuser": (56 if x86 else 220, (NEWUSER | SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    "clone newnet": (56 if x86 else 220, (NEWNET | SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    "clone newpid": (56 if x86 else 220, (NEWPID | SIGCHLD, 0, 0, 0, 0), errno.EPERM),
    "clone3": (435, (space, 88), errno.ENOSYS),
    "unshare newtime": (272 if x86 else 97, (NEWTIME,), errno.EPERM),
    "setns": (308 if x86 else 268, (0, 0), errno.EPERM),
    "io_uring_setup": (425, (1, space), errno.EPERM),
    "bpf": (321 if x86 else 280, (0, space, 4096), errno.EPERM),
    "userfaultfd": (323 if x86 else 282, (1,), errno.EPERM),
    "perf_event_open": (298 if x86 else 241, (space, 0, -1, -1, 0), errno.EPERM),
    "keyctl": (250 if x86 else 219, (0, -3, 1), errno.EPERM),
    "add_key": (248 if x86 else 217, (b"user", b"x", b"y", 1, -3), errno.EPERM),
    "fsopen": (430, (b"tmpfs", 0), errno.EPERM),
    "open_tree": (428, (-100, b"/", 1), errno.EPERM),
    "memfd_create": (319 if x86 else 279, (b"x", 0), errno.ENOSYS),
    "shmget": (29 if x86 else 194, (0, 4096, 0o1600), errno.ENOSYS),
    "personality": (135 if x86 else 92, (0x0040000,), errno.EPERM),
}
for name, (number, arguments, error) in expected.items():
    if libc.syscall(number, *arguments) != -1 or ctypes.get_errno() != error:
        print(name, errno.errorcode.get(ctypes.get_errno()))
if x86 and (libc.syscall(0x40000000 + 39) != -1 or ctypes.get_errno() != errno.ENOSYS):
    print("x32 getpid")
"""


@pytest.mark.all_programs
def test_system_calls_that_widen_the_surface_are_denied(shared: Sandbox) -> None:
    assert python(shared, CALLS) == ""
    outside = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=True)
    assert "memfd_create" in outside.stdout  # the program tells: it is allowed out here


def test_temporary_folders_of_the_host_are_not_shared(shared: Sandbox) -> None:
    text(shared, "echo x > /tmp/from-inside; echo x > /dev/shm/from-inside")
    for folder in ("/tmp", "/dev/shm"):
        assert not Path(folder, "from-inside").exists()
