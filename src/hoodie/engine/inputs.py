"""What callers hand in, without Spark: rows become a dataset or a table, keys an array, schemas an Arrow schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine.api import Dataset
from hoodie.engine.local import ArrowDataset, PartedDataset, errors_of_input
from hoodie.engine.untyped import UntypedDataset, arrow_column, arrow_stream, untyped_dataset
from hoodie.errors import SchemaMismatchError, UnsupportedError

_SCALARS = (str, bytes, int, float, Decimal, date)
_SERIES = ("Series", "Index")


@errors_of_input()
def dataset_of(data: object) -> Dataset:
    """Return the caller's data as a dataset of this process.

    Accepts Arrow tables, batches, readers, datasets and scanners, pandas DataFrames, lists of dicts, dicts of columns,
    Polars frames, and all objects with `__arrow_c_stream__`. Raises: UnsupportedError for data of any other type.
    """
    # The class is asked first, as a LazyFrame of Polars warns when it resolves its `schema`.
    if hasattr(type(data), "parts") and isinstance(data, PartedDataset):
        return data
    untyped = untyped_dataset(data)
    return ArrowDataset(_arrow_source(data)) if untyped is None else untyped


def with_types(data: Dataset) -> Dataset:
    """Return the data; columns without declared types get inferred ones."""
    return data.inferred() if isinstance(data, UntypedDataset) else data


def _arrow_source(data: object) -> pa.RecordBatchReader | pa.Table:
    """Return the caller's typed data as an Arrow table or reader. Raises: as `dataset_of`."""
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return arrow_stream(data)
    if hasattr(data, "to_reader"):  # a pyarrow Scanner
        return _reader(data.to_reader(), data)
    if hasattr(data, "scanner"):  # a pyarrow Dataset
        return _reader(data.scanner().to_reader(), data)
    collect = getattr(data, "collect", None)  # of a Polars LazyFrame
    if callable(collect):
        frame = collect()
        if hasattr(frame, "__arrow_c_stream__"):
            return arrow_stream(frame)
    raise _unsupported(data)


def _reader(found: object, data: object) -> pa.RecordBatchReader:
    if isinstance(found, pa.RecordBatchReader):
        return found
    raise _unsupported(data)


def _unsupported(data: object) -> UnsupportedError:
    return UnsupportedError(
        f"data of type {type(data).__module__}.{type(data).__qualname__}: expected a Spark DataFrame, a pyarrow Table, "
        "RecordBatch, RecordBatchReader, Dataset or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list "
        "of dicts, a dict of lists, or an object with __arrow_c_stream__"
    )


def table_in_memory(data: object) -> pa.Table:
    """Return the caller's in-process data as a table of plain types. Memory: all rows.

    Raises: UnsupportedError for data of any other type; SchemaMismatchError as `ArrowDataset.parts`, and for a column
    with values of several types.
    """
    return _typed(data).table()


@errors_of_input()
def _typed(data: object) -> ArrowDataset:
    untyped = untyped_dataset(data)
    return ArrowDataset(_arrow_source(data)) if untyped is None else untyped.inferred()


def schema_of(data: object) -> pa.Schema:
    """Return the Arrow schema of in-process data, or a pyarrow Schema as it is. Raises: as `table_in_memory`."""
    return data if isinstance(data, pa.Schema) else _typed(data).schema


@errors_of_input()
def key_array(keys: object) -> pa.Array | None:
    """Return plain key values as an Arrow array of a plain type, in the given order; None for data with columns.

    Accepts one value, a list, tuple, set or other iterable of values, an Arrow array, a NumPy array, a Series. Tuples
    in an iterable become structs.

    Raises: SchemaMismatchError for values of several types, and for those that Arrow would cut; InputFailedError.
    """
    if isinstance(keys, pa.Array | pa.ChunkedArray | np.ndarray | np.generic) or type(keys).__name__ in _SERIES:
        values = np.atleast_1d(keys) if isinstance(keys, np.ndarray | np.generic) else keys
        return arrow_column("keys", values).combine_chunks()
    if isinstance(keys, pa.Scalar):
        return arrow_column("keys", pa.array([keys])).combine_chunks()
    if isinstance(keys, _SCALARS):
        return arrow_column("keys", [keys]).combine_chunks()
    # Asked of its class, as a LazyFrame of Polars warns when it resolves its columns.
    has_columns = isinstance(keys, Mapping) or hasattr(keys, "__arrow_c_stream__") or hasattr(type(keys), "columns")
    if has_columns or not isinstance(keys, Iterable):
        return None
    listed = list(keys)
    if listed and all(isinstance(key, tuple) for key in listed):
        return _composite(listed)
    if any(isinstance(key, list | tuple) for key in listed):
        raise SchemaMismatchError(
            "keys: expected values of one type, or for a key of several columns tuples of their values such as "
            f"[('a', 1)], found {' and '.join(sorted({type(key).__name__ for key in listed}))}"
        )
    return None if any(isinstance(key, Mapping) for key in listed) else arrow_column("keys", listed).combine_chunks()


def _composite(keys: list[tuple[Any, ...]]) -> pa.StructArray:
    """Return tuples as structs; the fields of named tuples have their names, those of others none."""
    names = {getattr(key, "_fields", ("",) * len(key)) for key in keys}
    if len(names) != 1 or not keys[0]:
        raise SchemaMismatchError(f"keys: expected tuples with a value for each key column, found {names}")
    columns = [arrow_column("keys", list(values)).combine_chunks() for values in zip(*keys, strict=True)]
    return pa.StructArray.from_arrays(columns, names.pop())
