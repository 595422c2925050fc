"""Decode bare Avro rows to Arrow, one column at a time, without a Python object for a row or a value.

Avro 1.11 specification, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro.rows.cursor import Cursor, Int64Array, Source
from hoodie.format.avro.rows.layout import Kind, Layout, row_layout
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.format.schema.arrow_types import blanks, pieces_of

_GROUP_BYTES = 4 * 1024 * 1024
_GROUP_ROWS = 16 * 1024
_DECIMAL_BYTES_MAX = 16


def decode_rows(
    content: Any,
    starts: Int64Array,
    ends: Int64Array,
    avro_schema: str,
    *,
    columns: Collection[str] | None = None,
    path: str,
    offset: int = 0,
    group_max: tuple[int, int] = (_GROUP_ROWS, _GROUP_BYTES),
) -> pa.Table:
    """Decode bare Avro records at `[start, end)` in a buffer; they must ascend and must not overlap.

    The types are the types that `avro_to_arrow` returns. Only the fields of the schema that are in `columns` are
    decoded, in the order of the schema; the other fields are skipped. `path` and `offset` (of the buffer in its file)
    are for error messages. `group_max`: rows and bytes that are decoded together.

    Memory: the result, and a few times the bytes of `group_max` (more if one row is larger).

    Raises:
        CorruptFileError: the bytes are not rows of the schema, for any reason.
        UnsupportedError: the schema has a type that no table has.
    """
    schema, layout = avro_to_arrow(avro_schema), row_layout(avro_schema)
    known = None if columns is None else set(columns)
    wanted = [known is None or name in known for name in schema.names]
    chosen = pa.schema([field for field, is_wanted in zip(schema, wanted, strict=True) if is_wanted])
    view = memoryview(content).cast("B")
    tables = []
    first = 0
    while first < len(starts):
        fitting = int(np.searchsorted(ends, starts[first] + group_max[1], side="right"))
        stop = min(max(fitting, first + 1), first + group_max[0])
        begin = int(starts[first])
        source = Source.of_range(view, begin, int(ends[stop - 1]), path=path, origin=offset)
        cursor = Cursor(source, starts[first:stop] - begin, ends[first:stop] - begin)
        try:
            arrays = _fields(layout, cursor, wanted)
            batch = pa.RecordBatch.from_arrays(arrays, schema=chosen)
        except pa.ArrowException as error:
            raise CorruptFileError(f"impossible values: {error}", path=path, offset=offset + begin) from error
        left = cursor.position != cursor.end
        if left.any():
            cursor.fail("a record is longer than its schema requires", left)
        tables.append(batch)
        first = stop
    return pa.Table.from_batches(tables, chosen)


def _fields(layout: Layout, cursor: Cursor, wanted: list[bool]) -> list[pa.Array]:
    arrays = []
    for child, is_wanted in zip(layout.children, wanted, strict=True):
        if is_wanted:
            arrays.append(decode(child, cursor))
        else:
            _skip_value(child, cursor)
    return arrays


def decode(layout: Layout, cursor: Cursor) -> pa.Array:
    """Decode one value of each row; the cursor moves to the end of the values."""
    return _DECODERS[layout.kind](layout, cursor)


def _boolean(layout: Layout, cursor: Cursor) -> pa.Array:
    found = cursor.read_bytes()
    if len(found) and found.max() > 1:
        cursor.fail("a boolean is neither 0 nor 1", found > 1)
    return pa.array(found.view(np.bool_), layout.arrow)


def _int(layout: Layout, cursor: Cursor) -> pa.Array:
    found = cursor.read_varints()
    narrow = found.astype(np.int32)
    beyond = narrow != found
    if beyond.any():
        cursor.fail("an int has more than 32 bits", beyond)
    return _numbers(found if layout.arrow.bit_width == 64 else narrow, layout.arrow)


def _long(layout: Layout, cursor: Cursor) -> pa.Array:
    return _numbers(cursor.read_varints(), layout.arrow)


def _float(layout: Layout, cursor: Cursor) -> pa.Array:
    found = cursor.read_numbers("<f4" if layout.kind is Kind.FLOAT else "<f8")
    return _numbers(found.astype(np.float64 if layout.arrow == pa.float64() else np.float32), layout.arrow)


def _numbers(values: np.ndarray[Any, Any], kind: pa.DataType, length: int | None = None) -> pa.Array:
    """Return a column over the memory of fixed-width values without nulls; decimals and times are checked."""
    array = pa.Array.from_buffers(kind, len(values) if length is None else length, [None, pa.py_buffer(values)])
    if pa.types.is_decimal(kind) or pa.types.is_time(kind):
        array.validate(full=True)
    return array


def _bytes(layout: Layout, cursor: Cursor) -> pa.Array:
    starts, lengths = cursor.skip_piece()
    pieces = pieces_of(cursor.source.data, starts, starts + lengths)
    return pieces if layout.arrow == pa.binary() else pieces.cast(layout.arrow)


def _fixed(layout: Layout, cursor: Cursor) -> pa.Array:
    size = layout.size_bytes or 0
    start = cursor.skip(size)
    if not size:
        return pa.repeat(pa.scalar(b"", layout.arrow), len(cursor))
    return _numbers(cursor.source.words(f"V{size}")[start].view(np.uint8), layout.arrow, len(start))


def _enum(layout: Layout, cursor: Cursor) -> pa.Array:
    found = cursor.read_varints()
    unknown = (found < 0) | (found >= len(layout.symbols))
    if unknown.any():
        cursor.fail("an enum has no symbol with this number", unknown)
    return pa.array(layout.symbols, pa.string()).take(pa.array(found))


def _decimal_bytes(layout: Layout, cursor: Cursor) -> pa.Array:
    starts, lengths = cursor.skip_piece()
    wrong = (lengths < 1) | (lengths > _DECIMAL_BYTES_MAX)
    if wrong.any():
        cursor.fail("a decimal has no bytes, or more than 16 bytes", wrong)
    return _decimal(layout, cursor.source, starts, lengths)


def _decimal_fixed(layout: Layout, cursor: Cursor) -> pa.Array:
    size = layout.size_bytes or 0
    starts = cursor.skip(size)
    spare = max(0, size - _DECIMAL_BYTES_MAX)
    data = cursor.source.data
    sign = np.where(data[starts + spare] >= 0x80, 0xFF, 0)
    for place in range(spare):
        beyond = data[starts + place] != sign
        if beyond.any():
            cursor.fail("a decimal has more than 38 digits", beyond)
    lengths = np.full(len(starts), size - spare, np.int64)
    return _decimal(layout, cursor.source, starts + spare, lengths)


def _decimal(layout: Layout, source: Source, starts: Int64Array, lengths: Int64Array) -> pa.Array:
    """Convert big-endian numbers of 1 to 16 bytes to Arrow's little-endian numbers of 16 bytes."""
    words = source.words("<u8")
    first = words[starts].byteswap().view(np.int64)
    values = np.empty((len(starts), 2), np.int64)
    is_long = lengths > 8
    values[:, 0] = first >> (64 - 8 * np.minimum(lengths, 8))
    values[:, 1] = values[:, 0] >> 63
    if is_long.any():
        ends = starts[is_long] + lengths[is_long]
        values[is_long, 0] = words[ends - 8].byteswap().view(np.int64)
        values[is_long, 1] = first[is_long] >> (128 - 8 * lengths[is_long])
    return _numbers(values, layout.arrow, len(starts))


