"""Parquet files with a byte that is wrong: refused in one line, whatever polars makes of them."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from exporter import ExportError
from exporter.held_back import panics_held_back
from exporter.parquet import ParquetTable


def test_any_byte_may_be_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "whole.parquet"
    frame = pl.DataFrame({"id": [1, 2, None, 2] * 9, "type": ["a", "b", None, "a"] * 9, "score": [0.5, None] * 18})
    frame.write_parquet(whole, statistics=False, compression="uncompressed")
    data, path = whole.read_bytes(), tmp_path / "n.parquet"
    refused, panics = 0, 0
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            list(ParquetTable(path, False, None).batches())
        except ExportError as error:
            assert str(error).startswith(f"{path}: ")
            assert "\n" not in str(error)
            refused += 1
            panics += isinstance(error.__cause__, pl.exceptions.PanicException)
    assert 0 < panics < refused
    assert capfd.readouterr() == ("", "")


def test_what_is_no_panic_is_told_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with panics_held_back(pl.exceptions.PanicException):
        os.write(2, b"native\n")
    with pytest.raises(ZeroDivisionError), panics_held_back(pl.exceptions.PanicException):
        os.write(2, b"behind\n")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), panics_held_back(ZeroDivisionError):
        os.write(2, b"gone\n")
        raise ZeroDivisionError
    assert capfd.readouterr().err == "native\nbehind\n"
