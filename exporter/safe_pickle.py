"""Reads pickled plain data without running anything that the file asks for.

Allowed are what pickle's own opcodes make (None, numbers, texts, bytes, lists, tuples, dicts, sets) and numpy's
scalars, which become plain Python values. Any other global is refused by name. What stands for an allowed global is an
object without attributes of its own, so that a file can't change it for those that are read later.

A hostile file can still ask for much memory, as any compressed file can.
"""

from __future__ import annotations

import gc
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from exporter.counted import counted
from exporter.errors import ExportError

_FLOATS = {2: "e", 4: "f", 8: "d"}
_NUMPY = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
# What a damaged or hostile stream makes the unpickler raise.
BAD_DATA = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError,
    MemoryError, RecursionError, ImportError, struct.error, zipfile.BadZipFile, zlib.error, NotImplementedError,
)  # fmt: skip


class RefusedGlobal(Exception):
    """A pickle names something that is not on the list. Its text is the dotted name."""


class _DType:
    """numpy's description of a scalar's bytes: kind, size and byte order."""

    __slots__ = ("_kind", "_order", "_size")

    def __init__(self, code: str) -> None:
        self._kind, self._size, self._order = code[:1], int(code[1:] or 1), "<"

    def __setstate__(self, state: Any) -> None:
        order, size = state[1], state[5]
        self._order = ">" if order == ">" else "<"
        if isinstance(size, int) and size > 0:
            self._size = size  # of texts and bytes, whose code is U0 or S0

    def value(self, raw: bytes) -> bool | int | float | str | bytes:
        """The plain value of a scalar's bytes."""
        if self._kind not in "US" and len(raw) != self._size:
            raise ValueError(f"a numpy scalar of {counted(len(raw), 'byte')}, not {self._size}")
        if self._kind == "b":
            return raw != b"\x00"
        if self._kind in "iu":
            return int.from_bytes(raw, "little" if self._order == "<" else "big", signed=self._kind == "i")
        if self._kind == "f" and self._size in _FLOATS:
            return float(struct.unpack(self._order + _FLOATS[self._size], raw)[0])
        if self._kind == "U":
            return raw.decode("utf-32-le" if self._order == "<" else "utf-32-be", "surrogatepass").rstrip("\0")
        if self._kind == "S":
            return raw.rstrip(b"\0")
        raise ValueError(f"numpy scalars of kind '{self._kind}' are not read")


class _MakeDType:
    __slots__ = ()

    def __call__(self, code: str, *_: object) -> _DType:
        return _DType(code)


class _MakeScalar:
    __slots__ = ()

    def __call__(self, dtype: _DType, raw: bytes | str = b"") -> bool | int | float | str | bytes:
        if not isinstance(dtype, _DType):
            raise TypeError("a numpy scalar without its dtype")
        return dtype.value(raw.encode("latin-1") if isinstance(raw, str) else raw)


class _MakeBytes:
    """`_codecs.encode` and `bytes`, as which protocols before 3 write bytes."""

    __slots__ = ()

    def __call__(self, text: str = "", encoding: str = "latin1") -> bytes:
        if encoding != "latin1":
            raise ValueError(f"encoding {encoding!r}")
        return text.encode("latin-1")


PLAIN: Mapping[tuple[str, str], Callable[..., Any]] = {
    **{(module, "dtype"): _MakeDType() for module in _NUMPY},
    **{(module, "scalar"): _MakeScalar() for module in _NUMPY},
    ("_codecs", "encode"): _MakeBytes(),
    ("__builtin__", "bytes"): _MakeBytes(),
}


class Unpickler(pickle.Unpickler):
    """Unpickles what needs no globals but `allowed`. Raises RefusedGlobal, and BAD_DATA for a damaged stream."""

    def __init__(self, file: IO[bytes], allowed: Mapping[tuple[str, str], Any] = PLAIN) -> None:
        super().__init__(file)
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a global of the file. Nothing is imported."""
        try:
            return self._allowed[module, name]
        except KeyError:
            raise RefusedGlobal(f"{module}.{name}") from None


def load_pickle(file: IO[bytes], name: str) -> Any:
    """The plain data in `file`, which `name` stands for in messages. Raises ExportError that names the file and, where
    it asks for one that isn't allowed, the global."""
    with refusing(name), _without_collector():
        return Unpickler(file).load()


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn what an unreadable, damaged or hostile file raises into ExportError."""
    try:
        yield
    except RefusedGlobal as refused:
        raise ExportError(
            f"{name}: refused, since it asks for {refused}",
            "only plain data is read from pickles: numbers, texts, lists, dicts, numpy scalars; get the file again",
        ) from None
    except OSError as error:
        raise ExportError(f"cannot read {name}: {error.strerror or error}") from error
    except BAD_DATA as error:
        raise ExportError(
            f"{name}: cannot be read ({type(error).__name__}: {error})", "the file is damaged; get it again"
        ) from error


@contextmanager
def _without_collector() -> Iterator[None]:
    """The garbage collector would look at all objects made so far again and again, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
