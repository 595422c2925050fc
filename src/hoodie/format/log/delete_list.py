"""The list of deletes in a delete block of version 3, decoded in columns (docs/format/table.md §4.3).

The length of a delete is not stored. One pass over the bytes therefore finds where each delete begins. All other steps
work on all deletes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.avro.rows.cursor import Cursor, Int64Array, Source
from hoodie.format.avro.rows.decode import decode, spread
from hoodie.format.avro.rows.layout import Kind, Layout
from hoodie.format.varint import zigzag_at

TEXT = Layout(Kind.BYTES, pa.string(), "text")
_NULLABLE_TEXT = Layout(Kind.UNION, pa.string(), "text", (TEXT,), numbers=(1,), null_number=0)
INT_TAG = 4
DECIMAL = pa.decimal128(30, 15)
_DECIMAL_AVRO = {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL.precision, "scale": DECIMAL.scale}
_TIME_AVRO = {"type": "long", "logicalType": "time-micros"}
_TIMESTAMP_AVRO = {"type": "long", "logicalType": "timestamp-micros"}
# The branches of the union of orderings after null, in its order. On disk: do not change.
_BRANCHES: tuple[tuple[str, Kind, pa.DataType, Any], ...] = (
    ("BooleanWrapper", Kind.BOOLEAN, pa.bool_(), "boolean"),
    ("IntWrapper", Kind.INT, pa.int32(), "int"),
    ("LongWrapper", Kind.LONG, pa.int64(), "long"),
    ("FloatWrapper", Kind.FLOAT, pa.float32(), "float"),
    ("DoubleWrapper", Kind.DOUBLE, pa.float64(), "double"),
    ("BytesWrapper", Kind.BYTES, pa.binary(), "bytes"),
    ("StringWrapper", Kind.BYTES, pa.string(), "string"),
    ("DateWrapper", Kind.INT, pa.date32(), "int"),
    ("DecimalWrapper", Kind.DECIMAL_BYTES, DECIMAL, _DECIMAL_AVRO),
    ("TimeMicrosWrapper", Kind.LONG, pa.time64("us"), _TIME_AVRO),
    ("TimestampMicrosWrapper", Kind.LONG, pa.timestamp("us", "UTC"), _TIMESTAMP_AVRO),
)
AVRO_TYPES: Mapping[str, Any] = {name: avro for name, _, _, avro in _BRANCHES}
"""Name of a branch -> Avro type of its value."""
ORDERINGS: Mapping[int, tuple[str, Layout]] = {
    2 * number: (name, Layout(kind, arrow, name)) for number, (name, kind, arrow, _) in enumerate(_BRANCHES, start=1)
}
"""First byte of an ordering (twice the union's branch) -> name and encoding of its value."""
ARRAY_TAG = 24
# First byte of an ordering -> size of its value: a number of bytes, or a varint (-1), or a length and that many bytes
# (-2).
_NUMBER, _PIECE = -1, -2
_WIDTH_OF_KIND = {
    Kind.BOOLEAN: 1,
    Kind.INT: _NUMBER,
    Kind.LONG: _NUMBER,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.BYTES: _PIECE,
    Kind.DECIMAL_BYTES: _PIECE,
}
_WIDTHS: Mapping[int, int] = {0: 0} | {tag: _WIDTH_OF_KIND[layout.kind] for tag, (_, layout) in ORDERINGS.items()}

Columns = tuple[pa.StringArray, pa.StringArray, pa.Array]


def parse_delete_list(datum: bytes, *, path: str, offset: int) -> Columns | None:
    """Parse a `HoodieDeleteRecordList` into record keys, partition paths and orderings.

    An ordering is null where a delete has no ordering value or the int 0. Returns None for deletes with several
    ordering fields. `offset` is the offset of the datum in its file, for error messages.

    Raises:
        CorruptFileError: the bytes are not a delete list.
        UnsupportedError: the ordering values have different types.
    """
    try:
        bounds = _bounds(datum)
    except (IndexError, ValueError) as error:
        raise CorruptFileError(f"not a delete list: {error}", path=path, offset=offset) from error
    if bounds is None:
        return None
    source = Source.of_range(memoryview(datum), 0, len(datum), path=path, origin=offset)
    cursor = Cursor(source, *bounds)
    try:
        keys, partitions = decode(_NULLABLE_TEXT, cursor), decode(_NULLABLE_TEXT, cursor)
        return keys, partitions, _orderings(cursor, f"{path} at byte {offset}")
    except pa.ArrowException as error:
        raise CorruptFileError(f"impossible values in a delete list: {error}", path=path, offset=offset) from error


def _orderings(cursor: Cursor, where: str) -> pa.Array:
    tags = cursor.read_bytes()
    parts: list[tuple[str, pa.Array, Int64Array]] = []
    for tag in np.unique(tags).tolist():
        if tag == 0:
            continue
        name, layout = ORDERINGS[tag]
        rows = np.flatnonzero(tags == tag)
        part = cursor.take(rows)
        values = decode(layout, part)
        if tag == INT_TAG:
            # The int 0 means "no ordering value".
            counts = np.flatnonzero(values.to_numpy())
            rows, values = rows[counts], values.take(pa.array(counts))
        if len(rows):
            parts.append((name, values, rows))
    if len(parts) > 1:
        names = ", ".join(sorted(name for name, _, _ in parts))
        raise UnsupportedError(f"{where}: expected ordering values of one type in a delete block, found {names}")
    if not parts:
        return pa.nulls(len(tags), pa.int32())
    _, values, rows = parts[0]
    return values if len(rows) == len(tags) else spread([values], [rows], len(tags), values.type)


def _bounds(data: bytes) -> tuple[Int64Array, Int64Array] | None:
    """Return where the deletes begin and end; None if a delete has several ordering fields."""
    starts: list[int] = []
    ends: list[int] = []
    count, position = zigzag_at(data, 0)
    while count:
        if count < 0:
            _, position = zigzag_at(data, position)
        for _ in range(abs(count)):
            starts.append(position)
            position = _behind_text(data, _behind_text(data, position))
            tag = data[position]
            if tag == ARRAY_TAG:
                return None
            position = _behind_ordering(data, position + 1, tag)
            ends.append(position)
        count, position = zigzag_at(data, position)
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes follow the list")
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _behind_text(data: bytes, position: int) -> int:
    tag = data[position]
    if tag == 0:
        return position + 1
    if tag != 2:
        raise ValueError(f"expected a text with tag 0 or 2, found tag {tag}")
    length = data[position + 1]
    if length < 0x80 and not length & 1:
        return position + 2 + (length >> 1)
    return _behind_piece(data, position + 1)


def _behind_ordering(data: bytes, position: int, tag: int) -> int:
    width = _WIDTHS.get(tag)
    if width is None:
        raise ValueError(f"an ordering has the unknown tag {tag}")
    if width >= 0:
        return position + width
    if width == _PIECE:
        return _behind_piece(data, position)
    # A number with too many bytes is found later, when the numbers are decoded.
    while data[position] >= 0x80:
        position += 1
    return position + 1


def _behind_piece(data: bytes, position: int) -> int:
    length, position = zigzag_at(data, position)
    if not 0 <= length <= len(data) - position:
        raise ValueError(f"a length of {length} bytes does not fit the list")
    return position + length