def _record(layout: Layout, cursor: Cursor) -> pa.Array:
    children = [decode(child, cursor) for child in layout.children]
    return pa.StructArray.from_arrays(children, fields=layout.arrow.fields)


def _union(layout: Layout, cursor: Cursor) -> pa.Array:
    parts: list[pa.Array] = []
    places: list[Int64Array] = []
    for child, part, rows in _branches(layout, cursor):
        values = decode(child, part)
        if rows is None:
            return values
        parts.append(values)
        places.append(rows)
    return spread(parts, places, len(cursor), layout.arrow)


def _branches(layout: Layout, cursor: Cursor) -> Iterator[tuple[Layout, Cursor, Int64Array | None]]:
    """Yield each branch of a union that rows have, their cursor, and these rows; None for all rows.

    The caller moves the cursor to the end of the values. A branch of null has none.
    """
    tags = cursor.read_bytes()
    known = tags == 2 * layout.null_number if layout.null_number >= 0 else np.zeros(len(tags), np.bool_)
    for number, child in zip(layout.numbers, layout.children, strict=True):
        is_here = tags == 2 * number
        if is_here.all():
            yield child, cursor, None
            return
        if is_here.any():
            rows = np.flatnonzero(is_here)
            part = cursor.take(rows)
            yield child, part, rows
            cursor.put(rows, part)
            known |= is_here
    if not known.all():
        cursor.fail("a union has no branch with this number", ~known)


def _array(layout: Layout, cursor: Cursor) -> pa.Array:
    offsets, items = _items(layout, cursor)
    return pa.ListArray.from_arrays(offsets, decode(layout.children[0], items), type=layout.arrow)


