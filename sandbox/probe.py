"""The isolation probe: attacks one fresh sandbox and says, attack by attack, whether it held.

It runs before the first question and its results go into the run's manifest, so that they say what the isolation was on
that machine on that day. It needs nothing in the sandbox but bash, coreutils, grep and find. It takes a few seconds,
most of them to fill the writable folders up.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox.client import ENVIRONMENT
from sandbox.contract import (
    GRAPH,
    SCRATCH,
    Backend,
    ExecResult,
    MiB,
    Sandbox,
    SandboxFileError,
    SandboxLost,
    Spec,
)
from sandbox.one_program import STAND_INS, OneProgramSandbox

_WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # noqa: S108 - paths inside the sandbox
_SEARCH_SECONDS = 1  # for one place
_INTERPRETERS = (
    *(
        "python*",
        "perl*",
        "*awk",
        "node*",
        "ruby*",
        "irb*",
        "lua*",
        "tclsh*",
        "wish*",
        "php*",
        "gdb",
        "vi",
        "vim*",
        "nvim",
    ),
    *(
        "emacs*",
        "ed",
        "ex",
        "sqlite3",
        "busybox*",
        "toybox",
        "jq",
        "bc",
        "dc",
        "m4",
        "make",
        "gcc*",
        "cc",
        "tcc",
        "clang*",
    ),
    *("java", "go", "rustc", "ghc", "ocaml*", "guile*", "julia*", "Rscript", "zsh", "fish", "expect", "socat", "nc"),
)
_UNFINISHED = "unfinished: "


@dataclass(frozen=True)
class ProbeResult:
    """One attack: whether the sandbox withstood it, and what was seen, in one line."""

    name: str
    passed: bool
    detail: str

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class _Target:
    sandbox: Sandbox
    spec: Spec
    canaries: Sequence[str]
    notes: list[str] = field(default_factory=list)  # what an attack that found nothing has to add

    def run(self, script: str, timeout: float = 30) -> ExecResult:
        return self.sandbox.exec(script, timeout, 8000)

    def said(self, script: str) -> str:
        """The output of a script, its ends trimmed."""
        result = self.run(script)
        return (result.head + result.tail).decode(errors="replace").strip()


def probe(backend: Backend, spec: Spec, canaries: Sequence[str]) -> list[ProbeResult]:
    """Open a sandbox as an attempt would have it, and attack it.

    `canaries` are strings that stand in label files and must be nowhere in the sandbox. Raises SandboxUnavailable or
    SandboxLost if it can't be opened; one that an attack brings down is a result that did not pass.
    """
    results: list[ProbeResult] = []
    with backend.open(spec) as sandbox:
        for name, attack in _ATTACKS.items():
            target = _Target(sandbox, spec, canaries)
            try:
                found = attack(target)
            except SandboxLost as error:
                results.append(ProbeResult(name, False, f"it brought the sandbox down: {error}"))
                break
            detail = found.splitlines() or [_HELD[name], *target.notes]
            results.append(ProbeResult(name, not found, "; ".join(detail)))
    return results


# Each attack returns what it found, "" if the sandbox held.


def _graph(target: _Target) -> str:
    """The graph, and whatever else is shown of the host; a socket is there to be written to."""
    found = [
        target.said(
            f"""
            for path in {shown} $(find {shown} -maxdepth 2 | head -n 20); do
                [ -w "$path" ] && [ ! -S "$path" ] && echo "$path can be written"
            done
            [ -d {shown} ] && touch {shown}/.probe 2>/dev/null && echo "a file was made in {shown}"
            mount -o remount,rw {shown} 2>/dev/null && echo "{shown} was mounted anew"
            """
        )
        for shown in map(shlex.quote, target.spec.shown)
    ]
    return "\n".join(filter(None, found))


def _network(target: _Target) -> str:
    return target.said(
        """
        tail -n +3 /proc/net/dev | cut -d : -f 1 | tr -d ' ' | grep -v '^lo$' | sed 's/$/ is an interface/'
        for address in 1.1.1.1/53 8.8.8.8/443 169.254.169.254/80 172.17.0.1/22; do
            timeout 1 bash -c "exec 3<>/dev/tcp/$address" 2>/dev/null && echo "$address can be reached"
            [ $? -eq 124 ] && echo "$address does not refuse"
        done
        """
    )


def _names(target: _Target) -> str:
    return target.said(
        """
        for name in example.com pypi.org; do
            why=$(timeout 2 bash -c "exec 3<>/dev/tcp/$name/80" 2>&1)
            code=$?
            [ $code -eq 0 ] && echo "$name can be reached"
            [ $code -eq 124 ] && echo "looking $name up does not fail"
            case $why in *refused*|*unreachable*) echo "$name was looked up";; esac
        done
        """
    )


def _labels(target: _Target) -> str:
    """Searches every file that can be read, place by place, the large ones last and each for a limited time."""
    wanted = "".join(f"{canary}\n" for canary in target.canaries if canary)
    if not wanted:
        return ""
    # No process gets the canaries as an argument: there they would be found.
    said = target.said(
        f"""
        shopt -s extglob
        names=$(printf %s {shlex.quote(wanted)})
        env | grep -F -f <(echo "$names") | sed 's/=.*//; s/^/the environment: /'
        search() {{
            if type rg >/dev/null; then timeout {_SEARCH_SECONDS} rg -uuu -F -l -m 1 -f <(echo "$names") -- "$1"
            else timeout {_SEARCH_SECONDS} grep -rsl -D skip -F -m 1 -f <(echo "$names") -- "$1"
            fi
            [ $? -eq 124 ] && echo "{_UNFINISHED}$1"
        }} 2>/dev/null
        for place in /!(proc|sys|dev|root|home|graph|usr) /dev/shm /root /home {GRAPH} /usr; do
            [ -e "$place" ] && [ ! -L "$place" ] && search "$place" | tail -n 3
        done
        """
    )
    lines = said.splitlines()
    unfinished = [line.removeprefix(_UNFINISHED) for line in lines if line.startswith(_UNFINISHED)]
    if unfinished:
        target.notes.append(f"{_SEARCH_SECONDS} s were not enough for all of {', '.join(unfinished)}")
    return "\n".join(f"a canary is in {line}" for line in lines if not line.startswith(_UNFINISHED))


def _processes(target: _Target) -> str:
    return target.said(
        """
        for process in /proc/[0-9]*; do
            pid=${process#/proc/}
            [ $pid -eq 1 ] || [ $pid -eq $$ ] || [ $pid -eq $BASHPID ] || echo "process $pid can be seen"
        done
        """
    )


def _supervisor(target: _Target) -> str:
    found = target.said(
        """
        for name in mem environ maps auxv fd/0 fd/1; do
            file=/proc/1/$name
            { : < $file; } 2>/dev/null && timeout 1 head -c 1 $file >/dev/null && echo "its $name can be read"
            { : >> $file; } 2>/dev/null && echo "its $name can be written"
        done
        ls /proc/1/root /proc/1/cwd /proc/1/fd >/dev/null 2>&1 && echo "its folders can be entered"
        for descriptor in 0 1 2 3 4 5; do
            { echo forged > /proc/1/fd/$descriptor; } 2>/dev/null && echo "its descriptor $descriptor can be written"
        done
        for signal in KILL STOP TERM HUP; do kill -$signal 1 2>/dev/null; done
        """
    )
    return found or _alive(target)


def _privileges(target: _Target) -> str:
    return target.said(
        """
        [ "$(id -u)" -eq 0 ] && echo "it runs as root"
        grep -E '^Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | grep -v '0000000000000000$'
        grep -q '^NoNewPrivs:.1$' /proc/self/status || echo "privileges can be gained"
        grep -q '^Seccomp:.2$' /proc/self/status || echo "system calls are not filtered"
        """
    )


def _namespaces(target: _Target) -> str:
    return target.said(
        """
        for kind in user mount net pid; do
            unshare --$kind true 2>/dev/null && echo "a $kind namespace can be made"
        done
        unshare --user --map-root-user id 2>/dev/null
        """
    )


def _programs(target: _Target) -> str:
    """Where the sandbox is to have shell tools alone: looks for interpreters, and tries to run what it wrote itself.

    Where one Python program can be run all the same, it tries to run a second.
    """
    if target.spec.programs == "all":
        return ""
    names = " -o ".join(f"-name '{name}'" for name in _INTERPRETERS)
    others = second = ""
    if isinstance(target.sandbox, OneProgramSandbox):
        others = " ".join(f"! -path {path}" for path in STAND_INS)
        second = "{ python3 -c pass; python -c 'print(\"a second program was run\")'; } 2>/dev/null"
    return target.said(
        f"""
        {second}
        find / -xdev -type f \\( {names} \\) ! -path '/proc/*' {others} 2>/dev/null | sed 's/$/ is there/'
        for folder in {" ".join(_WRITABLE)}; do
            echo '#!/bin/bash' > $folder/probe && chmod +x $folder/probe
            $folder/probe 2>/dev/null && echo "what was written to $folder can be executed"
            rm -f $folder/probe
        done
        {{ : >> /proc/self/mem; }} 2>/dev/null && echo "a process's memory can be written to"
        """
    )


def _environment(target: _Target) -> str:
    seen = target.said("compgen -e").split()
    known = {*ENVIRONMENT, *target.spec.env, "PWD", "OLDPWD", "SHLVL", "_"}
    extra = sorted(set(seen) - known)
    return f"variables that nobody set: {', '.join(extra)}" if extra else ""


def _fork_bomb(target: _Target) -> str:
    result = target.run("bomb() { bomb | bomb; }; bomb", timeout=20)
    if result.termination != "pid_limit":
        return f"a fork bomb ended by {result.termination}"
    return _alive(target)


def _disk(target: _Target) -> str:
    """Fills up what can be written, and tries to write everywhere else that something is mounted."""
    limits = target.spec.limits
    for folder, size in zip(_WRITABLE, (limits.scratch, limits.tmp, limits.shm), strict=True):
        piece = max(1, min(limits.file_bytes, size) // 2)
        pieces = size // piece + 2
        filled = target.run(
            f"""
            for i in $(seq {pieces}); do
                dd if=/dev/zero of={folder}/probe.$i bs=1M count={piece} iflag=count_bytes 2>/dev/null || break
            done
            total=0
            for size in $(stat -c %s {folder}/probe.*); do total=$((total + size)); done
            echo $total
            rm -f {folder}/probe.*
            """,
            timeout=60,
        )
        written = filled.head.decode(errors="replace").strip()
        if filled.termination != "exit" or not written.isdigit() or int(written) > size + MiB:
            return f"{folder} of {size} B took {written or 'an unknown number of'} B ({filled.termination})"
    others = " ".join(f"! -path {folder}" for folder in _WRITABLE)
    return target.said(
        f"""
        while read -r _ _ _ _ place options _; do
            case $place in {"|".join(_WRITABLE)}|/proc|/proc/*) continue;; esac
            [ -d "$place" ] && [ "${{options#rw}}" != "$options" ] || continue
            folder=$(find "$place" -xdev -type d -writable {others} -print -quit 2>/dev/null)
            [ "$folder" ] && head -c {MiB} /dev/zero 2>/dev/null > "$folder/probe" && echo "$folder can be filled"
        done < /proc/self/mountinfo
        for folder in / /dev /etc /usr /sandbox /var /run; do
            {{ : > $folder/probe; }} 2>/dev/null && echo "$folder can be written"
        done
        """
    )


def _links(target: _Target) -> str:
    """Reads back, as the harness does, through links that lead out."""
    with tempfile.NamedTemporaryFile(prefix="kgshell-probe-") as outside:
        secret = b"outside the sandbox"
        outside.write(secret)
        outside.flush()
        Path(outside.name).chmod(0o644)
        places = [
            outside.name,
            "/proc/self/mem",
            "/proc/1/mem",
            "/proc/1/environ",
            "/dev/zero",
            f"/proc/1/root{outside.name}",
        ]
        places += [str(shown.resolve().parent / "manifest.json") for shown in target.spec.shown.values()]
        for place in places:
            target.run(f"ln -sfn {shlex.quote(place)} {SCRATCH}/link")
            try:
                read = target.sandbox.read("link", 0, 100)
            except SandboxFileError:
                continue
            if secret in read.data or place != outside.name:
                return f"{place} could be read through a link to it"
    target.run(f"rm -f {SCRATCH}/link; mkfifo {SCRATCH}/pipe")
    try:
        target.sandbox.read("pipe", 0, 100)
    except SandboxFileError:
        target.run(f"rm -f {SCRATCH}/pipe")
        return ""
    return "a pipe was read as if it were a file"


def _alive(target: _Target) -> str:
    return "" if target.said("echo alive") == "alive" else "the sandbox did not survive it"


_ATTACKS: dict[str, Callable[[_Target], str]] = {
    "graph": _graph,
    "network": _network,
    "dns": _names,
    "labels": _labels,
    "processes": _processes,
    "supervisor": _supervisor,
    "privileges": _privileges,
    "namespaces": _namespaces,
    "programs": _programs,
    "environment": _environment,
    "links": _links,
    "fork_bomb": _fork_bomb,
    "disk": _disk,
}

_HELD = {
    "graph": "the graph can't be written",
    "network": "no interface but loopback, no address can be reached",
    "dns": "no name can be looked up",
    "labels": "no canary in any file that can be read",
    "processes": "no process but its own can be seen",
    "supervisor": "its memory and descriptors are closed, signals don't reach it",
    "privileges": "an ordinary user without capabilities, no new privileges, system calls filtered",
    "namespaces": "no namespace can be made",
    "programs": "what the mode asks for",
    "environment": "an allow-list",
    "links": "links and pipes don't lead the harness astray",
    "fork_bomb": "ended at the limit on processes",
    "disk": "what can be written is of limited size, nothing else can be",
}
