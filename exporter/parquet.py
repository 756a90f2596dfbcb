"""Parquet files as tables, a part of the rows at a time."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from exporter.errors import ExportError
from exporter.held_back import panics_held_back
from exporter.plain import as_cell
from exporter.rows import Batch
from exporter.source import Progress

_ROWS = 100_000  # read at a time


class ParquetTable:
    """Rows of a Parquet file; a row's line is its number, from 1. Raises ExportError where it can't be read.

    With `texts`, cells are texts or None as an edge's attributes are; else values as JSON has them.
    """

    def __init__(self, path: Path, texts: bool, progress: Progress | None) -> None:
        self._path = path
        self._convert = _text if texts else _json_value
        self._progress = progress
        with self._reading():
            self._scan = pl.scan_parquet(path, glob=False)
            self.names = list(self._scan.collect_schema())
            self._count = int(self._scan.select(pl.len()).collect().item())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raises ExportError where polars can't read the file; of some damage it panics, which is no Exception."""
        try:
            with panics_held_back(pl.exceptions.PanicException):
                yield
        except pl.exceptions.PanicException as error:
            raise self._unreadable("its data is damaged") from error
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "damaged")
            raise self._unreadable(reason) from error

    def _unreadable(self, reason: str) -> ExportError:
        return ExportError(f"{self._path}: not a readable Parquet file ({reason})", "get or write the file again")

    def batches(self) -> Iterator[Batch]:
        size = self._path.stat().st_size
        for start in range(0, self._count, _ROWS):
            with self._reading():
                frame = self._scan.slice(start, _ROWS).collect()
            columns = [self._column(frame.get_column(name)) for name in self.names]
            yield Batch(range(start + 1, start + 1 + len(frame)), columns)
            if self._progress is not None:
                self._progress(self._path.name, size * min(start + _ROWS, self._count) // self._count, size)

    def _column(self, series: pl.Series) -> list[Any]:
        dtype = series.dtype
        if dtype == pl.String or (self._convert is _json_value and (dtype.is_numeric() or dtype == pl.Boolean)):
            plain: Callable[[Any], Any] | None = _json_value if dtype.is_decimal() else None
        else:
            plain = self._convert
        values = series.to_list()
        if plain is None:
            return values
        try:
            return [plain(value) for value in values]
        except ValueError as error:
            raise ExportError(
                f"{self._path}: column '{series.name}': {error}", "leave it out, or write texts"
            ) from error


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"values of type {type(value).__name__} have no form in JSON")


def _text(value: Any) -> str | None:
    return as_cell(_json_value(value))
