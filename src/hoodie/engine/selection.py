"""Find the engine for the caller's data.

Only this module loads a package of a higher layer: it imports `hoodie.spark` by name, and only if the caller passes a
Spark session or DataFrame or uses Spark already. A program without Spark never imports it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine.api import Dataset, Engine
from hoodie.engine.local import ArrowDataset, LocalEngine, PartedDataset
from hoodie.engine.untyped import UntypedDataset, untyped_dataset
from hoodie.errors import SchemaMismatchError, UnsupportedError

_SCALARS = (str, bytes, int, float, Decimal, date)


def is_spark(value: object) -> bool:
    """Return whether the value is an object of PySpark (classic or Connect)."""
    return type(value).__module__.partition(".")[0] == "pyspark"


def spark_room() -> Any:
    """Import and return the `hoodie.spark` package."""
    return importlib.import_module("hoodie.spark")


def engine_and_dataset(data: object) -> tuple[Engine, Dataset]:
    """Return the engine that processes the data without moving it, and the data as a dataset of that engine.

    Spark processes a Spark DataFrame. This process processes Arrow tables, batches, readers, datasets and scanners,
    pandas DataFrames, lists of dicts, dicts of columns, Polars frames, and all objects with `__arrow_c_stream__`.

    Raises: UnsupportedError for data of any other type.
    """
    if is_spark(data):
        room = spark_room()
        return room.SparkEngine(room.session_of(data)), room.SparkDataset(data)
    if isinstance(data, PartedDataset):
        return LocalEngine(), data
    untyped = untyped_dataset(data)
    return LocalEngine(), ArrowDataset(arrow_source(data)) if untyped is None else untyped


def with_types(data: Dataset) -> Dataset:
    """Return the data; columns without declared types get inferred ones."""
    return data.inferred() if isinstance(data, UntypedDataset) else data


def arrow_source(data: object) -> pa.RecordBatchReader | pa.Table:
    """Return the caller's in-process data as an Arrow table or reader.

    Raises: UnsupportedError for data of any other type.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    untyped = untyped_dataset(data)
    if untyped is not None:
        return untyped.inferred().source
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "to_reader"):  # a pyarrow Scanner
        return _reader(data.to_reader(), data)
    if hasattr(data, "scanner"):  # a pyarrow Dataset
        return _reader(data.scanner().to_reader(), data)
    collect = getattr(data, "collect", None)  # of a Polars LazyFrame
    if callable(collect):
        frame = collect()
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(frame)
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
    """Return the caller's in-process data as a table. Memory: all rows. Raises: as `arrow_source`."""
    source = arrow_source(data)
    return source if isinstance(source, pa.Table) else source.read_all()


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of a pyarrow Schema, a Spark StructType or DataFrame, or in-process data.

    Raises: as `arrow_source`.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if is_spark(schema):
        return spark_room().arrow_schema_of(getattr(schema, "schema", schema))
    return arrow_source(schema).schema


def key_array(keys: object) -> pa.Array | None:
    """Return plain key values as an Arrow array, in the given order; None for data with columns.

    Accepts one value, a list, tuple, set or other iterable of values, an Arrow array, a NumPy array, a Series.

    Raises: SchemaMismatchError for values of several types.
    """
    if isinstance(keys, pa.Array):
        return keys
    if isinstance(keys, pa.ChunkedArray):
        return keys.combine_chunks()
    if type(keys).__name__ == "Series" and hasattr(keys, "__arrow_c_stream__"):
        return pa.chunked_array(keys).combine_chunks()
    if isinstance(keys, np.ndarray | np.generic):
        return _array_of(np.atleast_1d(keys))
    if type(keys).__name__ in ("Series", "Index"):
        return _array_of(keys)
    if isinstance(keys, _SCALARS):
        return _array_of([keys])
    if isinstance(keys, pa.Scalar):
        return _array_of([keys.as_py()])
    has_columns = isinstance(keys, Mapping) or hasattr(keys, "__arrow_c_stream__") or hasattr(keys, "columns")
    if has_columns or not isinstance(keys, Iterable):
        return None
    listed = list(keys)
    return None if any(isinstance(key, Mapping) for key in listed) else _array_of(listed)


def _array_of(values: Any) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatchError(f"keys: expected values of one type; cast them ({error})") from error


def active_session() -> object | None:
    """Return the active Spark session of this program; None if there is none or the program does not use Spark."""
    if "pyspark" not in sys.modules:
        return None
    session: object | None = spark_room().active_session()
    return session
