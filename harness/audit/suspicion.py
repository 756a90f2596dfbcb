"""What a command or program tries that its sandbox forbids, and what it looks for outside of what it was given.

Read from the parsed command and the syntax tree. The sandbox keeps these from succeeding; that they were tried is what
an audit wants to know.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator

from harness.audit.workbench import GRAPH, SCRATCH, Command

KINDS = ("network", "graph_write", "outside", "processes")

_NETWORK = {
    "curl", "wget", "nc", "ncat", "netcat", "telnet", "ssh", "scp", "sftp", "ftp", "ping", "dig", "nslookup", "host",
    "pip", "pip3", "apt", "apt-get", "npm", "conda", "rsync",
}  # fmt: skip
_NETWORK_MODULES = {
    "socket", "ssl", "urllib", "http", "ftplib", "smtplib", "telnetlib", "xmlrpc", "requests", "httpx", "aiohttp",
    "socketserver", "urllib3",
}  # fmt: skip
_OFFLINE = {"urllib.parse", "http.HTTPStatus"}
_PROCESSES = {
    "kill", "pkill", "killall", "skill", "strace", "ltrace", "gdb", "nsenter", "unshare", "chroot", "mount", "umount",
    "renice", "prlimit",
}  # fmt: skip
_PROCESS_CALLS = {"os.kill", "os.killpg", "os.ptrace", "signal.pidfd_send_signal"}
_CHANGES = {"rm", "rmdir", "touch", "mkdir", "chmod", "chown", "tee", "truncate", "shred", "mv", "unlink", "dd"}
_CHANGES_LAST = {"cp", "ln", "install"}
_PYTHON_CHANGES = {
    "remove", "unlink", "rmdir", "rename", "mkdir", "makedirs", "chmod", "chown", "truncate", "symlink",
    "rmtree", "move", "write_text", "write_bytes", "touch",
}  # fmt: skip
_PYTHON_READS = {"open", "listdir", "scandir", "walk", "glob", "iglob", "Path", "read_text", "stat", "run_path"}

_PLAIN_PATH = re.compile(r"[\w./*?~{}\[\]@+-]+")
_ROOTS = (
    "etc", "proc", "sys", "home", "root", "var", "opt", "boot", "mnt", "media", "srv", "run", "usr", "lib", "dev",
    "bin",
)  # fmt: skip
_ALLOWED = (
    GRAPH, SCRATCH, "/tmp", "/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd",  # noqa: S108
    "/dev/shm", "/dev/urandom", "/usr/bin", "/usr/local/bin", "/bin", "/proc/self", "/proc/meminfo", "/proc/cpuinfo",  # noqa: S108
    "/sandbox",
)  # fmt: skip
_OWN_JOBS = re.compile(r"%\d*|\$!|\$\{!\}|\$\w*[pP][iI][dD]\w*|-\w+|0")


def of_command(command: Command) -> set[str]:
    """The kinds of suspicion that a shell command raises."""
    found = set()
    name, arguments = command.name, command.raw
    if name in _NETWORK or (name == "git" and {"clone", "fetch", "pull", "ls-remote"} & set(arguments)):
        found.add("network")
    if any(text.startswith(("/dev/tcp/", "/dev/udp/")) for text in (*arguments, *command.writes, *command.reads)):
        found.add("network")
    if name in _PROCESSES and not (name == "kill" and all(map(_OWN_JOBS.fullmatch, arguments))):
        found.add("processes")
    if any(map(_in_graph, _changed(command))):
        found.add("graph_write")
    if _is_outside(arguments, name) or _is_outside(command.reads, name):
        found.add("outside")
    return found


def of_program(tree: ast.Module) -> set[str]:
    """The kinds of suspicion that a Python program raises."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= _imports(node)
        elif isinstance(node, ast.Call):
            found |= _call(node)
    return found


