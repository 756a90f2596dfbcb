"""Pickles of plain data are read; a pickle that asks for anything else is refused and runs nothing."""

from __future__ import annotations

import collections
import datetime
import decimal
import io
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import ExportError
from exporter.safe_pickle import PLAIN, load_pickle

PLAIN_DATA = {
    0: {"name": "a\tb\n", "list": [1, -(2**70), 1.5, None, True], "tuple": (1, ("x",)), "nested": {"k": {"deep": []}}},
    1: {"bytes": b"\x00\xff", "set": {1, 2}, "half a pair": "\ud83d", "long": "x" * 70_000},
}
SCALARS = [
    np.int64(-5), np.int32(7), np.int8(-1), np.uint16(65535), np.float64(0.1), np.float32(0.5), np.float16(2),
    np.bool_(True), np.bool_(False), np.str_("grün\u2013"), np.str_(""), np.bytes_(b"ab"), np.float64("nan"),
    np.int64(1).astype(">i8"), np.array("ab", dtype=">U2")[()],
]  # fmt: skip


def load(data: bytes) -> Any:
    return load_pickle(io.BytesIO(data), "node_info.pkl")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_arrives_in_every_protocol(protocol: int) -> None:
    data = PLAIN_DATA if protocol >= 4 else {0: PLAIN_DATA[0], 1: {"bytes": b"\x00\xff"}}  # sets are a global before
    found = load(pickle.dumps(data, protocol))
    assert found == data
    assert list(found[0]) == list(data[0])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_numpy_scalars_become_plain_values(protocol: int, module: str) -> None:
    data = pickle.dumps(SCALARS, protocol)
    if protocol < 4:  # a global is written as text there, whatever its length
        data = data.replace(b"numpy._core.multiarray", module.encode())
    found = load(data)
    for value, scalar in zip(found, SCALARS, strict=True):
        plain = scalar.item()
        assert type(value) is type(plain)
        assert repr(value) == repr(plain)


@pytest.mark.parametrize(
    "value",
    [
        decimal.Decimal(1), datetime.date(2020, 1, 1), collections.OrderedDict(a=1), collections.Counter("a"),
        np.arange(3), np.datetime64("2020"), np.complex128(1), range(3), Path("x"), os.system, print, ValueError("x"),
        complex(1, 2), {frozenset({1}): object()},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_anything_else_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ExportError, match=r"^node_info\.pkl: (refused, since it asks for \w|cannot be read)") as caught:
        load(pickle.dumps(value))
    if "refused" in str(caught.value):
        assert "only plain data" in caught.value.hint


class Runs:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self.reduced


def attacks(marker: Path) -> dict[str, bytes]:
    """Pickles that would write `marker` if anything of them ran."""
    command = f"echo x > {marker}"
    source = f"open({str(marker)!r}, 'w')"
    attack = {
        "os.system": pickle.dumps(Runs(os.system, command)),
        "builtins.eval": pickle.dumps(Runs(eval, source)),
        "builtins.exec, in a dict": pickle.dumps({0: {"name": Runs(exec, source)}}),
        "protocol 0": b"cposix\nsystem\n(S'" + command.encode() + b"'\ntR.",
        "INST": b"(S'" + command.encode() + b"'\niposix\nsystem\n.",
        "OBJ": b"(cposix\nsystem\nS'" + command.encode() + b"'\no.",
        "STACK_GLOBAL": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c"
        + bytes([len(command)])
        + command.encode()
        + b"\x85R.",
        "a dotted name below an allowed one": b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.",
        "an allowed module": b"\x80\x04\x8c\x05numpy\x8c\x04load\x93\x8c\x01x\x85R.",
        "getattr": pickle.dumps(Runs(getattr, "x", "upper")),
        "an extension code": b"\x80\x02\x82\x01.",
        "a persistent id": b"\x80\x02(lq\x00Q.",
    }
    return attack


@pytest.mark.parametrize("name", attacks(Path("x")))
def test_a_malicious_pickle_runs_nothing(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(ExportError, match=r"^node_info\.pkl: "):
        load(attacks(marker)[name])
    assert not marker.exists()


def test_the_refused_global_is_named() -> None:
    with pytest.raises(ExportError, match=r"node_info\.pkl: refused, since it asks for posix\.system$"):
        load(pickle.dumps(Runs(os.system, "true")))


def test_a_file_cannot_change_what_stands_for_an_allowed_global() -> None:
    for (module, name), stand_in in PLAIN.items():
        asked = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode()
        for state in ({"x": 1}, (None, {"x": 1}), (None, {"__call__": 1}), (None, {"__class__": 1})):
            body = pickle.dumps(state, 4)[2:-1]
            with pytest.raises(ExportError, match="cannot be read"):
                load(asked + b"\x93" + body + b"b.")
        assert not hasattr(stand_in, "x")
    assert load(pickle.dumps(np.int64(3))) == 3


@pytest.mark.parametrize("cut", [0, 1, 2, 10, 100, -1])
def test_a_file_that_was_cut(cut: int) -> None:
    with pytest.raises(ExportError, match="cannot be read") as caught:
        load(pickle.dumps(PLAIN_DATA)[:cut])
    assert "get it again" in caught.value.hint


@pytest.mark.parametrize("length", [0, 7, 9])
def test_a_scalar_of_the_wrong_length(length: int) -> None:
    good = pickle.dumps(np.int64(1), 3)
    value = b"C\x08" + struct.pack("<q", 1)
    assert good.count(value) == 1
    with pytest.raises(ExportError, match=f"a numpy scalar of {length} bytes, not 8"):
        load(good.replace(value, b"C" + bytes([length]) + bytes(length)))
