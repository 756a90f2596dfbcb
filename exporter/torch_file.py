"""Reads what `torch.save` writes, without torch and without running anything: a zip file with the pickled structure
(`<name>/data.pkl`) and the raw numbers of each storage (`<name>/data/<key>`).

Tensors become numpy arrays over the memory-mapped storage. Tensors that share a storage share its memory here too.
The format: https://docs.pytorch.org/docs/stable/notes/serialization.html, and torch/serialization.py.
"""

from __future__ import annotations

import io
import math
import mmap
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exporter.counted import counted
from exporter.errors import ExportError
from exporter.safe_pickle import RefusedGlobal, refusing

Array = NDArray[Any]

_STORAGES = {
    "LongStorage": "i8", "IntStorage": "i4", "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?", "DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2",
}  # fmt: skip
_STRUCTURE_BYTES = 16 * 1024 * 1024  # of data.pkl: it has no numbers in it, some hundred bytes for each tensor
_EXPANDED = 1 << 24  # elements that a tensor may have where it repeats those of its storage
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_CHUNK = 1 << 24


class _Storage:
    """Stands for a storage class of torch."""

    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code


def load_torch(file: IO[bytes], name: str) -> Any:
    """What was saved: an array, or plain containers of arrays. `file` is a real file, `name` stands for it in messages.

    Raises ExportError that names the file, and the global where it asks for one that isn't allowed.
    """
    with refusing(name):
        if not zipfile.is_zipfile(file):
            raise ExportError(
                f"{name}: not a zip file as torch.save writes since version 1.6",
                "load it with torch and save it again, or get the file again",
            )
        with zipfile.ZipFile(file) as archive:
            return _Structure(archive, file).load()


def load_tensor(file: IO[bytes], name: str) -> Array:
    """The one tensor that was saved. Raises ExportError as `load_torch` does, and where it is no tensor."""
    value = load_torch(file, name)
    if not isinstance(value, np.ndarray):
        raise ExportError(f"{name}: holds a {type(value).__name__}, not a tensor")
    return value


class _Structure:
    """One file in the reading."""

    def __init__(self, archive: zipfile.ZipFile, file: IO[bytes]) -> None:
        self._archive = archive
        self._file = file
        found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == "data.pkl"]
        if len(found) != 1:
            raise ValueError(f"{len(found)} entries data.pkl, not one")
        self._structure = found[0]
        self._top = found[0].filename.removesuffix("data.pkl")
        self._order = self._byte_order()
        self._storages: dict[str, Array] = {}

    def _byte_order(self) -> str:
        entry = f"{self._top}byteorder"
        big = entry in self._archive.namelist() and self._archive.read(entry).strip() == b"big"
        return ">" if big else "<"

    def load(self) -> Any:
        if self._structure.file_size > _STRUCTURE_BYTES:
            raise ValueError(f"data.pkl has {self._structure.file_size} bytes")
        return _Unpickler(self._archive.read(self._structure), self._storage).load()

    def _storage(self, code: str, key: str, count: int) -> Array:
        """All numbers of a storage. Raises ValueError where the file hasn't `count` of them."""
        if key not in self._storages:
            entry = self._archive.getinfo(f"{self._top}data/{key}")
            self._storages[key] = np.frombuffer(self._bytes(entry), np.uint8)
        dtype = np.dtype(self._order + code)
        raw = self._storages[key]
        if len(raw) < count * dtype.itemsize:
            raise ValueError(f"storage {key} has {counted(len(raw), 'byte')}, not {count * dtype.itemsize}")
        return raw[: count * dtype.itemsize].view(dtype)

    def _bytes(self, entry: zipfile.ZipInfo) -> memoryview:
        """An entry's content: mapped where it is stored as it is (torch's way), else unpacked."""
        if entry.compress_type != zipfile.ZIP_STORED:
            return memoryview(self._archive.read(entry))
        if not entry.file_size:
            return memoryview(b"")
        self._file.seek(entry.header_offset)
        magic, name_length, extra_length = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        start = entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if magic != b"PK\x03\x04":
            raise ValueError(f"no entry {entry.filename} where the directory says")
        mapped = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        content = mapped[start : start + entry.file_size]
        checksum = 0
        for position in range(0, len(content), _CHUNK):
            checksum = zlib.crc32(content[position : position + _CHUNK], checksum)
        if len(content) != entry.file_size or checksum != entry.CRC:
            raise ValueError(f"entry {entry.filename} is not what was written: wrong length or checksum")
        return content


# The structure is small, so it is read by pickle's own Python code: it holds no more of what a file asks for than the
# file has bytes, while the one in C makes room for as many memos as a number in the file says.
class _Unpickler(pickle._Unpickler):
    def __init__(self, structure: bytes, storage: Callable[[str, str, int], Array]) -> None:
        super().__init__(io.BytesIO(structure))
        self._storage_of = storage

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _Storage(_STORAGES[name])
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _REBUILD
        if (module, name) == ("collections", "OrderedDict"):
            return _NO_HOOKS
        raise RefusedGlobal(f"{module}.{name}")

    def persistent_load(self, saved: Any) -> Array:
        kind, storage, key, _, count = saved
        if kind != "storage" or not isinstance(storage, _Storage) or not isinstance(key, str) or _negative((count,)):
            raise ValueError(f"persistent id {kind!r}")
        return self._storage_of(storage.code, key, count)


class _Rebuild:
    """Stands for torch's function that makes a tensor of a storage."""

    __slots__ = ()

    def __call__(self, storage: Array, offset: int, size: Sequence[int], stride: Sequence[int], *_: object) -> Array:
        if not isinstance(storage, np.ndarray):
            raise TypeError("a tensor without its storage")
        if _negative((offset, *size, *stride)) or len(size) != len(stride):
            raise ValueError(f"a tensor of size {size!r}, stride {stride!r}, offset {offset!r}")
        elements = math.prod(size)
        last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        if elements and last >= len(storage):
            raise ValueError(f"a tensor reaches to element {last} of a storage of {len(storage)}")
        if elements > max(len(storage), _EXPANDED):  # a few bytes could stand for more than memory holds
            raise ValueError(f"a tensor of {counted(elements, 'element')} over a storage of {len(storage)}")
        if not elements:
            return np.empty(tuple(size), storage.dtype)
        steps = [step * storage.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), steps, writeable=False)


class _NoHooks:
    """Stands for the ordered dict of a tensor's backward hooks, which is always empty."""

    __slots__ = ()

    def __call__(self, *items: object) -> dict[str, object]:
        if any(items):
            raise ValueError("an ordered dict with items")
        return {}


_REBUILD, _NO_HOOKS = _Rebuild(), _NoHooks()


def _negative(numbers: Sequence[Any]) -> bool:
    """Whether any is no count: negative, or no integer."""
    return any(not isinstance(number, int) or isinstance(number, bool) or number < 0 for number in numbers)
