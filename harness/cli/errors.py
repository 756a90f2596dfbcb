"""What a command's error looks like to a person: one line, a hint, an exit code. The one place that decides it.

Exit codes: 2 the user's mistake, 3 infrastructure, 130 stopped with Ctrl-C. Anything that is not listed here is a
defect and keeps its traceback.
"""

from __future__ import annotations

import errno
import importlib
import sys
from typing import NamedTuple

import click
from click.core import ParameterSource

from harness.cli import STOPPED
from harness.config import config_path
from harness.errors import HarnessError, InfrastructureError, KeyRejected, RequestRejected
from harness.suggest import did_you_mean
from harness.suggest import hint as suggestion
from harness.text import line

USER, INFRASTRUCTURE, INTERRUPTED = 2, 3, STOPPED

# Folders and files that can't be read or written, and a full disk: the user's to change.
_DISK = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTDIR, errno.EISDIR}


class Stopped(Exception):
    """Ctrl-C: nobody's mistake."""


class Problem(NamedTuple):
    """An error as it is printed: `error: message`, `hint: hint` (where there is one), and the exit code."""

    message: str
    hint: str
    code: int


def report(error: Exception, command: str = "harness") -> int | None:
    """Print `error` to stderr and return the exit code; None, and nothing printed, for a defect.

    A mistake that comes without a hint gets one: where the help of `command` is.
    """
    problem = explain(error)
    if problem is None:
        return None
    hint = problem.hint or (f"see {command} --help" if problem.code == USER else "")
    if problem.code != INTERRUPTED:
        click.echo(f"error: {line(problem.message)}", err=True)
    else:  # a terminal has just shown ^C
        click.echo(("\n" if sys.stderr.isatty() else "") + problem.message, err=True)
    if hint:
        click.echo(f"hint: {line(hint)}", err=True)
    return problem.code


def explain(error: Exception) -> Problem | None:
    """The error in a person's terms, or None for what nobody raised on purpose."""
    if isinstance(error, Stopped | click.Abort):
        return Problem("stopped", "", INTERRUPTED)
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return Problem(error.format_message(), "", USER)
    if isinstance(error, HarnessError):
        ours = isinstance(error, InfrastructureError) and not isinstance(error, KeyRejected | RequestRejected)
        return Problem(str(error), error.hint, INFRASTRUCTURE if ours else USER)
    if isinstance(error, OSError) and error.errno in _DISK:
        return _disk(error)
    return _from_lower_packages(error)


def _from_lower_packages(error: Exception) -> Problem | None:
    # Imported only when an error is neither click's nor ours, so that a mistyped flag stays quick.
    exporter, sandbox = importlib.import_module("exporter"), importlib.import_module("sandbox")
    if isinstance(error, exporter.ExportError):
        return Problem(str(error), error.hint, USER)
    if isinstance(error, sandbox.SandboxError):
        code = USER if isinstance(error, sandbox.SandboxUnavailable) else INFRASTRUCTURE
        return Problem(str(error), error.hint, code)
    return None


def _usage(error: click.UsageError) -> Problem:
    path = error.ctx.command_path if error.ctx else "harness"
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        commands = ", ".join(error.ctx.command.list_commands(error.ctx))
        return Problem(f"{path} needs a command", f"commands: {commands}; see {path} --help", USER)
    if isinstance(error, click.NoSuchOption):
        flags = _flags(error.ctx)
        guess = did_you_mean(error.option_name, flags)
        return Problem(f"{path} has no flag {error.option_name}", guess or f"flags: {', '.join(flags)}", USER)
    if isinstance(error, click.NoSuchCommand) and isinstance(error.cmd, click.Group) and error.ctx:
        known = error.cmd.list_commands(error.ctx)
        return Problem(
            f"unknown command '{error.command_name}'", suggestion(error.command_name, known, "commands"), USER
        )
    if isinstance(error, click.MissingParameter):
        return Problem(f"{path} needs {_name(error)}", f"see {path} --help", USER)
    if isinstance(error, click.BadParameter):
        return Problem(f"{_name(error)}: {error.message.rstrip('.')}", _origin(error) or f"see {path} --help", USER)
    message = error.format_message().rstrip(".")
    return Problem(message[:1].lower() + message[1:], f"see {path} --help", USER)


def _origin(error: click.BadParameter) -> str:
    """Where a refused value was set, if not on the command line."""
    if error.ctx is None or not isinstance(error.param, click.Option) or error.param.name is None:
        return ""
    source = error.ctx.get_parameter_source(error.param.name)
    if source is ParameterSource.ENVIRONMENT:
        return f"it is set by {error.param.envvar}"
    return f"it is set in {config_path()}" if source is ParameterSource.DEFAULT_MAP else ""


def _flags(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    options = [p for p in context.command.get_params(context) if isinstance(p, click.Option)]
    return [name for option in options for name in option.opts if name.startswith("--")]


def _name(error: click.BadParameter) -> str:
    if isinstance(error.param, click.Option):
        return max(error.param.opts, key=len)
    return error.param.make_metavar(error.ctx) if error.param and error.ctx else "a value"


def _disk(error: OSError) -> Problem:
    where = error.filename if isinstance(error.filename, str) else None
    reason = (error.strerror or "failed").lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Problem(f"{where or 'the disk'}: {reason}", "free some space, or choose a folder on another disk", USER)
    return Problem(f"{where or 'a folder'}: {reason}", "choose a folder that you may read and write", USER)
