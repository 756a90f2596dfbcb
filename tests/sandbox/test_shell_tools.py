"""Sandboxes with shell tools alone: no other language's interpreter is there, and none can be brought in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import Backend, Sandbox, SandboxUnavailable, Spec, probe
from sandbox.elf import parse
from sandbox.shell_root import OPTIONAL, REQUIRED, Missing, copy_root, find_shell_root
from sandbox.users import spare_users
from tests.support.machine_code import library, program
from tests.support.sandboxes import CANARY, ShellOnly, changed_bwrap, run, text

ABSENT = [
    *("python3", "python", "perl", "awk", "gawk", "mawk", "nawk", "original-awk", "node", "nodejs", "ruby", "lua"),
    *("luajit", "tclsh", "wish", "php", "gdb", "lldb", "vi", "vim", "nvim", "emacs", "ed", "ex", "sqlite3", "busybox"),
    *("toybox", "jq", "bc", "dc", "m4", "make", "cc", "gcc", "g++", "clang", "tcc", "as", "ld", "java", "go", "rustc"),
    *("expect", "socat", "nc", "git", "tar", "gzip", "less", "man", "openssl", "dash", "zsh", "ldd", "strace", "xxd"),
]

# What a sandbox with shell tools alone must still do: command -> output.
WORK = {
    "printf '3\\n1\\n2\\n' | sort -n | head -2 | paste -sd,": "1,2\n",
    "seq 100 | grep -c 7": "19\n",
    "echo 'a b c' | cut -d' ' -f2": "b\n",
    "echo abc | sed 's/b/X/'": "aXc\n",
    "echo abc | grep -oP '(?<=a)b'": "b\n",
    "echo abc | rg -oP '(?<=a)b'": "b\n",
    "rg -c node_id /graph/nodes": "/graph/nodes/0000.jsonl:1\n",
    "join <(printf '1 a\\n2 b\\n') <(printf '1 x\\n2 y\\n') | tr '\\n' ';'": "1 a x;2 b y;",
    "comm -12 <(seq 5) <(seq 4 9)": "4\n5\n",
    "find /graph -name '*.jsonl' -exec wc -l {} +": "1 /graph/nodes/0000.jsonl\n",
    "seq 4 | xargs -P 2 -I{} bash -c 'echo $(({} * {}))' | sort -n | tr '\\n' ' '": "1 4 9 16 ",
    "s=0; for i in {1..100}; do ((s += i)); done; echo $s": "5050\n",
    "declare -A seen; for w in a b a; do ((seen[$w]++)); done; echo ${seen[a]} ${#seen[@]}": "2 2\n",
    "mapfile -t lines < <(seq 3); echo ${lines[2]}; [[ abc =~ b(.) ]] && echo ${BASH_REMATCH[1]}": "3\nc\n",
    "diff <(echo 1) <(echo 1) && cmp /graph/schema.json /graph/schema.json 2>/dev/null; echo $?": "2\n",
    "cat > s.sh <<'E'\necho $1$1\nE\nbash s.sh x; sh s.sh y; . ./s.sh z": "xx\nyy\nzz\n",
    "echo é | wc -m; printf '%05.1f|%x\\n' 2.25 255; numfmt --to=iec 2048": "2\n002.2|ff\n2.0K\n",
    "date -d @0 -u +%F": "1970-01-01\n",
    "timeout 5 sleep 0 && env A=1 printenv A; whoami; basename /a/b.c .c; tac <(seq 2)": "1\nagent\nb\n2\n1\n",
    "seq 5 | split -l 2 --filter='wc -l' | tr '\\n' ' '; seq 3 | tee /dev/stderr 2>/dev/null | tail -1": "2 2 1 3\n",
    "coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x": "hi\n",
}


# Ways around: each prints `ran` where anything but the shell tools runs. `./a` is an ELF program, `./lib.so` a shared
# object, `./awk` a copied interpreter. LINKER and ESCAPED stand for the dynamic linker and an ELF program's bytes.
AWK = "'BEGIN{print \"ran\"}'"
EXECUTING = [
    # programs that were written to the folders that can be written to
    "./a",
    "cp a /tmp/a; chmod +x /tmp/a; /tmp/a",
    f"./awk {AWK}",
    f"LINKER ./awk {AWK}",
    f"cp awk /tmp/awk; LINKER /tmp/awk {AWK}",
    f"LD_LIBRARY_PATH=/usr/lib LINKER --argv0 awk ./awk {AWK}",
    "printf 'ESCAPED' > written; chmod +x written; ./written",
    "exec -a bash ./a",
    "hash -p ./a grep; grep x",
    "PATH=.:$PATH; a",
    "ln -sf a linked; ./linked",
    "ln -f a hard; ./hard",
    "exec 9< a; /proc/self/fd/9",
    "exec 9< a; /dev/fd/9",
    "printf '#!/scratch/awk -f\nBEGIN{print \"ran\"}\n' > s; chmod +x s; ./s",
    "printf '#!/bin/bash\necho ran\n' > s; chmod +x s; ./s",
    "install -m 755 a /tmp/installed; /tmp/installed",
    # programs that start others
    "find . -maxdepth 1 -name a -exec {} \\;",
    "find . -maxdepth 1 -name a -execdir {} \\;",
    "echo x | xargs ./a",
    "env ./a",
    "env -S './a'",
    "nice ./a",
    "timeout 5 ./a",
    "nohup ./a 2>/dev/null; cat nohup.out 2>/dev/null",
    "command ./a",
    "bash -c 'exec ./a'",
    "sh -c ./a",
    "coproc ./a; cat <&${COPROC[0]}",
    "trap ./a EXIT",
    "mapfile -C ./a -c 1 x <<< y",
    "PS4='$(./a >&2)'; set -x; :",
    "rg --pre ./a x /graph/DATA_FORMAT.txt; rg --pre ./a ran /graph/DATA_FORMAT.txt",
    "rg --pre ./awk --pre-glob '*.awk' ran /graph; echo 'BEGIN{print \"ran\"}' > p; rg --pre ./pre ran p",
    "sed -n '1e ./a' /graph/DATA_FORMAT.txt",
    "echo ./a | sed 's/.*/&/e'",
    "seq 9 | split -l 9 --filter=./a",
    "seq 200000 | sort -S 32k --compress-program=./zip | tail -n 1",
    "diff3 --diff-program=./a /graph/DATA_FORMAT.txt /graph/DATA_FORMAT.txt /graph/DATA_FORMAT.txt",
    # libraries
    "LD_PRELOAD=./lib.so $(type -P true)",
    "LD_AUDIT=./lib.so $(type -P true)",
    "LINKER --preload ./lib.so $(type -P true)",
    "cp lib.so libacl.so.1; cp lib.so libselinux.so.1; LD_LIBRARY_PATH=. ls",
    "enable -f ./lib.so x",
    "BASH_LOADABLES_PATH=. enable -f lib.so x",
    # memory
    "{ : >> /proc/self/mem; } && echo ran",
    "{ : >> /proc/$$/mem; } && echo ran",
    "dd if=/dev/null of=/proc/self/mem conv=notrunc oflag=append && echo ran",
    "mkfifo f; LINKER --preload ./f $(find /lib/ /usr/lib/ -name libc.so.6 -print -quit) &"
    " until grep -qs preload /proc/$!/cmdline || ! kill -0 $!; do :; done;"
    " { : >> /proc/$!/mem; } && echo ran; rm f; kill $!",
]

# Ways around that end at a program that isn't there, or at the sandbox's own walls.
ABSENT_WAYS = [
    f"awk {AWK}",
    "python3 -c 'print(\"ran\")'",
    "perl -e 'print \"ran\"'",
    "/usr/bin/env python3 -c 'print(\"ran\")'",
    "printf '#!/usr/bin/env python3\nprint(\"ran\")\n' > s; bash ./s",
    "rg --pre python3 ran /graph",
    "rg --hostname-bin python3 --hyperlink-format 'file://{host}' x /graph",
    "find / -xdev -type f -name 'python3*' -exec {} -c 'print(\"ran\")' \\;",
    "tar cf /dev/null --to-command='python3 -c \"print(1)\"' a && echo ran",
    "enable -f /usr/lib/bash/print print && echo ran",
    "echo 'print(\"ran\")' > /dev/tcp/127.0.0.1/8000 && echo ran",
    "exec 3<>/dev/tcp/1.1.1.1/80 && echo ran",
    "/proc/1/root/usr/bin/python3 -c 'print(\"ran\")'",
    "/proc/self/root/usr/bin/perl -e 'print \"ran\"'",
    "unshare -Ur ./a",
    "mount -o remount,exec /scratch; ./a",
    "chroot . ./a",
    "cp a /usr/bin/a; a",
    "cp a /sandbox/bin/a; a",
    "cp a /dev/a; /dev/a",
    "mkdir -p /dev/shm/d; cp a /dev/shm/d/a; chmod +x /dev/shm/d/a; /dev/shm/d/a",
    "mknod d b 8 0 && echo ran",
    "stdbuf -o0 ./a",
    "busybox awk 'BEGIN{print \"ran\"}'",
    "exec -a awk /usr/bin/coreutils 'BEGIN{print \"ran\"}'",
    "exec -a python3 /proc/self/exe -c 'print(\"ran\")'",
    "vim -c '!echo ran' -c q; gdb -ex 'shell echo ran' -ex q; ed <<< '!echo ran'",
]


@pytest.fixture(scope="module", params=["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


def prepared(backend: Backend, graph: Path) -> Iterator[Sandbox]:
    with backend.open(Spec(graph)) as sandbox:
        for name, data in FOREIGN.items():
            sandbox.write(name, data)
        text(sandbox, f"chmod +x {' '.join(FOREIGN)}")
        yield sandbox


@pytest.fixture(scope="module")
def shell(kind: Backend, graph: Path) -> Iterator[Sandbox]:
    yield from prepared(ShellOnly(kind), graph)


@pytest.fixture(scope="module")
def whole(kind: Backend, graph: Path) -> Iterator[Sandbox]:
    """The control: all programs are there, and everything can be run."""
    yield from prepared(kind, graph)


def copied_interpreter() -> bytes:
    """An awk of this machine: an interpreter that needs nothing but libraries that the shell tools need too."""
    found = next((path for name in ("mawk", "gawk", "awk") if (path := shutil.which(name))), None)
    return Path(found).resolve().read_bytes() if found else b""


FOREIGN = {"a": program(), "lib.so": library(), "awk": copied_interpreter(), "pre": b"#!/bin/bash\nexec ./awk -f $1\n"}
FOREIGN["zip"] = b"#!/bin/bash\necho ran >&2\nexec cat\n"


def filled_in(command: str) -> str:
    bash = parse(Path("/bin/bash").read_bytes())
    assert bash is not None
    escaped = "".join(f"\\x{byte:02x}" for byte in program())
    return command.replace("LINKER", bash.linker or "/lib/ld.so").replace("ESCAPED", escaped)


@pytest.mark.parametrize("command", WORK)
def test_shell_tools_work(shell: Sandbox, command: str) -> None:
    assert run(shell, command).head.decode() == WORK[command]


def test_other_programs_are_not_there(shell: Sandbox) -> None:
    assert text(shell, f"for name in {' '.join(ABSENT)}; do type -P $name; done; true") == ""
    there = text(shell, "find / -xdev -type f -perm /111 2>/dev/null").split()
    names = {path.rpartition("/")[2] for path in there if path.startswith(("/usr/bin/", "/sandbox/"))}
    assert names - {"rg", "supervisor", ".dockerenv"} <= REQUIRED | OPTIONAL
    assert set(text(shell, "ls /usr").split()) <= {"bin", "lib", "lib32", "lib64", "libx32"}


@pytest.mark.parametrize("command", EXECUTING)
def test_nothing_that_was_brought_in_is_run(shell: Sandbox, whole: Sandbox, command: str) -> None:
    if "awk" in command and not FOREIGN["awk"]:
        pytest.skip("this machine has no awk to copy")
    attack = filled_in(command)
    assert b"ran\n" in run(whole, attack).head  # it works where nothing keeps it from it
    result = run(shell, attack)
    assert b"ran\n" not in result.head, result.head
    assert result.termination == "exit"


@pytest.mark.parametrize("command", ABSENT_WAYS)
def test_there_is_no_other_way_to_an_interpreter(shell: Sandbox, command: str) -> None:
    result = run(shell, filled_in(command))
    assert b"ran\n" not in result.head, result.head


def test_the_probe_finds_an_interpreter(kind: Backend, graph: Path, tmp_path: Path) -> None:
    program_file = tmp_path / "python3"
    program_file.write_bytes(program())
    program_file.chmod(0o755)
    spec = Spec(graph, programs="shell")
    assert [result for result in probe(kind, spec, [CANARY]) if not result.passed] == []
    weak = replace(spec, mounts={"/sandbox/bin/python3": program_file})
    found = {result.name: result.detail for result in probe(kind, weak, [CANARY]) if not result.passed}
    assert found == {"programs": "/sandbox/bin/python3 is there"}


def test_where_it_cannot_be_closed_there_is_no_such_sandbox(bwrap: Backend, tmp_path: Path) -> None:
    """As on a system that lets bubblewrap have namespaces, but not what it runs."""
    if spare_users():
        change = 'if "CAP_SYS_ADMIN" in words: at = words.index("CAP_SYS_ADMIN"); del words[at - 1 : at + 1]'
    else:
        change = 'words[:0] = ["--disable-userns"]'
    guarded = changed_bwrap(tmp_path, change)
    with pytest.raises(SandboxUnavailable, match="can't make a sandbox of this kind here") as raised:
        guarded.open(Spec(None, programs="shell"))
    assert raised.value.hint
    with guarded.open(Spec(None)) as sandbox:
        assert text(sandbox, "echo works") == "works\n"


# What is taken of a system


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A system with the programs of the allow-list, each a copy of one static program, and the shell for scripts."""
    folder = tmp_path / "usr" / "bin"
    folder.mkdir(parents=True)
    for name in REQUIRED:
        (folder / name).write_bytes(program())
        (folder / name).chmod(0o755)
    return tmp_path


