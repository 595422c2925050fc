"""Bring Arrow data to a table's schema: cast, reorder, fill; whatever would lose something is refused by name."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.arrow_types import LIST_ITEM

_Data = TypeVar("_Data", pa.RecordBatch, pa.Table)


def conform(data: _Data, schema: pa.Schema) -> _Data:
    """Return the data with exactly this schema: columns by name, missing nullable ones filled with null, others cast.

    Numbers change their type only where every value survives; decimals likewise; timestamps keep their instant. Struct
    fields, list items and map values are treated like columns. Columns the schema lacks are refused. Vectorised;
    columns that fit already are not copied.

    Raises:
        SchemaMismatchError: a column is unknown, missing although required, of a type that does not become the wanted
            one, holds null where none may be, or a value would be cut; the field is named.
    """
    if data.schema.equals(schema, check_metadata=True):
        return data
    _check_names(data.schema.names, schema.names, "")
    positions = {name: position for position, name in enumerate(data.schema.names)}
    columns = [
        _conform_column(data.column(positions[child.name]), child) if child.name in positions else _nulls(data, child)
        for child in schema
    ]
    if isinstance(data, pa.Table):
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _nulls(data: pa.RecordBatch | pa.Table, child: pa.Field) -> pa.Array:
    return pa.nulls(_check_fillable(child, child.name, data.num_rows), child.type)


def _check_fillable(child: pa.Field, path: str, row_count: int) -> int:
    if not child.nullable:
        raise SchemaMismatchError(f"column {path!r} is missing; the table needs it and takes no null: add the column")
    return row_count


def _check_names(found: list[str], wanted: list[str], prefix: str) -> None:
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise SchemaMismatchError(f"column {prefix + twice!r} occurs twice; rename one of them")
    known = set(wanted)
    for name in found:
        if name not in known:
            raise SchemaMismatchError(
                f"column {prefix + name!r} is not in the table's schema ({', '.join(wanted)}): "
                f"evolve the schema or drop the column"
            )


def _conform_column(column: pa.Array | pa.ChunkedArray, child: pa.Field) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        chunks = [_conform_array(chunk, child, child.name) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=child.type)
    return _conform_array(column, child, child.name)


def _conform_array(array: pa.Array, child: pa.Field, path: str, parents: pa.Array | None = None) -> pa.Array:
    """Cast one array; `parents` is the validity of the struct around it: nulls below a null struct are no nulls."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not child.nullable and array.null_count:
        _check_no_null(array, path, parents)
    if array.type.equals(child.type, check_metadata=True) and not pa.types.is_nested(child.type):
        return array
    if pa.types.is_struct(child.type) and pa.types.is_struct(array.type):
        return _conform_struct(array, child.type, path)
    if pa.types.is_map(child.type) and pa.types.is_map(array.type):
        return _conform_map(array, child.type, path)
    if pa.types.is_list(child.type) and hasattr(array.type, "value_field") and not pa.types.is_map(array.type):
        return _conform_list(array, child.type, path)
    return _cast(array, child.type, path)


def _check_no_null(array: pa.Array, path: str, parents: pa.Array | None) -> None:
    missing = array.is_null() if parents is None else pc.and_(array.is_null(), parents)
    count = pc.sum(missing).as_py() or 0
    if count:
        raise SchemaMismatchError(f"column {path!r} takes no null; {count} of {len(array)} values are null: fill them")


def _conform_struct(array: pa.StructArray, wanted: pa.StructType, path: str) -> pa.StructArray:
    names = [child.name for child in array.type.fields]
    _check_names(names, [child.name for child in wanted.fields], f"{path}.")
    valid = array.is_valid() if array.null_count else None
    children = [
        _conform_array(array.field(names.index(child.name)), child, f"{path}.{child.name}", valid)
        if child.name in names
        else pa.nulls(_check_fillable(child, f"{path}.{child.name}", len(array)), child.type)
        for child in wanted.fields
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=mask)


def _conform_list(array: pa.Array, wanted: pa.ListType, path: str) -> pa.ListArray:
    if not pa.types.is_list(array.type):
        array = _checked(array, pa.list_(pa.field(LIST_ITEM, array.type.value_type)), path)
    offsets, (items,) = _own_items(array, array.values)
    return _with_items(array, wanted, offsets, _conform_array(items, wanted.value_field, f"{path}.{LIST_ITEM}"))


def _conform_map(array: pa.MapArray, wanted: pa.MapType, path: str) -> pa.MapArray:
    offsets, (keys, values) = _own_items(array, array.keys, array.items)
    keys = _conform_array(keys, wanted.key_field, f"{path}.key")
    values = _conform_array(values, wanted.item_field, f"{path}.value")
    entries = pa.StructArray.from_arrays([keys, values], fields=[wanted.key_field, wanted.item_field])
    return _with_items(array, wanted, offsets, entries)


def _own_items(array: pa.Array, *items: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Return offsets from zero and the items of this slice only: items outside must not be judged."""
    if len(array) == 0:
        return pa.array([0], pa.int32()), [child.slice(0, 0) for child in items]
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, pa.scalar(start, pa.int32()))
    return offsets, [child.slice(start, end - start) for child in items]


def _with_items(array: pa.Array, wanted: pa.DataType, offsets: pa.Array, items: pa.Array) -> pa.Array:
    """Build a list or map array of new items; nulls are those of `array`."""
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [validity, offsets.buffers()[1]]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, children=[items])


def _cast(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    if not _may_become(array.type, wanted):
        raise _mismatch(array.type, wanted, path)
    if pa.types.is_floating(array.type) and pa.types.is_floating(wanted) and array.type.bit_width > wanted.bit_width:
        return _narrow(array, wanted, path)
    return _checked(array, wanted, path)


def _mismatch(found: pa.DataType, wanted: pa.DataType, path: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"column {path!r}: {wanted} expected, found {found}; cast the column first")


def _checked(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    try:
        return pc.cast(array, wanted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"column {path!r}: a value of type {array.type} does not fit {wanted} ({error}); cast the column first"
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise _mismatch(array.type, wanted, path) from error


def _narrow(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """Cast to a smaller float, refusing values that would change; Arrow itself would round."""
    narrow = pc.cast(array, wanted, safe=False)
    back = pc.cast(narrow, array.type)
    same = pc.or_(pc.equal(back, array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        first = array.filter(pc.invert(same))[0].as_py()
        raise SchemaMismatchError(
            f"column {path!r}: {first!r} of type {array.type} would be rounded as {wanted}; cast the column first"
        )
    return narrow


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
# Per family of wanted types, the types whose values are meant alike; the cast itself then checks each value.
_SOURCES = (
    ((pa.types.is_integer, pa.types.is_floating), (pa.types.is_integer, pa.types.is_floating)),
    ((pa.types.is_decimal,), (pa.types.is_decimal, pa.types.is_integer)),
    (_TEXTS, _TEXTS),
    (_BYTES, _BYTES),
    ((pa.types.is_date,), (pa.types.is_date,)),
    ((pa.types.is_time,), (pa.types.is_time,)),
)


def _may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type are meant as values of the other."""
    if pa.types.is_null(found):
        return True
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(found)) and (found.tz is None) == (wanted.tz is None)
    for family, sources in _SOURCES:
        if any(is_kind(wanted) for is_kind in family):
            return any(is_kind(found) for is_kind in sources)
    return False
