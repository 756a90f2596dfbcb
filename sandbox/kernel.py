"""A Python that lives as long as an attempt: what one call defines and loads, the next one finds.

It runs in a twin of the attempt's sandbox, over the same /scratch and /tmp, so that commands there and code here work
with the same files. Code runs as if typed to Python: the value of its last expression is shown. Standard input is
empty. Output is cut and spilled as a command's is, and the limits of a call are those of a command. A call that takes
too long is interrupted (KeyboardInterrupt), which leaves the interpreter and its data as they are; one that goes on
for three more seconds, uses too much memory or starts too many processes ends the interpreter. Between calls the
interpreter and what it has started are stopped; they end with it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from importlib.resources import files
from types import TracebackType
from typing import Self

from sandbox.around import Around
from sandbox.contract import Backend, ExecResult, Sandbox, ShellEnd, Spec
from sandbox.supervised import SupervisedSandbox


@dataclass(frozen=True)
class KernelResult:
    """One call's outcome, and what became of the interpreter.

    `exec` is as for a command: `exit_code` is 0, 1 for an exception, what `sys.exit` was given, or what the
    interpreter ended with. `anew` says that this call had a new interpreter, because that of earlier calls had
    ended; `alive` that the next call finds this one. `exec.memory` is the peak of all that the interpreter holds.
    """

    exec: ExecResult
    anew: bool
    alive: bool

    @property
    def notice(self) -> str:
        """What the agent has to know beside the output; empty if all is as usual."""
        lines = []
        if self.anew:
            lines.append("Python was started anew for this call: what earlier calls had defined was gone.")
        if not self.alive:
            lines.append("Python has ended: the next call starts it anew, without what was defined so far.")
        return " ".join(lines)


class Kernel:
    """A context manager; opens its twin at once, and Python at the first call."""

    def __init__(self, backend: Backend, spec: Spec, twin_of: Sandbox) -> None:
        """`spec` is the twin's. Raises what `Backend.open` raises."""
        sandbox = backend.open(spec, twin_of=twin_of)
        if not isinstance(sandbox, SupervisedSandbox):
            sandbox.close()
            raise ValueError(f"a sandbox of kind {sandbox.kind} can't hold a kernel")
        self._sandbox = sandbox
        self._alive = self._used = False

    def run(self, code: str, timeout: float, cap: int) -> KernelResult:
        """Run the code and return when it is done, a limit is hit or `timeout` passes; see `Sandbox.exec`.

        Raises SandboxLost; ValueError for text that can't be encoded.
        """
        anew = self._used and not self._alive
        if not self._alive:
            self._sandbox.start(f"exec 3<&-; exec python3 -c {shlex.quote(_program())}")
        self._used = True
        result, self._alive = self._sandbox.say(code, timeout, cap)
        return KernelResult(result, anew, self._alive)

    @property
    def memory(self) -> int:
        """Bytes in use, as last reported from inside. The first sandbox's `memory` includes them."""
        return self._sandbox.memory

    def close(self) -> None:
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class KernelBackend:
    """Opens sandboxes with a kernel on another backend."""

    def __init__(self, backend: Backend) -> None:
        self.kind = backend.kind
        self._backend = backend

    def open(self, spec: Spec, twin_of: Sandbox | None = None) -> KernelSandbox:
        """As the contract says. Raises ValueError if `spec.programs` is not "all", or for a twin."""
        if spec.programs != "all" or twin_of is not None:
            raise ValueError("a sandbox with a kernel has all programs, and is no twin")
        return KernelSandbox(self._backend, spec, self._backend.open(replace(spec, shared=True)))

    def describe(self) -> dict[str, object]:
        return self._backend.describe()

    def shell(self, spec: Spec) -> ShellEnd:
        return self._backend.shell(spec)


class KernelSandbox(Around):
    """A `Sandbox` (see the contract) with a kernel beside it, which is opened at the first call."""

    def __init__(self, backend: Backend, spec: Spec, first: Sandbox) -> None:
        super().__init__(first, first.close)  # which closes the kernel's twin too
        self._backend = backend
        self._spec = spec
        self._kernel: Kernel | None = None

    def python(self, code: str, timeout: float, cap: int) -> KernelResult:
        """See `Kernel.run`. Raises SandboxUnavailable too, where the kernel can't be had."""
        if self._kernel is None:
            self._kernel = Kernel(self._backend, self._spec, self.first)
        return self._kernel.run(code, timeout, cap)


def _program() -> str:
    return files("sandbox").joinpath("kernel_program.py").read_text(encoding="utf-8")