def test_programs_of_a_system(system: Path) -> None:
    (system / "usr/bin/which").write_text("#!/bin/sh\ncommand -v $1\n")
    (system / "usr/bin/egrep").write_text("#!/usr/bin/perl\n")
    (system / "usr/bin/fgrep").write_bytes(program())
    for name in ("which", "egrep"):
        (system / "usr/bin" / name).chmod(0o755)
    (system / "usr/bin/python3").write_bytes(program())
    root = find_shell_root(system)
    assert {name for name in root.files if name.startswith("usr/bin/")} == {
        f"usr/bin/{n}" for n in (*REQUIRED, "which")
    }
    assert root.binaries == {f"usr/bin/{name}" for name in REQUIRED}
    assert root.links == {"bin": "usr/bin", "usr/bin/sh": "bash"}


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"#!/usr/bin/env python3\n", program() + b"BusyBox v1.36", program() + b"toybox 0.8", None],
)
def test_a_program_that_is_missing_or_another_in_disguise(system: Path, content: bytes | None) -> None:
    grep = system / "usr/bin/grep"
    grep.unlink()
    if content is not None:
        grep.write_bytes(content)
        grep.chmod(0o755)
    with pytest.raises(Missing, match="this system has no grep of their own"):
        find_shell_root(system)


def test_a_root_that_was_copied(tmp_path: Path) -> None:
    """Of this machine's own system: binaries can be run but not read, libraries read but not run."""
    try:
        copy_root(tmp_path)
    except Missing as missing:
        pytest.skip(str(missing))
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes["usr/bin/bash"] == modes["usr/bin/ls"] == 0o111
    libraries = {name: mode for name, mode in modes.items() if ".so" in name and (tmp_path / name).is_file()}
    assert any(name.endswith("/libc.so.6") or "musl" in name for name in libraries)
    assert {mode for name, mode in libraries.items()} <= {0o111, 0o644}
    assert [
        name for name, mode in libraries.items() if mode == 0o111 and "ld-" not in name and "musl" not in name
    ] == []
    assert (tmp_path / "bin/sh").resolve() == tmp_path / "usr/bin/bash"