def _map(layout: Layout, cursor: Cursor) -> pa.Array:
    offsets, items = _items(layout, cursor)
    keys, values = (decode(child, items) for child in layout.children[0].children)
    return pa.MapArray.from_arrays(offsets, keys, values, type=layout.arrow)


def _items(layout: Layout, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    """Return the offsets of the lists, and a cursor over all their items."""
    ends = cursor.end
    counts, places = _item_places(layout.children[0], cursor)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.array(offsets), Cursor(cursor.source, places, np.repeat(ends, counts))


_DECODERS: Final[dict[Kind, Callable[[Layout, Cursor], pa.Array]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: _int,
    Kind.LONG: _long,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.BYTES: _bytes,
    Kind.FIXED: _fixed,
    Kind.DECIMAL_BYTES: _decimal_bytes,
    Kind.DECIMAL_FIXED: _decimal_fixed,
    Kind.ENUM: _enum,
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.RECORD: _record,
    Kind.UNION: _union,
}


def _skip_value(layout: Layout, cursor: Cursor) -> None:
    """Move the cursor to the end of one value of each row.

    Skipped bytes are checked only if the length of the value depends on them.

    Raises: CorruptFileError if a length, a count or a union's branch is impossible.
    """
    if layout.size_bytes is not None:
        cursor.skip(layout.size_bytes)
    elif layout.kind in (Kind.BYTES, Kind.DECIMAL_BYTES):
        cursor.skip_piece()
    elif layout.kind is Kind.RECORD:
        for child in layout.children:
            _skip_value(child, cursor)
    elif layout.kind is Kind.UNION:
        for child, part, _ in _branches(layout, cursor):
            _skip_value(child, part)
    elif layout.kind in (Kind.ARRAY, Kind.MAP):
        _item_places(layout.children[0], cursor)
    else:
        cursor.read_varints()


def _item_places(item: Layout, cursor: Cursor) -> tuple[Int64Array, Int64Array]:
    """Return the number of items in each row's list, and where each item begins, row by row.

    The cursor moves to the end of the lists. Items are skipped in rounds: round n skips the n-th item of all lists at
    once. Items of one size need no rounds.
    """
    counts = np.zeros(len(cursor), np.int64)
    left = np.zeros(len(cursor), np.int64)
    rounds: list[Int64Array] = []
    active = np.arange(len(cursor))
    while len(active):
        opening = active[left[active] == 0]
        if len(opening):
            left[opening] = _open_block(cursor, opening)
            counts[opening] += left[opening]
            active = active[left[active] > 0]
        if not len(active):
            break
        part = cursor.take(active)
        if item.size_bytes is None:
            rounds.append(part.position.copy())
            _skip_value(item, part)
            left[active] -= 1
        else:
            rounds.append(_places_of_one_size(part, left[active], item.size_bytes))
            left[active] = 0
        cursor.put(active, part)
    # Rows ascend in the buffer, and items ascend in their row.
    places = np.sort(np.concatenate(rounds)) if rounds else np.zeros(0, np.int64)
    return counts, places


def _open_block(cursor: Cursor, rows: Int64Array) -> Int64Array:
    """Read the item count of each row's block; after a negative count, skip the size of the block in bytes."""
    part = cursor.take(rows)
    counts = part.read_varints()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        inner = part.take(sized)
        inner.read_varints()
        part.put(sized, inner)
        counts = np.abs(counts)
    # Every item has at least one byte. A greater count is damage, and would allocate unlimited memory.
    wrong = (counts < 0) | (counts > part.end - part.position)
    if wrong.any():
        part.fail("a list has more items than its record has bytes", wrong)
    cursor.put(rows, part)
    return counts


def _places_of_one_size(part: Cursor, counts: Int64Array, size_bytes: int) -> Int64Array:
    """Return where items of one size begin; the part moves to the end of the items."""
    start = part.skip(counts * size_bytes)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places: Int64Array = np.repeat(start, counts) + (np.arange(len(first)) - first) * size_bytes
    return places


def spread(parts: list[pa.Array], places: list[Int64Array], length: int, kind: pa.DataType) -> pa.Array:
    """Return a column of `length` rows with the parts' values at their places, and null at other places."""
    if not parts:
        return blanks(kind, length, is_null=True)
    index = np.zeros(length, np.int32)
    missing = np.ones(length, np.bool_)
    used = np.concatenate(places)
    index[used] = np.arange(len(used), dtype=np.int32)
    missing[used] = False
    values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if not pa.types.is_struct(kind):
        return values.take(pa.array(index, mask=missing))
    rows = pa.array(index)
    children = [values.field(place).take(rows) for place in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=kind.fields, mask=pa.array(missing))
