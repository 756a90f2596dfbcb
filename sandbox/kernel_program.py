"""What runs in the sandbox of a `Kernel`: a Python that is told code, one call after the other, and keeps its state.

Descriptor 4 is the supervisor's socket: a message is a call's number and a descriptor of its code, the answer that
number and an exit code. This file's text is handed to Python as it is, so it needs nothing but the standard library.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import signal
import socket
import sys
import traceback
import types
from types import CodeType

CONTROL = 4


class Interpreter:
    """Runs code in a module `__main__` of its own."""

    def __init__(self) -> None:
        self._own_main = sys.modules["__main__"]  # kept alive, for it is what runs here
        self._module = types.ModuleType("__main__")
        self._module.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = self._module

    def run(self, source: str, number: int) -> int:
        """Run one call's code, showing the value of its last expression; 0, or an exit code if it failed."""
        name = f"<call {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            try:
                statements, expression = _compiled(source, name)
            except Exception as error:  # noqa: BLE001 - syntax errors, and others for text that is no code
                _show(error, None)
                return 1
            try:
                eval(statements, self._module.__dict__)  # noqa: S307 - running code is what this is for
                if expression is not None:
                    sys.displayhook(eval(expression, self._module.__dict__))  # noqa: S307
            except SystemExit as leaving:
                return _exit_code(leaving)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the code's
                _show(error, error.__traceback__)
                return 1
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption that comes too late
        return 0


def _compiled(source: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The code, but for a last expression, and that."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    statements = compile(tree, name, "exec", dont_inherit=True)
    if not isinstance(last, ast.Expr):
        return statements, None
    return statements, compile(ast.Expression(last.value), name, "eval", dont_inherit=True)


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return (leaving.code or 0) & 255
    print(leaving.code, file=sys.stderr)  # noqa: T201 - as Python itself does
    return 1


def _show(error: BaseException, trace: types.TracebackType | None) -> None:
    """Print the traceback without our own frames: those before the code's first."""
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<call "):
        trace = trace.tb_next
    _flush()
    traceback.print_exception(type(error), error, trace)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have put anything there
            stream.flush()


def _read(descriptor: int) -> str:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read().decode()


def main() -> None:
    """Answer calls until the socket ends."""
    control = socket.socket(fileno=CONTROL)
    os.set_inheritable(CONTROL, False)
    sys.argv[:] = [""]
    interpreter, process, number = Interpreter(), os.getpid(), 0
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message or not descriptors:
            return
        number += 1
        try:
            code = interpreter.run(_read(descriptors[0]), number)
        except KeyboardInterrupt:  # in the last moment
            code = 130
        _flush()
        if os.getpid() != process:
            os._exit(code)  # the code has forked, and this is the child
        control.send(message + b" %d" % code)


if __name__ == "__main__":
    main()
