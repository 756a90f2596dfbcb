"""The files of processed.zip, read from the archive without unpacking it, or from the folder that it unpacks to."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from exporter.errors import ExportError
from exporter.inputs import hash_file
from exporter.safe_pickle import load_pickle, refusing
from exporter.source import Progress
from exporter.stark.dataset import Dataset
from exporter.stark.difference import sample
from exporter.stark.places import ARCHIVE, FOLDER, NODES, folder_of
from exporter.torch_file import Array, load_tensor

_BUFFER = 1 << 20
GET_IT = "get it again from the dataset repository snap-stanford/stark"


class ProcessedFiles:
    """Raises ExportError that names the file where one can't be read or isn't there."""

    def __init__(self, dataset: Dataset, processed: Path, scratch: Path, progress: Progress | None) -> None:
        self.path = processed
        self._scratch = scratch
        self._progress = progress
        self._archive: zipfile.ZipFile | None = None
        if processed.is_file():
            with refusing(str(processed)):
                self._archive = zipfile.ZipFile(processed)
        self.folder = self._found(dataset)
        self._prefix = self.folder if self._archive is None else _join(FOLDER, self.folder)
        self._read: list[str] = []

    def _found(self, dataset: Dataset) -> str:
        """The first of the dataset's folders that has nodes."""
        if self._archive is None:
            found = folder_of(dataset, self.path)
        else:
            names = set(self._archive.namelist())
            found = next((each for each in dataset.folders if _join(_join(FOLDER, each), NODES) in names), None)
        if found is None:
            where = " or ".join(_join(_join(FOLDER, folder), NODES) for folder in dataset.folders)
            raise ExportError(f"{self.path}: no {where} in it", GET_IT)
        return found

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        if self._archive is None:
            return (self.path / self._prefix / name).is_file()
        return _join(self._prefix, name) in self._archive.namelist()

    def pickled(self, name: str) -> Any:
        """The plain data of a pickle."""
        with self._open(name) as file:
            return load_pickle(file, self._called(name))

    def tensor(self, name: str) -> Array:
        """An array over a mapped file: of the archive, over an unpacked copy that has no name."""
        with self._open(name) as file:
            if self._archive is None:
                return load_tensor(file, self._called(name))
            with tempfile.TemporaryFile(dir=self._scratch) as copy:
                for chunk in self._chunks(file, name):
                    copy.write(chunk)  # what fails here is no fault of the archive
                copy.flush()
                return load_tensor(copy, self._called(name))

    def _chunks(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        with refusing(self._called(name)):
            chunk = file.read(_BUFFER)
        while chunk:
            yield chunk
            with refusing(self._called(name)):
                chunk = file.read(_BUFFER)

    def refused(self, what: str) -> ExportError:
        """The error where what was read is not what it should be."""
        return ExportError(f"{self.path}: {what}", GET_IT)

    def _called(self, name: str) -> str:
        """The file's name in messages."""
        return f"{self.path}: {_join(self._prefix, name)}"

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if not self.has(name):
            raise self.refused(f"no {_join(self._prefix, name)} in it")
        self._read.append(name)
        with refusing(self._called(name)):
            if self._archive is None:
                opened: IO[bytes] = (self.path / self._prefix / name).open("rb")
                size = (self.path / self._prefix / name).stat().st_size
            else:
                entry = _join(self._prefix, name)
                opened, size = self._archive.open(entry), self._archive.getinfo(entry).file_size
        with opened:
            if self._progress is None or self._archive is None:
                yield opened
            else:
                yield io.BufferedReader(_Reported(opened, name, size, self._progress), _BUFFER)

    def describe(self) -> list[dict[str, Any]]:
        """Name, bytes, sha256 and sample of the archive, or of each file that was read."""
        if self._archive is not None:
            return [self._described(ARCHIVE, self.path)]
        paths = [_join(self._prefix, name) for name in dict.fromkeys(self._read)]
        return [self._described(f"{FOLDER}/{path}", self.path / path) for path in paths]

    def _described(self, name: str, path: Path) -> dict[str, Any]:
        with refusing(str(path)):
            return {"file": name, **hash_file(path, self._progress), "sample": sample(path)}


class _Reported(io.RawIOBase):
    """A file that reports how far it has been read."""

    def __init__(self, file: IO[bytes], stage: str, size: int, progress: Progress) -> None:
        self._file, self._stage, self._size, self._report = file, stage, size, progress
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._done += len(data)
        self._report(self._stage, self._done, self._size)
        return len(data)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and not folder.endswith("/") else f"{folder}{name}"
