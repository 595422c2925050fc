"""What callers hand in, without Spark: rows become a dataset or a table, keys an array, schemas an Arrow schema.

Lists of dicts, dicts of lists and pandas columns of objects declare no types. A write gives such columns the types of
the table. Only where the table's schema is not known, types are inferred.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from hoodie.config.option import checked_text
from hoodie.engine.api import Dataset
from hoodie.engine.local import ArrowDataset, PartedDataset, errors_of_input
from hoodie.errors import HoodieWarning, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.fit import fit_array, infer
from hoodie.format.schema.fit_nested import fit_values, given_type

_NUMPY_DEFAULTS: Final = frozenset("lqdb?OUSM")
"""Characters of the NumPy types that Python values get by default: int64, float64, bool, object, texts, times."""
_NEVER_MISSING: Final = frozenset({str, bytes, bool, int, list, tuple, dict, np.ndarray, type(None)})
"""Types of objects that pandas never takes for a missing value, apart from None."""

_ARROW: Final = (pa.Array, pa.ChunkedArray)
_Column: TypeAlias = Sequence[Any] | pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class UntypedDataset:
    """Columns by name, in order: Python objects, or Arrow data. `own_types`: positions of columns with a type.

    `of_pandas`: positions of columns of pandas, in which NaN is null. A name may occur twice; the write refuses it.
    """

    columns: tuple[tuple[str, _Column], ...]
    own_types: frozenset[int] = frozenset()
    of_pandas: frozenset[int] = frozenset()

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches, if no table's schema is known."""
        return self.inferred().schema

    def typed(self, table_schema: pa.Schema) -> ArrowDataset:
        """Return the data with the types of the table's columns; unknown columns get inferred types.

        Structs lack the fields that no dict has, so that the write can name them.

        Raises: SchemaMismatchError: a value does not fit its column; the message names column, row, value and type.
        """
        if not self.columns:
            return ArrowDataset(table_schema.empty_table())
        known = {child.name: child for child in table_schema}
        arrays, fields = [], []
        for place, (name, values) in enumerate(self.columns):
            child = known.get(name)
            if child is None or place in self.own_types:
                array, is_nullable = self._inferred(place), True
            else:
                array = _fitted(values, child, from_pandas=place in self.of_pandas)
                is_nullable = child.nullable
            arrays.append(array)
            fields.append(pa.field(name, array.type, nullable=is_nullable))
        return self._dataset(arrays, fields)

    def inferred(self) -> ArrowDataset:
        """Return the data with inferred types. Raises: SchemaMismatchError: a column has values of several types."""
        arrays = [self._inferred(place) for place in range(len(self.columns))]
        return self._dataset(arrays, [pa.field(n, a.type) for (n, _), a in zip(self.columns, arrays, strict=True)])

    def _inferred(self, place: int) -> pa.Array | pa.ChunkedArray:
        name, values = self.columns[place]
        return values if isinstance(values, _ARROW) else infer(values, name, from_pandas=place in self.of_pandas)

    def _dataset(self, arrays: list[pa.Array | pa.ChunkedArray], fields: list[pa.Field]) -> ArrowDataset:
        lengths = {name: len(values) for name, values in self.columns}
        if len(set(lengths.values())) > 1:
            raise SchemaMismatchError(f"columns: expected values of one length, found {lengths}")
        names = (name for place, (name, _) in enumerate(self.columns) if place not in self.own_types)
        return ArrowDataset(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), untyped=frozenset(names))


def untyped_dataset(data: object) -> UntypedDataset | None:
    """Return data of a list of dicts, a dict of columns, or a pandas DataFrame; None for data of any other type.

    Warns: `HoodieWarning` for an index of pandas without a name that has more than the numbers of rows.

    Raises: SchemaMismatchError for a column without a type of Arrow, and for rows without columns; InvalidConfigError
    for a name that is no text.
    """
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row)
        if data and not names:
            raise SchemaMismatchError(
                f"{len(data)} rows: expected dicts with the columns of the table, found empty dicts"
            )
        return UntypedDataset(tuple((_name(name), [row.get(name) for row in data]) for name in names))
    if isinstance(data, Mapping) and data and all(map(_is_column, data.values())):
        return _of_columns([(_name(name), values) for name, values in data.items()])
    if is_pandas(data, "DataFrame"):
        return _of_columns(_pandas_columns(data))
    return None


