"""A person's terminal, relayed to a shell inside a sandbox."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType

from sandbox.client import Client
from sandbox.contract import SandboxError, SandboxLost, ShellEnd, Spec
from sandbox.supervised import SupervisedSandbox

PROMPT: Mapping[str, str] = {"PS1": r"sandbox:\w\$ "}
_KEYS = 4096  # bytes read from the keyboard at once


def shell_in(
    open_sandbox: Callable[[Spec], SupervisedSandbox], spec: Spec, keyboard: int = 0, screen: int = 1
) -> ShellEnd:
    """Open a sandbox, give the terminal at `keyboard` and `screen` a bash in it, and return how bash ended.

    The sandbox is the agent's, but for a prompt and the terminal's own TERM. Raises SandboxError if `keyboard` is no
    terminal, SandboxUnavailable and SandboxLost.
    """
    if not os.isatty(keyboard):
        raise SandboxError("a shell in the sandbox needs a terminal", "run it without redirecting its input")
    env = {**spec.env, **PROMPT, "TERM": os.environ.get("TERM", "dumb")}
    with open_sandbox(replace(spec, env=env)) as sandbox:
        return relay(sandbox.client, keyboard, screen)


def relay(client: Client, keyboard: int, screen: int) -> ShellEnd:
    """Relay until the shell ends; the terminal is in raw mode meanwhile. Call it from the main thread."""
    with _raw(keyboard), _wake_pipe() as (woken, wake), _window_changes(wake):
        client.start_shell(*_size(keyboard))
        keys = threading.Thread(target=_send_keys, args=(client, keyboard, woken), daemon=True)
        keys.start()
        try:
            while isinstance(text := client.shell_text(), bytes):
                _write(screen, text)
        finally:
            os.write(wake, b"q")
            keys.join()
        return text


def _send_keys(client: Client, keyboard: int, woken: int) -> None:
    """Everything that goes to the sandbox is sent from here, so that no two frames mix."""
    with contextlib.suppress(SandboxLost):
        while True:
            ready, _, _ = select.select([keyboard, woken], [], [])
            if woken in ready:
                if b"q" in os.read(woken, 64):
                    return
                client.shell_size(*_size(keyboard))
            elif keys := os.read(keyboard, _KEYS):
                client.shell_keys(keys)
            else:
                client.shell_keys(b"\x04")  # the terminal is gone: as if it had said end of file
                return


def _size(terminal: int) -> tuple[int, int]:
    size = os.get_terminal_size(terminal)
    return size.lines, size.columns


def _write(screen: int, text: bytes) -> None:
    while text:
        text = text[os.write(screen, text) :]


@contextlib.contextmanager
def _raw(keyboard: int) -> Iterator[None]:
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard, termios.TCSADRAIN)  # what was typed while the sandbox was made is not lost
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _wake_pipe() -> Iterator[tuple[int, int]]:
    woken, wake = os.pipe()
    try:
        yield woken, wake
    finally:
        os.close(woken)
        os.close(wake)


@contextlib.contextmanager
def _window_changes(wake: int) -> Iterator[None]:
    def changed(_signal: int, _frame: FrameType | None) -> None:
        os.write(wake, b"w")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
