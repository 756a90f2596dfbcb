"""What the model sees of a command's output: how it ended, and as much of it as the mode's settings allow.

Whenever anything is left out, the whole output lies in a file in the sandbox and the notice names it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from harness.cut import View, shorten
from harness.modes import Output
from harness.spill import Spills
from harness.text import count_of
from sandbox import ExecResult, Sandbox


@dataclass(frozen=True)
class Observation:
    """A tool's result: the text the model sees and what the trajectory keeps beside it.

    `error` is None, or the kind of the model's own mistake ("unknown_tool", "malformed_arguments",
    "invalid_arguments", "file_error", "not_found", "not_executed"). `whole` is the complete output where it is at hand,
    `spill` the file in the sandbox that holds it.
    """

    text: str
    error: str | None = None
    exec: dict[str, Any] | None = None
    cut: dict[str, Any] | None = None
    spill: str | None = None
    whole: bytes | None = None
    answer: tuple[Any, ...] | None = None  # given by an answer tool: the attempt is over


def observe(sandbox: Sandbox, spills: Spills, result: ExecResult, output: Output, cap: int, status: str) -> Observation:
    """Turn one call's result into what the model sees, at most about `cap` characters and the `status` before them.

    Reads the spilled output back (up to `output.blob_bytes`) so that long lines can be shortened one by one,
    and spills a short output of which a line was shortened. Raises SandboxLost.
    """
    spills.seen(result.spill)
    spilled = result.spilled_bytes
    spill = result.spill if spilled else None  # in a full scratch directory the file is made, and stays empty
    whole = _whole(sandbox, result, output.blob_bytes)
    view = shorten(decode(whole), output, cap) if whole is not None else _shorten_ends(sandbox, result, output, cap)
    if (view.cut_lines or view.omitted) and spill is None and whole is not None:
        spill = spills.save(whole)
        spilled = len(whole) if spill else 0
    parts = [status, view.text]
    cut = None
    if view.cut_lines or view.omitted:
        cut = {"lines": view.cut_lines, "characters": view.omitted, "spill": spill, "spilled_bytes": spilled}
        parts.append(_notice(result, view, output.line_cap, spill, spilled))
    elif not view.text:
        parts = [f"{status} no output"]
    return Observation(
        text="\n".join(part.rstrip("\n") for part in parts),
        exec=_exec_record(result),
        cut=cut,
        spill=spill if spilled == result.total_bytes else None,
        whole=whole,
    )


def decode(data: bytes) -> str:
    """Bytes of unknown kind as text that any JSON consumer takes: bad UTF-8 and NUL get visible stand-ins."""
    return data.decode("utf-8", "replace").replace("\0", "\N{SYMBOL FOR NULL}")


def _shorten_ends(sandbox: Sandbox, result: ExecResult, output: Output, cap: int) -> View:
    """For an output too large to read back, or not kept whole: what came with the result, each end by itself."""
    if output.keep == "tail":
        return _shorten_tail(sandbox, result, output, cap)
    head = shorten(decode(result.head), output, cap // 2)
    tail = shorten(decode(result.tail), output, cap // 2)
    omitted = result.total_bytes - len(result.head) - len(result.tail) + head.omitted + tail.omitted
    text = f"{head.text}\n[... {count_of(omitted, 'byte')} left out here ...]\n{tail.text}"
    return View(text, head.cut_lines + tail.cut_lines, omitted)


def _shorten_tail(sandbox: Sandbox, result: ExecResult, output: Output, cap: int) -> View:
    end = result.tail[-cap:]
    if result.spill is not None and result.spilled_bytes == result.total_bytes:
        end = sandbox.read(result.spill, max(0, result.spilled_bytes - cap), cap).data
    tail = shorten(decode(end), output, cap)
    omitted = result.total_bytes - len(end)
    return View(
        f"[... {count_of(omitted, 'byte')} left out above ...]\n{tail.text}", tail.cut_lines, omitted + tail.omitted
    )


def _whole(sandbox: Sandbox, result: ExecResult, most: int) -> bytes | None:
    """The whole output, read back where it was spilled; None where there is too much of it, or a part is lost."""
    if len(result.head) + len(result.tail) == result.total_bytes:
        return result.head + result.tail
    if result.spill is None or result.spilled_bytes < result.total_bytes or result.total_bytes > most:
        return None
    return sandbox.read(result.spill, 0, result.total_bytes).data


def status_of(result: ExecResult, timeout: float, then: str = "everything it started was killed") -> str:
    """The first line: how the call ended, and what was done `then` at a limit.

    No times, so that a replay can be compared byte for byte.
    """
    ends = {
        "timeout": f"[ended by the time limit of {timeout:g} s; {then}]",
        "oom": f"[ended: out of memory; {then}]",
        "pid_limit": f"[ended: too many processes or threads; {then}]",
        "cpu_limit": f"[ended by the CPU time limit; {then}]",
        "file_limit": "[ended: a file grew over the size limit]",
        "output_limit": "[ended: its output filled the scratch directory]",
    }
    return ends.get(result.termination, f"[exit code {result.exit_code}]")


def _notice(result: ExecResult, view: View, line_cap: int | None, spill: str | None, spilled: int) -> str:
    what = f"[cut: {count_of(result.total_bytes, 'byte')}, {count_of(result.lines, 'line')} in all"
    if view.cut_lines:
        are = "is" if view.cut_lines == 1 else "are"
        what += f"; {view.cut_lines:,} of the lines shown {are} shortened to {count_of(line_cap, 'character')}"
    if not spilled:
        return f"{what}; the rest is lost: the scratch directory is full]"
    if spilled < result.total_bytes:
        return f"{what}; its beginning ({count_of(spilled, 'byte')}) is in {spill}, the rest is lost]"
    return f"{what}; the whole output is in {spill}]"


def _exec_record(result: ExecResult) -> dict[str, Any]:
    record = asdict(result)
    for key in ("head", "tail", "spilled_bytes"):
        del record[key]
    return record
