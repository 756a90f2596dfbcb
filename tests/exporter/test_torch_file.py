"""Tensor files of real torch (tests/data/torch, saved by torch 1.13) and of our own writer: good, damaged, hostile."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import ExportError
from exporter.torch_file import load_tensor, load_torch
from tests.support.torch_files import structure, write_tensor

SAVED = Path(__file__).resolve().parents[1] / "data" / "torch"
TWELVE = np.arange(12)


def load(path: Path) -> Any:
    with path.open("rb") as file:
        return load_torch(file, path.name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transposed", TWELVE.reshape(3, 4).T),
        ("offset", TWELVE[5:9]),
        ("steps", TWELVE.reshape(3, 4)[:, 1:4:2]),
        ("float", np.array([[1.5, np.nan], [-2, 3]], np.float32)),
        ("empty", np.zeros((2, 0), np.int64)),
        ("scalar", np.array(7)),
        ("grad", np.zeros(3, np.float32)),
        ("expanded", np.array([5, 5, 5, 5])),
    ],
)
def test_tensors_that_torch_saved(name: str, expected: Any) -> None:
    found = load(SAVED / f"{name}.pt")
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    assert not found.flags.writeable or not found.size


def test_containers_and_shared_storages() -> None:
    found = load(SAVED / "shared.pt")
    np.testing.assert_array_equal(found["all"], TWELVE)
    np.testing.assert_array_equal(found["tail"], TWELVE[8:])
    np.testing.assert_array_equal(found["as"][0], TWELVE.reshape(2, 6))
    assert found["as"][1].dtype == np.int32
    assert np.shares_memory(found["all"], found["tail"])
    with (SAVED / "shared.pt").open("rb") as file, pytest.raises(ExportError, match=r"shared\.pt: holds a dict, not a"):
        load_tensor(file, "shared.pt")


def test_what_is_no_tensor_is_refused_by_name() -> None:
    with pytest.raises(ExportError, match=r"module\.pt: refused, since it asks for torch\.nn\.modules\.linear\.Linear"):
        load(SAVED / "module.pt")


def test_the_form_before_version_1_6_is_told_apart() -> None:
    with pytest.raises(ExportError, match=r"since version 1\.6") as caught:
        load(SAVED / "legacy.pt")
    assert "save it again" in caught.value.hint


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3), (2, 0)])
def test_what_we_write_is_what_we_read(tmp_path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    assert_same(tmp_path, array)


def assert_same(folder: Path, array: Any) -> None:
    with (folder / "x.pt").open("wb") as file:
        write_tensor(file, array)
    found = load(folder / "x.pt")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_our_writer_writes_as_torch_does() -> None:
    """The structure is the one that torch wrote, but for opcodes that remember what was read."""
    with zipfile.ZipFile(SAVED / "offset.pt") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("data.pkl")]
        theirs = archive.read(name)
    ours = structure("LongStorage", 12, (4,), (1,), offset=5)

    def globals_and_texts(data: bytes) -> list[Any]:
        import pickletools

        return [arg for opcode, arg, _ in pickletools.genops(data) if opcode.name in ("GLOBAL", "BINUNICODE")]

    assert globals_and_texts(theirs) == globals_and_texts(ours)


def test_packed_entries_and_the_other_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/er/data.pkl", structure("IntStorage", 3, (3,), (1,)))
        archive.writestr("deep/er/byteorder", "big")
        archive.writestr("deep/er/data/0", np.array([1, -2, 3], ">i4").tobytes())
    assert load(path).tolist() == [1, -2, 3]


class TestHostile:
    """Every file here is refused with its name, and runs nothing."""

    def refused(self, folder: Path, data_pkl: bytes, values: Any = TWELVE) -> str:
        path = folder / "hostile.pt"
        with path.open("wb") as file:
            write_tensor(file, values, data_pkl)
        with pytest.raises(ExportError, match=r"^hostile\.pt: ") as caught:
            load(path)
        return str(caught.value)

    def test_a_structure_that_calls_something(self, tmp_path: Path) -> None:
        marker = tmp_path / "ran"

        class Runs:
            def __reduce__(self) -> Any:
                return os.system, (f"echo x > {marker}",)

        assert "posix.system" in self.refused(tmp_path, pickle.dumps(Runs(), 2))
        assert "builtins.eval" in self.refused(
            tmp_path, structure("LongStorage", 12, (12,), (1,), rebuild="builtins\neval")
        )
        assert "torch.load" in self.refused(tmp_path, structure("LongStorage", 12, (12,), (1,), rebuild="torch\nload"))
        assert not marker.exists()

    @pytest.mark.parametrize(
        ("count", "size", "stride", "offset"),
        [
            (12, (13,), (1,), 0),
            (12, (12,), (1,), 1),
            (12, (3, 4), (5, 1), 0),
            (13, (12,), (1,), 0),
            (-1, (1,), (1,), 0),
            (12, (-2,), (1,), 0),
            (12, (2,), (-1,), 5),
            (12, (2,), (1,), -5),
            (12, (2, 2), (1,), 0),
            (12, (1 << 40,), (0,), 0),
            (12, (1 << 40, 1 << 40), (0, 0), 0),
            (1 << 62, (1,), (1,), 0),
            (12, (1,) * 100, (1,) * 100, 0),
        ],
    )
    def test_a_tensor_that_reaches_beyond_its_storage(
        self, tmp_path: Path, count: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int
    ) -> None:
        self.refused(tmp_path, structure("LongStorage", count, size, stride, offset=offset))

    def test_storages_that_are_not_there(self, tmp_path: Path) -> None:
        self.refused(tmp_path, structure("LongStorage", 12, (12,), (1,), key="1"))
        self.refused(tmp_path, structure("LongStorage", 12, (12,), (1,), key="../../../../etc/passwd"))
        assert "torch.NoStorage" in self.refused(tmp_path, structure("NoStorage", 12, (12,), (1,)))

    def test_a_memo_of_a_size_that_nobody_has(self, tmp_path: Path) -> None:
        path = tmp_path / "x.pt"
        with path.open("wb") as file:
            write_tensor(file, TWELVE, b"\x80\x02Nr\xff\xff\xff\x7f.")  # memo entry 2**31 - 1
        assert load(path) is None

    def test_a_structure_of_gigabytes(self, tmp_path: Path) -> None:
        path = tmp_path / "x.pt"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x/data.pkl", b"N" * (17 << 20) + b".")
        with pytest.raises(ExportError, match=r"data\.pkl has \d+ bytes"):
            load(path)


@pytest.mark.parametrize("position", [60, 200, -100, -40, -1])
def test_damaged_bytes(tmp_path: Path, position: int) -> None:
    whole = io.BytesIO()
    write_tensor(whole, np.arange(100))
    data = bytearray(whole.getvalue())
    for damaged in (bytes(data[:position]), bytes(data[:position]) + b"\xff" * 4 + bytes(data[position:][4:])):
        path = tmp_path / "x.pt"
        path.write_bytes(damaged)
        try:
            found = load(path)
        except ExportError as error:
            assert str(error).startswith("x.pt: ")
        else:
            np.testing.assert_array_equal(found, np.arange(100))  # what was hit doesn't matter


def test_numbers_that_were_changed_are_noticed(tmp_path: Path) -> None:
    whole = io.BytesIO()
    write_tensor(whole, np.arange(100))
    data = whole.getvalue()
    path = tmp_path / "x.pt"
    path.write_bytes(data.replace(np.int64(50).tobytes(), np.int64(51).tobytes()))
    with pytest.raises(ExportError, match="checksum"):
        load(path)
