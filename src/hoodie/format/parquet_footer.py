"""Footers of Parquet files: the greatest value of column chunks that have NaN becomes NaN.

pyarrow leaves NaN out of the bounds, so that a reader for which NaN is greater than every number skips row groups with
NaN. Readers of Parquet ignore bounds that are NaN. docs/format/table.md §3.11. On disk: `parquet.thrift` of
Apache Parquet, in Thrift's compact protocol.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterator, Set
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.format.varint import varint_at, zigzag_at

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8
_NAN: Final = {4: struct.pack("<f", math.nan), 8: struct.pack("<d", math.nan)}
"""By the number of bytes of a value."""
# Numbers of fields; on disk: do not change.
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_META_DATA: Final = 3
_STATISTICS: Final = 12
_MAX_DEPRECATED: Final = 1
_MAX_VALUE: Final = 5


def with_nan_bounds(footer: bytes, chunks: Collection[tuple[int, int]]) -> bytes:
    """Return a footer in which the greatest value of each of the chunks is NaN. Its length does not change.

    `footer` is a serialized `FileMetaData`. `chunks` are pairs of the numbers of a row group and a leaf column of type
    float or double. A chunk without bounds stays as it is.

    Raises: ValueError if the footer is not one.
    """
    changed = bytearray(footer)
    try:
        for group, at_group in enumerate(_items(footer, _field(footer, 0, _ROW_GROUPS))):
            wanted = {column for number, column in chunks if number == group}
            columns = _items(footer, _field(footer, at_group, _COLUMNS)) if wanted else iter(())
            for column, at_column in enumerate(columns):
                if column in wanted:
                    _set_greatest(changed, footer, _field(footer, at_column, _META_DATA))
    except (IndexError, KeyError) as error:
        raise ValueError(f"not the footer of a Parquet file ({error})") from error
    return bytes(changed)


def _set_greatest(changed: bytearray, footer: bytes, at_metadata: int | None) -> None:
    at_statistics = None if at_metadata is None else _field(footer, at_metadata, _STATISTICS)
    for number in (_MAX_DEPRECATED, _MAX_VALUE):
        at_value = None if at_statistics is None else _field(footer, at_statistics, number)
        if at_value is not None:
            length, start = varint_at(footer, at_value)
            changed[start : start + length] = _NAN[length]


def _field(data: bytes, at_struct: int, wanted: int) -> int | None:
    """Return where the value of a field of a struct begins; None if the struct has no such field."""
    return next((start for number, start in _fields(data, at_struct) if number == wanted), None)


def _fields(data: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Yield number and start of each value of a struct, and at last 0 and the position after the struct."""
    number = 0
    while data[position]:
        step, kind = data[position] >> 4, data[position] & 0x0F
        number, position = (number + step, position + 1) if step else zigzag_at(data, position + 1)
        yield number, position
        position = _end(data, position, kind)
    yield 0, position + 1


def _items(data: bytes, at_list: int | None) -> Iterator[int]:
    """Yield the start of each item of a list."""
    if at_list is None:
        return
    count, kind, position = _list_head(data, at_list)
    for _ in range(count):
        yield position
        position = _end(data, position, kind, is_item=True)


def _list_head(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the number of items of a list, their type and where they begin."""
    count, kind, position = data[position] >> 4, data[position] & 0x0F, position + 1
    if count == 15:
        count, position = varint_at(data, position)
    return count, kind, position


def _end(data: bytes, position: int, kind: int, *, is_item: bool = False) -> int:
    """Return the position after a value. A boolean has a byte only as an item: the type of a field is its value."""
    match kind:
        case 1 | 2:
            return position + is_item
        case 3:
            return position + 1
        case 4 | 5 | 6:
            return varint_at(data, position)[1]
        case 7:
            return position + 8
        case 8:
            length, start = varint_at(data, position)
            return start + length
        case 9 | 10:
            count, item, position = _list_head(data, position)
            for _ in range(count):
                position = _end(data, position, item, is_item=True)
            return position
        case 12:
            for _, end in _fields(data, position):
                position = end
            return position
    raise ValueError(f"not the footer of a Parquet file (a value of type {kind})")


def nan_leaves(rows: pa.Table) -> set[int]:
    """Return the numbers of the Parquet leaf columns that have NaN, also in structs, lists and maps."""
    found: set[int] = set()
    first = 0
    for column in rows.columns:
        count = _leaf_count(column.type)
        if _has_floats(column.type):
            for chunk in column.chunks:
                found |= {first + number for number, leaf in enumerate(_leaves(chunk)) if _has_nan(leaf)}
        first += count
    return found


def footer_with_nan(metadata: pq.FileMetaData, chunks: Set[tuple[int, int]]) -> bytes:
    """Return the end of a Parquet file: the footer, in which the greatest value of the chunks is NaN, and the trailer.

    `chunks` are pairs of the numbers of a row group and a leaf column. Readers look for the footer from the end of the
    file, so it may follow an earlier one.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    written: bytes = sink.getvalue().to_pybytes()
    footer, trailer = written[len(_MAGIC) : -_TRAILER_BYTES], written[-_TRAILER_BYTES:]
    return with_nan_bounds(footer, chunks) + trailer


def _has_nan(leaf: pa.Array) -> bool:
    return pa.types.is_floating(leaf.type) and bool(pc.any(pc.is_nan(leaf)).as_py())


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaves of a column in the order of Parquet. Values below a null are among them."""
    if pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            yield from _leaves(array.field(number))
    elif pa.types.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_nested(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _children(data_type: pa.DataType) -> list[pa.DataType]:
    return [data_type.field(number).type for number in range(data_type.num_fields)]


def _leaf_count(data_type: pa.DataType) -> int:
    return sum(map(_leaf_count, _children(data_type))) if pa.types.is_nested(data_type) else 1


def _has_floats(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(map(_has_floats, _children(data_type)))
    return bool(pa.types.is_floating(data_type))
