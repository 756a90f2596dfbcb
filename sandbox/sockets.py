"""A Unix socket of the harness that a sandbox can connect to, though it has no network.

The socket listens in a folder that is mounted read-only into the sandbox: connecting writes to the socket, not to the
folder. The sandbox's user is another than ours, so the socket is open to everybody; on the host, the folder lies in one
that only we can enter.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def listening(name: str, backlog: int = 64) -> Iterator[tuple[Path, socket.socket]]:
    """(folder, socket): a new folder for `Spec.mounts`, and what listens in it under this name.

    Both are gone at the end. The connections that the caller has accepted are the caller's.
    """
    with tempfile.TemporaryDirectory(prefix="kgshell-") as private, socket.socket(socket.AF_UNIX) as server:
        folder = Path(private, "shown")
        folder.mkdir()
        folder.chmod(0o755)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # A socket's address is at most 107 bytes long; a folder's path may be longer.
            server.bind(f"/proc/self/fd/{descriptor}/{name}")
        finally:
            os.close(descriptor)
        (folder / name).chmod(0o666)
        server.listen(backlog)
        yield folder, server
