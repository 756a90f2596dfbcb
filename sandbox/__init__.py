"""Runs untrusted commands: Docker and bubblewrap behind one contract. Imports nothing else of this project."""

from sandbox.choose import choose
from sandbox.contract import (
    GRAPH,
    OUTPUTS,
    SCRATCH,
    Backend,
    ExecResult,
    FileSlice,
    Limits,
    Sandbox,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    SandboxUnavailable,
    ShellEnd,
    Spec,
    Termination,
)
from sandbox.kernel import Kernel, KernelBackend, KernelResult, KernelSandbox
from sandbox.one_program import OneProgramBackend, ProgramRun
from sandbox.orphans import Leftover, clean, leftovers
from sandbox.probe import ProbeResult, probe

__all__ = [
    "GRAPH",
    "OUTPUTS",
    "SCRATCH",
    "Backend",
    "ExecResult",
    "FileSlice",
    "Kernel",
    "KernelBackend",
    "KernelResult",
    "KernelSandbox",
    "Leftover",
    "Limits",
    "OneProgramBackend",
    "ProbeResult",
    "ProgramRun",
    "Sandbox",
    "SandboxError",
    "SandboxFileError",
    "SandboxLost",
    "SandboxUnavailable",
    "ShellEnd",
    "Spec",
    "Termination",
    "choose",
    "clean",
    "leftovers",
    "probe",
]