def _pandas_columns(frame: Any) -> list[tuple[str, Any]]:
    """Return the named levels of the index of a pandas DataFrame, then its columns. Raises: as `untyped_dataset`."""
    columns = [(_name(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    index = frame.index
    levels = [(name, index.get_level_values(place)) for place, name in enumerate(index.names)]
    named = [(_name(name), values.to_series(index=index)) for name, values in levels if name is not None]
    for name, values in named:
        same = [column for own, column in columns if own == name]
        if same and not same[0].equals(values):
            raise SchemaMismatchError(
                f"the index and the columns of the DataFrame have the name {name!r}, with different values: rename one "
                "of them, or drop the index with reset_index(drop=True)"
            )
    known = {name for name, _ in columns}
    found = [*((name, values) for name, values in named if name not in known), *columns]
    # The numbers of rows are no data; other values without a name may be.
    if any(name is None and (len(levels) > 1 or values.dtype.kind not in "iu") for name, values in levels):
        warnings.warn(
            f"the index of the DataFrame ({index.dtype}) has no name and is not written: name it with rename_axis to "
            "make it a column, or drop it with reset_index(drop=True)",
            HoodieWarning,
            stacklevel=2,
        )
    if len(frame) and not found:
        raise SchemaMismatchError(f"{len(frame)} rows: expected a DataFrame with columns, found none")
    return found


def _name(name: object) -> str:
    return checked_text("column name", str(name))


def is_pandas(value: object, name: str) -> bool:
    """Return whether the value is an object of a class of pandas; pandas is not imported."""
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == name


def _is_column(values: object) -> bool:
    if isinstance(values, list | tuple | pa.Array | pa.ChunkedArray) or is_pandas(values, "Series"):
        return True
    return (isinstance(values, np.ndarray) and values.ndim == 1) or hasattr(values, "__arrow_c_stream__")


def _of_columns(columns: Sequence[tuple[str, Any]]) -> UntypedDataset:
    own_types = frozenset(place for place, (_, values) in enumerate(columns) if _has_own_type(values))
    of_pandas = frozenset(place for place, (_, values) in enumerate(columns) if is_pandas(values, "Series"))
    return UntypedDataset(tuple((name, _column(name, values)) for name, values in columns), own_types, of_pandas)


def _has_own_type(values: Any) -> bool:
    """Return whether somebody chose the type of a column: not NumPy or pandas, from Python values."""
    if isinstance(values, list | tuple):
        return False
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.char not in _NUMPY_DEFAULTS
    # The type `str` of pandas 3 is what texts get by default.
    return str(dtype) != "str"


def _column(name: str, values: Any) -> _Column:
    """Return the values as Arrow data of a plain type if they have one type, otherwise as a list; missing are null."""
    return values if isinstance(values, list | tuple) else _objects(values) or arrow_column(name, values)


def _objects(values: Any) -> list[Any] | None:
    """Return the objects of an array or Series of objects, None for those that are missing; None for other types."""
    if str(getattr(values, "dtype", "")) != "object":
        return None
    listed = list(values.tolist())
    if not is_pandas(values, "Series") or set(map(type, listed)) <= _NEVER_MISSING:
        return listed
    return [None if gone else value for value, gone in zip(listed, values.isna(), strict=True)]


def arrow_column(name: str, values: Any) -> pa.ChunkedArray:
    """Return the values of a list, an array or a Series as Arrow data of a plain type; `name` is the column's name.

    Raises: SchemaMismatchError: Arrow has no type for the values, or would cut them, or they are text that is not valid
    UTF-8.
    """
    source: pa.RecordBatchReader | pa.Table
    if type(values).__module__.partition(".")[0] == "polars":
        source = arrow_stream(values.to_frame(name))
    else:
        objects = _objects(values)
        array = infer(values if objects is None else objects, name, from_pandas=is_pandas(values, "Series"))
        source = pa.Table.from_arrays([array], names=[name])
    return ArrowDataset(source).table().column(0)


def arrow_stream(data: Any) -> pa.RecordBatchReader:
    """Return a reader of data with `__arrow_c_stream__`.

    Raises: SchemaMismatchError: Arrow has no type for a column, or the data has no columns.
    """
    refused = [name for name, dtype in _polars_types(data) if dtype == "Object"]
    try:
        if not refused:
            return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError) as error:
        refused = [name for name, _ in _polars_types(data) if not _is_known(data.select(name))]
        if not refused:
            raise SchemaMismatchError(
                f"data of type {type(data).__module__}.{type(data).__qualname__}: expected columns of Arrow's types "
                f"({error}); cast them"
            ) from error
    types = dict(_polars_types(data))
    raise SchemaMismatchError(
        f"column {refused[0]!r}: Arrow has no type for values of Polars' {types[refused[0]]}; cast the column"
    )


def _polars_types(data: Any) -> list[tuple[str, str]]:
    """Return the columns of a Polars frame and the names of their types; nothing for other data."""
    if type(data).__module__.partition(".")[0] != "polars" or not hasattr(data, "schema"):
        return []
    return [(name, str(dtype)) for name, dtype in data.schema.items()]


def _is_known(frame: Any) -> bool:
    try:
        pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError):
        return False
    return True


def _fitted(values: _Column, child: pa.Field, *, from_pandas: bool) -> pa.Array | pa.ChunkedArray:
    if not isinstance(values, _ARROW):
        return fit_values(values, given_type(values, child.type), child.name, from_pandas=from_pandas)
    # Nested Arrow arrays are converted by the write, field by field.
    return values if pa.types.is_nested(values.type) else fit_array(values, child.type, child.name)


_SCALARS = (str, bytes, int, float, Decimal, date)
_SERIES = ("Series", "Index")


@errors_of_input()
def dataset_of(data: object) -> Dataset:
    """Return the caller's data as a dataset of this process.

    Accepts Arrow tables, batches, readers, datasets and scanners, pandas DataFrames, lists of dicts, dicts of columns,
    Polars frames, and all objects with `__arrow_c_stream__`. Raises: UnsupportedError for data of any other type.
    """
    # The class is checked first, as a LazyFrame of Polars warns when it resolves its `schema`.
    if hasattr(type(data), "parts") and isinstance(data, PartedDataset):
        return data
    untyped = untyped_dataset(data)
    return ArrowDataset(_arrow_source(data)) if untyped is None else untyped


def with_types(data: Dataset) -> Dataset:
    """Return the data; columns without declared types get inferred ones."""
    return data.inferred() if isinstance(data, UntypedDataset) else data


def _arrow_source(data: Any) -> pa.RecordBatchReader | pa.Table:
    """Return the caller's typed data as an Arrow table or reader. Raises: as `dataset_of`."""
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return arrow_stream(data)
    if hasattr(data, "to_reader") or hasattr(data, "scanner"):  # a pyarrow Scanner, or a Dataset
        found = (data if hasattr(data, "to_reader") else data.scanner()).to_reader()
        if isinstance(found, pa.RecordBatchReader):
            return found
    elif callable(collect := getattr(data, "collect", None)):  # of a Polars LazyFrame
        frame = collect()
        if hasattr(frame, "__arrow_c_stream__"):
            return arrow_stream(frame)
    kind = f"data of type {type(data).__module__}.{type(data).__qualname__}"
    if isinstance(data, (str, os.PathLike)):
        advice = f"read the file first, for example with pyarrow.parquet.read_table({str(data)!r})"
        raise UnsupportedError(f"{kind}: expected rows; {advice}")
    raise UnsupportedError(
        f"{kind}: expected a Spark DataFrame, a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, a "
        "pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an object with "
        "__arrow_c_stream__"
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
    # Looked up in its class, as a LazyFrame of Polars warns when it resolves its columns.
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
