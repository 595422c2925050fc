"""Data without declared types: lists of dicts, dicts of lists, and pandas columns of the types that pandas chooses.

A write gives such columns the types of the table. Only where the table's schema is not known, types are inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from hoodie.config.option import checked_text
from hoodie.engine.local import ArrowDataset
from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.fit import fit_array, infer
from hoodie.format.schema.fit_nested import fit_values

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

    def typed(self, table_schema: pa.Schema, key_fields: Collection[str] = ()) -> ArrowDataset:
        """Return the data with the types of the table's columns; unknown columns get inferred types.

        Structs lack those `key_fields`, dotted names, that no value has, so that the write can name them.

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
                child = _with_own_keys(child, values, key_fields)
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

    Raises: SchemaMismatchError for a column without a type of Arrow; InvalidConfigError for a name that is no text.
    """
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        return _of_rows(data)
    if isinstance(data, Mapping) and data and all(map(_is_column, data.values())):
        return _of_columns([(_name(name), values) for name, values in data.items()])
    if is_pandas(data, "DataFrame"):
        frame: Any = data
        return _of_columns([(_name(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)])
    return None


def _name(name: object) -> str:
    return checked_text("column name", str(name))


def is_pandas(value: object, name: str) -> bool:
    """Return whether the value is an object of a class of pandas; pandas is not imported."""
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == name


def _of_rows(rows: Sequence[Mapping[Any, Any]]) -> UntypedDataset:
    names = dict.fromkeys(name for row in rows for name in row)
    if rows and not names:
        raise SchemaMismatchError(f"{len(rows)} rows: expected dicts with the columns of the table, found empty dicts")
    columns = tuple((_name(name), [row.get(name) for row in rows]) for name in names)
    return UntypedDataset(columns)


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
    """Return the values as Arrow data of a plain type if they have one type, otherwise as a list; missing values null.

    Raises: as `arrow_column`.
    """
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

    Raises: SchemaMismatchError: Arrow does not know the type of a column, or the data has no columns.
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


def _with_own_keys(child: pa.Field, values: _Column, key_fields: Collection[str]) -> pa.Field:
    """Return the column without the key fields inside its struct that no value has; these would be filled with null."""
    for name in key_fields:
        column, _, below = name.partition(".")
        if below and column == child.name and not isinstance(values, _ARROW) and not _has(values, below.split(".")):
            child = child.with_type(_without(child.type, below.split(".")))
    return child


def _has(values: Sequence[Any], path: list[str]) -> bool:
    """Return whether a value has the field: a dict with it, a null above it, or an object that is no dict."""
    for step in path:
        if any(not isinstance(value, Mapping) for value in values):
            return True
        values = [value[step] for value in values if step in value]
    return bool(values)


def _without(kind: pa.StructType, path: list[str]) -> pa.StructType:
    first, *rest = path
    kept = [one for one in kind.fields if rest or one.name != first]
    return pa.struct([one.with_type(_without(one.type, rest)) if one.name == first else one for one in kept])


def _fitted(values: _Column, child: pa.Field, *, from_pandas: bool) -> pa.Array | pa.ChunkedArray:
    if not isinstance(values, _ARROW):
        return fit_values(values, child.type, child.name, from_pandas=from_pandas)
    # Nested Arrow arrays are converted by the write, field by field.
    return values if pa.types.is_nested(values.type) else fit_array(values, child.type, child.name)
