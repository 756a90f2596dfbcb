"""Input files of a source: gzip, byte order mark and encoding, read as lines or as blocks of whole lines."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from exporter.errors import ExportError
from exporter.source import Progress

BLOCK_BYTES = 8 * 1024 * 1024
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Counted(io.RawIOBase):
    """A file that hashes what is read from it and reports how far it is."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._file = path.open("rb", buffering=0)
        self._progress = progress
        self._stage = path.name
        self._total = path.stat().st_size
        self.sha256 = hashlib.sha256()
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer) or 0
        self.sha256.update(memoryview(buffer)[:count])
        self.bytes += count
        if self._progress is not None:
            self._progress(self._stage, self.bytes, self._total)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def hash_file(path: Path, progress: Progress | None = None) -> dict[str, int | str]:
    """Bytes and sha256 of a file. Raises ExportError where it can't be read."""
    try:
        with io.BufferedReader(_Counted(path, progress), BLOCK_BYTES) as file:
            while file.read(BLOCK_BYTES):
                pass
            counted = file.raw
            assert isinstance(counted, _Counted)
            return {"bytes": counted.bytes, "sha256": counted.sha256.hexdigest()}
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}") from error


class InputFile(AbstractContextManager["InputFile"]):
    """One input file, opened for a single pass. Raises ExportError where it can't be read."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        try:
            self._raw = _Counted(path, progress)
        except OSError as error:
            raise ExportError(f"cannot read {path}: {error.strerror}") from error
        self._stream = self._decompressed()

    def _decompressed(self) -> IO[bytes]:
        buffered = io.BufferedReader(self._raw, BLOCK_BYTES)
        try:
            packed = buffered.peek(2)[:2] == b"\x1f\x8b"
            stream = io.BufferedReader(gzip.GzipFile(fileobj=buffered), BLOCK_BYTES) if packed else buffered
            start = stream.peek(3)[:3]
        except (OSError, EOFError, zlib.error) as error:
            self._raw.close()
            raise self._unreadable(error) from error
        if start.startswith(_UTF16_MARKS):
            self._raw.close()
            raise ExportError(f"{self.path}: not UTF-8 but UTF-16", "save the file as UTF-8")
        if start == _UTF8_MARK:
            stream.read(3)
        return stream

    def _unreadable(self, error: Exception) -> ExportError:
        if isinstance(error, OSError) and error.errno is not None:
            return ExportError(f"cannot read {self.path}: {error.strerror}")
        return ExportError(
            f"{self.path}: damaged gzip data ({error})", "the file may have been cut short; get it again"
        )

    @property
    def stream(self) -> IO[bytes]:
        """The content, unpacked, for readers that take a file."""
        return self._stream

    def lines(self) -> Iterator[bytes]:
        """Lines as they are, with their ends."""
        try:
            yield from iter(self._stream.readline, b"")
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from error

    def header(self) -> bytes:
        """The first line, with its end; empty in an empty file."""
        return next(self.lines(), b"")

    def blocks(self) -> Iterator[bytes]:
        """Blocks of whole lines, the last one with a line feed added where it has none."""
        try:
            yield from whole_lines(self._stream)
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from error

    def describe(self) -> dict[str, Any]:
        """Name, bytes and sha256 of what has been read: the whole file after a whole pass."""
        return {"file": self.path.name, "bytes": self._raw.bytes, "sha256": self._raw.sha256.hexdigest()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._raw.close()


def whole_lines(stream: IO[bytes], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Read `stream` in blocks of about `size` bytes that end with a line feed."""
    pending: list[bytes] = []
    while chunk := stream.read(size):
        end = chunk.rfind(b"\n") + 1
        if not end:
            pending.append(chunk)
            continue
        yield b"".join((*pending, chunk[:end]))
        pending = [chunk[end:]] if end < len(chunk) else []
    if pending:
        yield b"".join((*pending, b"\n"))
