"""A folder that appears complete or not at all, made by one process at a time; and files that are hashed as written."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from exporter.errors import UnwritableError

_FLUSH_BYTES = 1024 * 1024


class HashedFile:
    """A new file, or one that is added to, with the sha256 and the size of all that was written to it.

    It is open only while something is written, so that any number of them can be in the making.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        path.touch(exist_ok=False)

    def write(self, data: bytes) -> None:
        """Add `data`; small pieces are gathered."""
        self.size += len(data)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def _flush(self, sync: bool = False) -> None:
        data = b"".join(self._pending)
        self._pending, self._pending_bytes = [], 0
        with self.path.open("ab") as file:
            file.write(data)
            self._sha256.update(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def write_by(self, writer: Callable[[IO[bytes]], None]) -> None:
        """Let `writer` add to the file itself, which spares a copy of what it writes; it is read back for the hash."""
        self._flush()
        with self.path.open("a+b", buffering=0) as file:
            writer(file)
            file.seek(self.size)
            while chunk := file.read(_FLUSH_BYTES):
                self._sha256.update(chunk)
                self.size += len(chunk)

    def finish(self) -> dict[str, int | str]:
        """Put everything on disk; returns the manifest's entry for this file."""
        self._flush(sync=True)
        return {"bytes": self.size, "sha256": self._sha256.hexdigest()}


@contextmanager
def new_folder(
    out: Path, waiting: Callable[[], None], sound: Callable[[], bool] = lambda: True
) -> Iterator[Path | None]:
    """A hidden folder beside `out` to build in; becomes `out` at the end of the block, vanishes where it raises.

    Processes that make the same folder take turns: `waiting` is called when there is one ahead. Yields None where
    `out` is there when the turn comes and is `sound`; one that isn't gives way. Raises UnwritableError where the
    place can't be written or is out of space.
    """
    try:
        with _made_parents(out), _lock(out.with_name(f".{out.name}.lock"), waiting):
            if os.path.lexists(out):
                if sound():
                    yield None
                    return
                shutil.rmtree(out)
            partial = out.with_name(f".{out.name}.partial")
            if os.path.lexists(partial):
                shutil.rmtree(partial)  # left by a process that was killed: nobody else holds the lock
            partial.mkdir()
            try:
                yield partial
                _sync_folders(partial)
                partial.rename(out)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            _sync(out.parent)
    except OSError as error:
        raise _explained(error, out) from error


def _explained(error: OSError, out: Path) -> UnwritableError:
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UnwritableError(f"cannot write {out}: {reason}", "free some space, or choose another place")
    return UnwritableError(f"cannot write {out}: {reason}", "choose a place that you may write to")


@contextmanager
def _made_parents(out: Path) -> Iterator[None]:
    """Make the folders above `out`; those made here are taken away again where the block raises."""
    missing = []
    folder = out.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on a file that exists only while someone holds or awaits the lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(path, descriptor):  # else the holder before us took the file away: start over with the new one
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top):
        _sync(Path(folder))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_readable(top: Path) -> None:
    """Let everybody read `top` and all below it, whatever the umask: the sandbox's user is another one."""
    for folder, _, files in os.walk(top):
        Path(folder).chmod(0o755)
        for name in files:
            (Path(folder) / name).chmod(0o644)
