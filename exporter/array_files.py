"""Arrays in files. numpy's own way says of a full disk only how much was written, not why there was no more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def save_array(path: Path, values: NDArray[Any]) -> None:
    """Write a new .npy file. Raises OSError as the system has it."""
    with path.open("xb") as file:
        write_array(values, file)


def write_array(values: NDArray[Any], file: IO[bytes]) -> None:
    """Write an array as a .npy file has it. `file` may have no buffer of its own. Raises OSError as above."""
    np.save(_Whole(file), values)


class _Whole:
    """A file of which numpy only knows how to write to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        """Write all of `data`: a file without buffer writes what there is room for, and fails the next time."""
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        return len(data)


def new_mapped_array(path: Path, dtype: DTypeLike, size: int) -> NDArray[Any]:
    """A new .npy file of so many zeros, mapped to be filled. Raises OSError where there is no room for it, since what
    is written to a map without a place on the disk ends the process."""
    values: NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype, (size,))
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return values
