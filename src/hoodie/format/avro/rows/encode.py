"""Encode Arrow columns as bare Avro rows, without a Python object for a row or a value.

Avro 1.11 specification, "Binary encoding". Each list and each map is written as one block, as in Java.

Small pieces of rows (numbers, lengths, tags) are collected as matrices of bytes with a mask of the used bytes. Texts
and bytes stay Arrow columns. One join at the end writes every byte once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.avro.rows.cursor import BoolArray, Int64Array, UInt8Array
from hoodie.format.avro.rows.layout import Kind, Layout, row_layout
from hoodie.format.schema.arrow_types import bytes_of, offsets_of
from hoodie.format.schema.plain_types import refuse_wrong_text
from hoodie.format.varint import zigzag_cells

_GROUP_ROWS = 16 * 1024
_DECIMAL_BYTES = 16

Present = BoolArray | None
"""Mask of the rows that have a value at this level; in the other rows, a parent is null. None means every row."""
_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE})
_LARGE = pa.large_binary()


def encode_rows(
    rows: pa.Table, avro_schema: str, *, framed: bool = False, group_rows: int = _GROUP_ROWS
) -> Iterator[pa.LargeBinaryArray]:
    """Encode rows that have exactly the Arrow schema of an Avro record, `group_rows` at a time and in order.

    `framed` writes each row's length before the row, as four big-endian bytes. Memory: a few times `group_rows`.

    Raises:
        SchemaMismatchError: a value is null where the schema does not allow null, is not a symbol of its enum, or is
            text that is not valid UTF-8; the error names the column.
        UnsupportedError: the schema has a type that no table has.
    """
    layout = row_layout(avro_schema)
    for batch in rows.to_batches(max_chunksize=group_rows):
        out = Pieces(batch.num_rows)
        for child, column in zip(layout.children, batch.columns, strict=True):
            encode_column(child, column, None, out)
        yield out.join(framed=framed)


def encode_column(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    """Add the value of an array to each row that is present.

    Raises: SchemaMismatchError if a value is null where the layout does not allow null, is not a symbol of its enum, or
        is text that is not valid UTF-8.
    """
    if layout.kind is Kind.UNION:
        _union(layout, array, present, out)
        return
    if array.null_count and not _is_covered(array, present):
        raise SchemaMismatchError(f"column {layout.path!r} is null in a row, but its type does not allow null")
    _ENCODERS[layout.kind](layout, array, present, out)


def _is_covered(array: pa.Array, present: Present) -> bool:
    """Return whether nulls are only in rows that are not present."""
    return present is not None and not (_is_null(array) & present).any()


def _is_null(array: pa.Array) -> BoolArray:
    found: BoolArray = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _union(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    if array.null_count and layout.null_number < 0 and not _is_covered(array, present):
        raise SchemaMismatchError(f"column {layout.path!r} is null in a row, but its type does not allow null")
    child, number = max(zip(layout.children, layout.numbers, strict=True), key=lambda branch: _width(branch[0]))
    if not array.null_count:
        out.add_constant(2 * number, present)
        encode_column(child, array, present, out)
        return
    valid = ~_is_null(array)
    tags = np.where(valid, 2 * number, 2 * max(layout.null_number, 0)).astype(np.uint8)
    out.add_cells(tags[:, None], _column(present))
    encode_column(child, array, valid if present is None else valid & present, out)


def _width(layout: Layout) -> int:
    """Return a rank by width: long is above int, and double is above float."""
    return (Kind.INT, Kind.FLOAT, Kind.LONG, Kind.DOUBLE).index(layout.kind) if layout.kind in _NUMBERS else 0


def _boolean(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    values = array if not array.null_count else pc.fill_null(array, False)
    cells = values.to_numpy(zero_copy_only=False).astype(np.bool_, copy=False).view(np.uint8)
    out.add_cells(cells[:, None], _column(present))


def _long(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    stored = np.dtype(f"i{array.type.bit_width // 8}")
    out.add_varints(_values(array, stored).astype(np.int64, copy=False), present)


def _float(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    stored = _values(array, np.dtype(f"f{array.type.bit_width // 8}"))
    cells = stored.astype("<f4" if layout.kind is Kind.FLOAT else "<f8", copy=False)
    out.add_cells(np.ascontiguousarray(cells).view(np.uint8).reshape(len(array), cells.itemsize), _column(present))


def _values(array: pa.Array, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the memory of a fixed-width column; the values at nulls are undefined."""
    if not len(array):
        return np.zeros(0, kind)
    data = np.frombuffer(array.buffers()[1], np.uint8)
    start = array.offset * kind.itemsize
    return data[start : start + len(array) * kind.itemsize].view(kind)


