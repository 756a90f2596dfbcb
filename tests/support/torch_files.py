"""Writes what torch.save writes for one tensor, without torch: for data of any size in STaRK's format."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

STORAGES = {"int64": "LongStorage", "int32": "IntStorage", "float32": "FloatStorage", "float64": "DoubleStorage"}


def structure(
    storage: str,
    count: int,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    offset: int = 0,
    key: str = "0",
    rebuild: str = "torch._utils\n_rebuild_tensor_v2",
) -> bytes:
    """A data.pkl for one tensor, protocol 2, opcode by opcode."""
    where = b"(" + _text("storage") + f"ctorch\n{storage}\n".encode() + _text(key) + _text("cpu") + _number(count)
    shape = b"".join(b"(" + b"".join(map(_number, numbers)) + b"t" for numbers in (size, stride))
    hooks = b"ccollections\nOrderedDict\n)R"
    return (
        b"\x80\x02"
        + f"c{rebuild}\n".encode()
        + b"("
        + where
        + b"tQ"
        + _number(offset)
        + shape
        + b"\x89"
        + hooks
        + b"tR."
    )


def write_tensor(file: IO[bytes], array: NDArray[Any], data_pkl: bytes | None = None) -> None:
    """`array` as torch.save writes it; `data_pkl` instead of the structure that belongs to it."""
    array = np.ascontiguousarray(array)
    strides = [step // array.itemsize for step in array.strides]
    data_pkl = data_pkl or structure(STORAGES[array.dtype.name], array.size, array.shape, strides)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data_pkl)
        archive.writestr("archive/byteorder", "little")
        with archive.open("archive/data/0", "w", force_zip64=array.nbytes > 1 << 31) as storage:
            storage.write(array.data if array.size else b"")
        archive.writestr("archive/version", "3\n")


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def _number(number: int) -> bytes:
    return b"\x8a\x08" + number.to_bytes(8, "little", signed=True)
