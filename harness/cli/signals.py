"""SIGTERM and the end of the terminal stop a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ends_like_ctrl_c() -> Iterator[None]:
    """KeyboardInterrupt for either signal, within the block; one that is ignored already (`nohup`) stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [each for each in _ENDS if signal.getsignal(each) is signal.SIG_DFL]
    for each in changed:
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, signal.SIG_DFL)
