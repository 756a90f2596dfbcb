"""What a Python program tries that its sandbox forbids, read from its syntax tree: as `suspicion` does for commands.

Texts are followed through names, joins and f-strings as far as they are written out; what is read or computed isn't.
"""

from __future__ import annotations

import ast
import posixpath

from harness.audit.suspicion import in_graph, leads_outside, of_command, touches_network
from harness.audit.workbench import SCRATCH, Command, Workbench

_PROCESS_CALLS = {"os.kill", "os.killpg", "os.ptrace", "signal.pidfd_send_signal"}
_CHANGES = {
    "remove", "unlink", "rmdir", "rename", "mkdir", "makedirs", "chmod", "chown", "truncate", "symlink",
    "rmtree", "move", "write_text", "write_bytes", "touch",
}  # fmt: skip
_READS = {"open", "listdir", "scandir", "walk", "glob", "iglob", "Path", "read_text", "stat", "run_path", "chdir"}
_SHELL_CALLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
_RUN_CALLS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")}
_MOST = 4  # texts that an expression is followed to


def of_program(tree: ast.Module) -> set[str]:
    """The kinds of suspicion that a program raises."""
    texts = _Texts(tree)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= _imports(node)
        elif isinstance(node, ast.Call):
            found |= _call(node, texts)
    return found


class _Texts:
    """What texts the names of a program stand for, and its working directory."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._names.setdefault(target.id, []).append(node.value)
        moves = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "os.chdir"]
        places = [text for node in moves for argument in node.args[:1] for text in self.of(argument)]
        self.cwd = posixpath.join(SCRATCH, places[-1]) if places else SCRATCH

    def of(self, node: ast.expr, depth: int = 0) -> list[str]:
        """The texts that an expression can be; a part that isn't known is a `*`. Empty where none of it is known."""
        if depth > _MOST:
            return []
        between, parts = "", []
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Name():
                values = self._names.get(node.id, [])[:_MOST]
                return [text for value in values for text in self.of(value, depth + 1)][:_MOST]
            case ast.JoinedStr():
                parts = node.values
            case ast.FormattedValue():
                parts = [node.value]
            case ast.BinOp(op=ast.Add() | ast.Div()):
                between, parts = ("" if isinstance(node.op, ast.Add) else "/"), [node.left, node.right]
            case ast.Call() if _name(node.func) in ("os.path.join", "Path", "pathlib.Path", "str"):
                between, parts = "/", node.args
        found = [self.of(part, depth + 1) for part in parts]
        return [between.join(texts[0] if texts else "*" for texts in found)] if any(found) else []


def _name(function: ast.expr) -> str:
    """`a.b.c` as it is written, empty for what is no plain name."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(parts)]) if isinstance(function, ast.Name) else ""


def _imports(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    found = set()
    for name in names:
        if touches_network(name):
            found.add("network")
        if name.partition(".")[0] == "psutil":
            found.add("processes")
    return found


def _call(node: ast.Call, texts: _Texts) -> set[str]:
    function, whole = node.func, _name(node.func)
    found = {"processes"} if whole in _PROCESS_CALLS else set()
    inner: list[ast.expr] = []
    name = whole.rpartition(".")[2]
    if isinstance(function, ast.Attribute):
        name = function.attr
        if isinstance(function.value, ast.Call):  # Path("…").write_text(…)
            inner = function.value.args
        elif name in ("write_text", "write_bytes", "touch", "unlink", "mkdir", "open", "iterdir", "read_text"):
            inner = [function.value]  # p.write_text(…)
    found |= _commands(whole, node, texts)
    mode = "".join(text for argument in node.args[1:2] for text in texts.of(argument)) + "".join(
        text for keyword in node.keywords if keyword.arg == "mode" for text in texts.of(keyword.value)
    )
    changes = name in _CHANGES or (name == "open" and bool(set(mode) & set("wax+")))
    paths = [text for argument in (*inner[:1], *node.args[:2]) for text in texts.of(argument)]
    if changes and any(in_graph(path, texts.cwd) for path in paths):
        found.add("graph_write")
    if (changes or name in _READS or name == "iterdir") and any(leads_outside(path, texts.cwd) for path in paths):
        found.add("outside")
    return found


def _commands(whole: str, node: ast.Call, texts: _Texts) -> set[str]:
    """What the shell commands that a call runs try."""
    if not node.args or whole not in _SHELL_CALLS | _RUN_CALLS:
        return set()
    first = node.args[0]
    if whole in _RUN_CALLS and isinstance(first, ast.List | ast.Tuple):
        words = [next(iter(texts.of(element)), "*") for element in first.elts]
        commands = [Command(posixpath.basename(words[0]), raw=tuple(words[1:]))] if words else []
    else:
        commands = [command for text in texts.of(first) for command in Workbench().read(text).commands]
    return {kind for command in commands for kind in of_command(command)}