def _column(present: Present) -> Present:
    return None if present is None else present[:, None]


def _bytes(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    array = _masked(array, present)
    # A decoder refuses the whole block if a text in it is not valid.
    refuse_wrong_text(array, layout.path)
    out.add_varints(byte_lengths(array), present)
    out.add_bytes(array)


def _masked(array: pa.Array, present: Present) -> pa.Array:
    """Return the array with null in every row that is not present."""
    if present is None or array.null_count == len(array) - np.count_nonzero(present):
        return array
    return pc.if_else(pa.array(present), array, pa.scalar(None, array.type))


def _fixed(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    size = layout.size_bytes or 0
    cells = _values(array, np.dtype(f"V{size}")).view(np.uint8) if size else np.zeros(0, np.uint8)
    out.add_cells(cells.reshape(len(array), size), _wide(present, size))


def _wide(present: Present, width: int) -> Present:
    return None if present is None else np.broadcast_to(present[:, None], (len(present), width))


def _enum(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    array = _masked(array, present)
    numbers = pc.index_in(array, pa.array(layout.symbols, pa.string()))
    if numbers.null_count != array.null_count:
        raise SchemaMismatchError(f"column {layout.path!r} has a value that is not a symbol of its enum")
    out.add_varints(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.int64), present)


def _decimal(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    """Encode big-endian unscaled numbers.

    A number in the type bytes is written as its length and 16 bytes; Avro accepts any sign-extended length.
    """
    cells = _values(array, np.dtype("V16")).view(np.uint8).reshape(len(array), _DECIMAL_BYTES)[:, ::-1]
    size = _DECIMAL_BYTES if layout.size_bytes is None else layout.size_bytes
    if layout.size_bytes is None:
        out.add_constant(2 * size, present)
    if size > _DECIMAL_BYTES:
        sign = np.where(cells[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
        cells = np.hstack([np.repeat(sign, size - _DECIMAL_BYTES, axis=1), cells])
    out.add_cells(cells[:, cells.shape[1] - size :], _wide(present, size))


def _record(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    for place, child in enumerate(layout.children):
        encode_column(child, array.field(place), present, out)


def _array(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    starts, counts = _item_ranges(array, present)
    items = Pieces(int(counts.sum()))
    encode_column(layout.children[0], _items(array.values, starts, counts), None, items)
    _add_blocks(counts, items, present, out)


def _map(layout: Layout, array: pa.Array, present: Present, out: Pieces) -> None:
    starts, counts = _item_ranges(array, present)
    entries = Pieces(int(counts.sum()))
    # The offsets of the map select from all keys and all values.
    for child, column in zip(layout.children[0].children, (array.keys, array.items), strict=True):
        encode_column(child, _items(column, starts, counts), None, entries)
    _add_blocks(counts, entries, present, out)


def _item_ranges(array: pa.Array, present: Present) -> tuple[Int64Array, Int64Array]:
    """Return where the items of each row begin among all items, and their number; it is 0 where there is no list."""
    if not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = offsets_of(array)
    counts = np.diff(offsets)
    return offsets[:-1], counts if present is None else np.where(present, counts, 0)


def _items(values: pa.Array, starts: Int64Array, counts: Int64Array) -> pa.Array:
    """Return the items of all rows, without items that belong to no row."""
    total = int(counts.sum())
    if not total:
        return values.slice(0, 0)
    used = starts[counts > 0]
    first, last = int(used[0]), int(used[-1] + counts[counts > 0][-1])
    if last - first == total:
        return values.slice(first, total)
    behind = np.cumsum(counts)
    places = np.arange(total) + np.repeat(starts - (behind - counts), counts)
    return values.take(pa.array(places))


def _add_blocks(counts: Int64Array, items: Pieces, present: Present, out: Pieces) -> None:
    """Add each row's items as one block, and the zero that ends a list."""
    encoded = items.join()
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets_of(encoded)[offsets]), encoded.buffers()[2]]
    out.add_varints(counts, counts > 0)
    out.add_bytes(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(counts), buffers))
    out.add_constant(0, present)


_ENCODERS: Final[dict[Kind, Callable[[Layout, pa.Array, Present, Pieces], None]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: _long,
    Kind.LONG: _long,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.BYTES: _bytes,
    Kind.FIXED: _fixed,
    Kind.DECIMAL_BYTES: _decimal,
    Kind.DECIMAL_FIXED: _decimal,
    Kind.ENUM: _enum,
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.RECORD: _record,
    Kind.UNION: _union,
}


@dataclass(slots=True)
class Pieces:
    """The pieces of `count` rows, in order."""

    count: int
    _parts: list[Any] = field(default_factory=list)
    _cells: list[tuple[UInt8Array, BoolArray | None]] = field(default_factory=list)

    def add_cells(self, cells: UInt8Array, is_used: BoolArray | None = None) -> None:
        """Add bytes to each row: a matrix, and a mask of the used bytes (None: all bytes)."""
        self._cells.append((cells, is_used))

    def add_constant(self, byte: int, present: BoolArray | None = None) -> None:
        """Add one byte to each row that is present."""
        self.add_cells(np.full((self.count, 1), byte, np.uint8), None if present is None else present[:, None])

    def add_varints(self, numbers: Int64Array, present: BoolArray | None = None) -> None:
        """Add an int or long to each row that is present."""
        self.add_cells(*zigzag_cells(numbers, present))

    def add_bytes(self, column: pa.Array) -> None:
        """Add a value of a binary or string column to each row; null adds nothing."""
        self._close_cells()
        self._parts.append(column.cast(_LARGE))

    def join(self, *, framed: bool = False) -> pa.LargeBinaryArray:
        """Return the rows; `framed` writes each row's length before the row, as four big-endian bytes."""
        self._close_cells()
        if framed:
            lengths = sum((byte_lengths(part) for part in self._parts), np.zeros(self.count, np.int64))
            self.add_cells(lengths.astype(">i4").view(np.uint8).reshape(-1, 4))
            self._close_cells()
            self._parts.insert(0, self._parts.pop())
        if not self._parts:
            return pa.repeat(pa.scalar(b"", _LARGE), self.count)
        if len(self._parts) == 1 and not self._parts[0].null_count:
            return self._parts[0]
        separator = pa.scalar(b"", _LARGE)
        return pc.binary_join_element_wise(*self._parts, separator, null_handling="replace", null_replacement="")

    def content(self) -> bytes:
        """Return the joined rows, one after the other."""
        return bytes(bytes_of(self.join()))

    def _close_cells(self) -> None:
        """Convert the matrices since the last text to one column."""
        if not self._cells:
            return
        cells = np.hstack([cells for cells, _ in self._cells])
        offsets = np.zeros(self.count + 1, np.int64)
        if all(is_used is None for _, is_used in self._cells):
            data = cells
            offsets[1:] = np.arange(1, self.count + 1) * cells.shape[1]
        else:
            masks = [np.broadcast_to(True if used is None else used, part.shape) for part, used in self._cells]
            mask = np.hstack(masks)
            data = cells[mask]
            np.cumsum(np.count_nonzero(mask, axis=1), out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        self._parts.append(pa.LargeBinaryArray.from_buffers(_LARGE, self.count, buffers))
        self._cells = []


def byte_lengths(column: pa.Array) -> Int64Array:
    """Return the lengths of binary or string values; the length of null is 0."""
    lengths = pc.binary_length(column)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    found: Int64Array = lengths.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