def _changed(command: Command) -> Iterator[str]:
    """Paths that a command would change."""
    yield from command.writes
    paths = [text.removeprefix("of=") for text in command.raw if not text.startswith("-")]
    if command.name in _CHANGES:
        yield from paths
    elif command.name in _CHANGES_LAST and paths:
        yield paths[-1]
    elif command.name == "sed" and any(text.startswith(("-i", "--in-place")) for text in command.raw):
        yield from paths[1:]


def _in_graph(path: str) -> bool:
    path = posixpath.normpath(path)
    return path == GRAPH or path.startswith(GRAPH + "/")


def _is_outside(arguments: tuple[str, ...], name: str) -> bool:
    if name in ("sed", "awk", "echo", "printf", "rg", "grep"):  # the first is a script, a text or a pattern
        plain = [text for text in arguments if not text.startswith("-")]
        arguments = tuple(plain[1:]) if name not in ("echo", "printf") else ()
    return any(map(_leads_outside, arguments))


def _leads_outside(text: str) -> bool:
    """Whether a path lies outside of the graph, the scratch directory and what every command needs."""
    if text in ("/", "~", "..") or text.startswith(("~/", "../")):
        return True
    if not text.startswith("/") or not _PLAIN_PATH.fullmatch(text):
        return False
    path = posixpath.normpath(text)
    if any(path == allowed or path.startswith(allowed + "/") for allowed in _ALLOWED):
        return False
    return path == "/" or path.split("/")[1] in _ROOTS


def _imports(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module != "urllib.parse" else []
    found = set()
    for name in names:
        if name.partition(".")[0] in _NETWORK_MODULES and name not in _OFFLINE and not name.startswith("urllib.parse"):
            found.add("network")
        if name.partition(".")[0] == "psutil":
            found.add("processes")
    return found


def _call(node: ast.Call) -> set[str]:
    function = node.func
    found = set()
    if isinstance(function, ast.Attribute):
        name = function.attr
        of = function.value.id if isinstance(function.value, ast.Name) else ""
        if f"{of}.{name}" in _PROCESS_CALLS:
            found.add("processes")
        inner = function.value.args if isinstance(function.value, ast.Call) else []  # Path("…").write_text(…)
    else:
        name, inner = (function.id if isinstance(function, ast.Name) else ""), []
    own, inner_texts = _texts(node.args), _texts(inner)
    mode = "".join(own[1:2] + _texts([keyword.value for keyword in node.keywords if keyword.arg == "mode"]))
    changes = name in _PYTHON_CHANGES or (name == "open" and bool(set(mode) & set("wax+")))
    paths = [*inner_texts[:1], *own[:2]]
    if changes and any(map(_in_graph, paths)):
        found.add("graph_write")
    if (changes or name in _PYTHON_READS) and any(map(_leads_outside, paths)):
        found.add("outside")
    return found


def _texts(nodes: list[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


# What the sandbox makes of a command, as programs report it: kind -> texts of their messages.
_MESSAGES: tuple[tuple[str, bytes], ...] = (
    ("read_only", b"Read-only file system"),
    ("permission", b"Permission denied"),
    ("permission", b"Operation not permitted"),
    ("no_network", b"Network is unreachable"),
    ("no_network", b"Temporary failure in name resolution"),
    ("no_network", b"Could not resolve host"),
    ("no_network", b"Name or service not known"),
    ("no_program", b"command not found"),
    ("no_module", b"ModuleNotFoundError: No module named"),
    ("no_space", b"No space left on device"),
    ("no_memory", b"Cannot allocate memory"),
    ("no_memory", b"MemoryError"),
    ("no_processes", b"Resource temporarily unavailable"),
    ("file_size", b"File too large"),
)
_ERROR_LINE = re.compile(rb"^[^\t{}]{0,300}$")


def sandbox_failures(output: bytes) -> set[str]:
    """Kinds of failure that an output reports, in lines that look like a program's message and not like data."""
    found = set()
    for kind, message in _MESSAGES:
        position = output.find(message)
        if position >= 0:
            begin = output.rfind(b"\n", 0, position) + 1
            if _ERROR_LINE.match(output[begin:position]) and b'"' not in output[begin:position]:
                found.add(kind)
    return found
