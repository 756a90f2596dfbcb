"""Names and types of all nodes, memory-mapped: what listings of many nodes need without reading their records."""

from __future__ import annotations

import mmap
from array import array
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from exporter.array_files import save_array
from exporter.errors import ExportError

_NAMES, _ENDS, _TYPES = "names.bin", "name_ends.npy", "types.npy"


class Labels:
    """Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        try:
            self._ends: NDArray[np.int64] = mapped(folder / _ENDS)
            self.types: NDArray[np.integer[Any]] = mapped(folder / _TYPES)
            with (folder / _NAMES).open("rb") as file:
                self._names = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError, EOFError) as error:
            raise ExportError(f"damaged index {folder}: {error}", "remove that folder; it is made again") from error

    def name(self, node: int) -> str:
        """A node's name. Expects a node that the graph has."""
        start = int(self._ends[node - 1]) if node else 0
        return self._names[start : int(self._ends[node])].decode()


class LabelWriter:
    """Writes the labels of all nodes, in the order of their ids. Memory: 12 bytes a node."""

    def __init__(self, folder: Path, types: list[str]) -> None:
        self._folder = folder
        self._type_ids = {name: number for number, name in enumerate(types)}
        self._types = array("i")
        self._ends = array("q")
        self._file = (folder / _NAMES).open("xb")
        self._size = 0

    def add(self, name: str, node_type: str) -> None:
        """The next node's."""
        self._size += self._file.write(name.encode())
        self._ends.append(self._size)
        self._types.append(self._type_ids[node_type])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._file.write(b"\0")  # a file of no bytes can't be mapped
            save_array(self._folder / _ENDS, np.frombuffer(self._ends, np.int64))
            smallest = np.min_scalar_type(len(self._type_ids))
            save_array(self._folder / _TYPES, np.frombuffer(self._types, np.int32).astype(smallest))
        self._file.close()


def mapped(path: Path) -> NDArray[Any]:
    """An array from a file, memory-mapped. Raises OSError, ValueError, EOFError."""
    array_: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array_.view(np.ndarray)  # indexing the subclass for mapped files costs microseconds
